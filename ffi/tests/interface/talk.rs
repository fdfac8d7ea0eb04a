//! A client and a server of C that talk over two paths, for tests to look at.

use crate::pair::c::{address, bytes, filled};
use crate::pair::identity;
use hvq_ffi::address::hvq_route;
use hvq_ffi::config::{hvq_transport_config, hvq_transport_config_init};
use hvq_ffi::endpoint::*;
use hvq_ffi::error::HVQ_OK;
use hvq_ffi::hvq_endpoint;
use hvq_ffi::output::*;
use hvq_ffi::tls::*;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr;

/// What happened: kinds of events, and the last event of each kind.
pub type Events = Vec<hvq_event>;

/// Two ends and what they said.
pub struct Talk {
    pub client: *mut hvq_endpoint,
    pub server: *mut hvq_endpoint,
    /// The client's number of the connection, and the server's once it knows of it.
    pub connection: u64,
    pub accepted: Option<u64>,
    pub client_events: Events,
    pub server_events: Events,
    pub now: u64,
}

impl Drop for Talk {
    fn drop(&mut self) {
        // SAFETY: the endpoints are ours, and not used any more.
        unsafe {
            assert_eq!(hvq_endpoint_free(self.client), HVQ_OK);
            assert_eq!(hvq_endpoint_free(self.server), HVQ_OK);
        }
    }
}

/// The route of a path.
pub fn route(path: u16) -> hvq_route {
    hvq_route { local: address(1000 + path), remote: address(2000 + path) }
}

impl Talk {
    /// A client that is about to connect, with the options that `change` makes of the defaults.
    pub fn new(
        change: impl FnOnce(&mut hvq_transport_config, &mut hvq_client_options, &mut hvq_server_options),
    ) -> Self {
        let (chain, key) = identity();
        let mut transport: hvq_transport_config = filled(hvq_transport_config_init);
        let protocols: [*const c_char; 1] = [c"test".as_ptr()];
        let mut server: hvq_server_options = filled(hvq_server_options_init);
        (server.alpn, server.alpn_count) = (protocols.as_ptr(), 1);
        (server.certificate_pem, server.key_pem) = (bytes(&chain), bytes(&key));
        let mut client: hvq_client_options = filled(hvq_client_options_init);
        (client.alpn, client.alpn_count, client.ca_pem) = (protocols.as_ptr(), 1, bytes(&chain));
        change(&mut transport, &mut client, &mut server);
        (client.transport, server.transport) = (&transport, &transport);
        let (mut client_config, mut server_config) = (ptr::null_mut(), ptr::null_mut());
        let mut ends = [ptr::null_mut(), ptr::null_mut()];
        let mut options: hvq_endpoint_options = filled(hvq_endpoint_options_init);
        let mut connection = 0;
        // SAFETY: everything that is pointed to is above.
        unsafe {
            assert_eq!(hvq_server_config_new(&server, &mut server_config), HVQ_OK);
            assert_eq!(hvq_client_config_new(&client, &mut client_config), HVQ_OK);
            assert_eq!(hvq_endpoint_new(ptr::null(), &mut ends[0]), HVQ_OK);
            options.server = server_config;
            assert_eq!(hvq_endpoint_new(&options, &mut ends[1]), HVQ_OK);
            let server_name = c"localhost".as_ptr();
            let connect = hvq_connect_options { config: client_config, server_name, route: route(0) };
            assert_eq!(hvq_endpoint_connect(ends[0], &connect, 1_000_000_000, &mut connection), HVQ_OK);
            hvq_client_config_free(client_config);
            hvq_server_config_free(server_config);
        }
        Self {
            client: ends[0],
            server: ends[1],
            connection,
            accepted: None,
            client_events: Vec::new(),
            server_events: Vec::new(),
            now: 1_000_000_000,
        }
    }

    /// A client and a server that are connected.
    pub fn connected() -> Self {
        let mut talk = Self::new(|_, _, _| {});
        talk.exchange(50);
        assert!(talk.client_said(HVQ_EVENT_CONFIRMED) && talk.accepted.is_some());
        talk
    }

    /// So many exchanges of a millisecond each way.
    pub fn exchange(&mut self, rounds: usize) {
        for _ in 0..rounds {
            pump(self.client, self.server, self.now, &mut self.client_events);
            self.now += 1_000_000;
            pump(self.server, self.client, self.now, &mut self.server_events);
            self.now += 1_000_000;
        }
        let first = self.server_events.iter().find(|event| event.kind == HVQ_EVENT_CONNECTED);
        self.accepted = first.map(|event| event.connection);
    }

    /// Whether the client was told so.
    pub fn client_said(&self, kind: u32) -> bool {
        self.client_events.iter().any(|event| event.kind == kind)
    }

    /// How the client's connection ended, and with which code.
    pub fn client_end(&self) -> Option<(u32, u64)> {
        let end = self.client_events.iter().find(|event| event.kind == HVQ_EVENT_CLOSED);
        end.map(|event| (event.closed, event.code))
    }
}

fn pump(from: *mut hvq_endpoint, to: *mut hvq_endpoint, now: u64, events: &mut Events) {
    loop {
        let mut output = MaybeUninit::uninit();
        // SAFETY: the endpoint is the caller's, and a poll that succeeds fills the output.
        let output: hvq_output = unsafe {
            assert_eq!(hvq_endpoint_poll(from, now, output.as_mut_ptr()), HVQ_OK);
            output.assume_init()
        };
        match output.kind {
            HVQ_OUTPUT_TRANSMIT => {
                let sent = output.transmit;
                let incoming = hvq_incoming {
                    route: hvq_route { local: sent.route.remote, remote: sent.route.local },
                    bytes: sent.bytes,
                    length: sent.length,
                    segment: sent.segment,
                    ecn: sent.ecn,
                    reserved: 0,
                };
                // SAFETY: the bytes are valid until the next poll.
                assert_eq!(unsafe { hvq_endpoint_handle(to, &incoming, now) }, HVQ_OK);
            }
            HVQ_OUTPUT_EVENT => events.push(output.event),
            _ => return,
        }
    }
}
