//! A client and a server of C that talk over two paths, for tests to look at.

use crate::pair::c::{address, bytes, filled};
use crate::pair::identity;
use hvq_ffi::address::hvq_route;
use hvq_ffi::config::{hvq_transport_config, hvq_transport_config_init};
use hvq_ffi::connection::{hvq_connection_get_info, hvq_connection_info};
use hvq_ffi::endpoint::*;
use hvq_ffi::error::HVQ_OK;
use hvq_ffi::hvq_endpoint;
use hvq_ffi::output::*;
use hvq_ffi::tls::*;
use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::ptr;

/// The events of an endpoint, in order.
pub type Events = Vec<hvq_event>;

/// The configurations of both ends.
pub struct Choices {
    pub transport: hvq_transport_config,
    /// The server's, if it is not the same.
    pub server_transport: Option<hvq_transport_config>,
    pub client: hvq_client_options,
    pub server: hvq_server_options,
}

/// Two ends and what they said.
pub struct Talk {
    pub client: *mut hvq_endpoint,
    pub server: *mut hvq_endpoint,
    /// The configuration of the client's connections.
    pub config: *mut hvq_client_config,
    /// The client's number of the latest connection, and the server's once it knows of it.
    pub connection: u64,
    pub accepted: Option<u64>,
    pub client_events: Events,
    pub server_events: Events,
    /// The bytes that came with the client's latest event that had some.
    pub told: Vec<u8>,
    pub now: u64,
}

impl Drop for Talk {
    fn drop(&mut self) {
        // SAFETY: the endpoints are ours, and not used any more.
        unsafe {
            assert_eq!(hvq_endpoint_free(self.client), HVQ_OK);
            assert_eq!(hvq_endpoint_free(self.server), HVQ_OK);
            hvq_client_config_free(self.config);
        }
    }
}

/// The route of a path.
pub fn route(path: u16) -> hvq_route {
    hvq_route { local: address(1000 + path), remote: address(2000 + path) }
}

/// An endpoint, of a server or of a client.
pub fn endpoint(server: *const hvq_server_config) -> *mut hvq_endpoint {
    let mut options: hvq_endpoint_options = filled(hvq_endpoint_options_init);
    let mut made = ptr::null_mut();
    options.server = server;
    // SAFETY: everything that is pointed to is above.
    assert_eq!(unsafe { hvq_endpoint_new(&options, &mut made) }, HVQ_OK);
    made
}

impl Talk {
    /// A client that is about to connect, with the options that `change` makes of the defaults.
    pub fn new(
        change: impl FnOnce(&mut hvq_transport_config, &mut hvq_client_options, &mut hvq_server_options),
    ) -> Self {
        Self::with(|choices| change(&mut choices.transport, &mut choices.client, &mut choices.server))
    }

    /// A client that is about to connect, like that of [`Self::new`], with transports of their own for both ends.
    pub fn with(change: impl FnOnce(&mut Choices)) -> Self {
        let (chain, key) = identity();
        let protocols: [*const c_char; 1] = [c"test".as_ptr()];
        let mut choices = Choices {
            transport: filled(hvq_transport_config_init),
            server_transport: None,
            client: filled(hvq_client_options_init),
            server: filled(hvq_server_options_init),
        };
        (choices.server.alpn, choices.server.alpn_count) = (protocols.as_ptr(), 1);
        (choices.server.certificate_pem, choices.server.key_pem) = (bytes(&chain), bytes(&key));
        (choices.client.alpn, choices.client.alpn_count) = (protocols.as_ptr(), 1);
        choices.client.ca_pem = bytes(&chain);
        change(&mut choices);
        let Choices { transport, server_transport, mut client, mut server } = choices;
        let server_transport = server_transport.unwrap_or(transport);
        (client.transport, server.transport) = (&transport, &server_transport);
        let (mut config, mut server_config) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: everything that is pointed to is above.
        unsafe {
            assert_eq!(hvq_server_config_new(&server, &mut server_config), HVQ_OK);
            assert_eq!(hvq_client_config_new(&client, &mut config), HVQ_OK);
        }
        let mut talk = Self {
            client: endpoint(ptr::null()),
            server: endpoint(server_config),
            config,
            connection: 0,
            accepted: None,
            client_events: Vec::new(),
            server_events: Vec::new(),
            told: Vec::new(),
            now: 1_000_000_000,
        };
        // SAFETY: the endpoint keeps what it needs.
        unsafe { hvq_server_config_free(server_config) };
        talk.connect();
        talk
    }

    /// Starts a connection, another one if there was one already, and forgets what was said.
    pub fn connect(&mut self) {
        let server_name = c"localhost".as_ptr();
        let connect = hvq_connect_options { config: self.config, server_name, route: route(0) };
        // SAFETY: the endpoint is ours, and everything that is pointed to is above.
        let started = unsafe { hvq_endpoint_connect(self.client, &connect, self.now, &mut self.connection) };
        assert_eq!(started, HVQ_OK);
        self.client_events.clear();
        self.server_events.clear();
        self.accepted = None;
    }

    /// A client and a server that are connected.
    pub fn connected() -> Self {
        let mut talk = Self::new(|_, _, _| {});
        talk.exchange(50);
        assert!(talk.client_said(HVQ_EVENT_CONFIRMED) && talk.accepted.is_some());
        talk
    }

    /// Exchanges datagrams `rounds` times, a millisecond each way.
    pub fn exchange(&mut self, rounds: usize) {
        for _ in 0..rounds {
            pump(self.client, self.server, self.now, &mut |event| {
                // SAFETY: the bytes are valid until the next poll.
                if event.bytes.length > 0 {
                    let bytes = unsafe { std::slice::from_raw_parts(event.bytes.data, event.bytes.length) };
                    self.told = bytes.to_vec();
                }
                self.client_events.push(event);
            });
            self.now += 1_000_000;
            pump(self.server, self.client, self.now, &mut |event| self.server_events.push(event));
            self.now += 1_000_000;
        }
        let begins = |event: &&hvq_event| [HVQ_EVENT_CONNECTED, HVQ_EVENT_EARLY_DATA].contains(&event.kind);
        let first = self.server_events.iter().find(begins);
        self.accepted = first.map(|event| event.connection);
    }

    /// Returns true if the client was told so.
    pub fn client_said(&self, kind: u32) -> bool {
        self.client_events.iter().any(|event| event.kind == kind)
    }

    /// Returns true if the server was told so.
    pub fn server_said(&self, kind: u32) -> bool {
        self.server_events.iter().any(|event| event.kind == kind)
    }

    /// A snapshot of the client's connection, and of the server's.
    pub fn infos(&self) -> [hvq_connection_info; 2] {
        let ends = [(self.client, self.connection), (self.server, self.accepted.unwrap_or(u64::MAX))];
        ends.map(|(endpoint, connection)| {
            let mut info = hvq_connection_info::default();
            // SAFETY: the endpoint is ours, and so is the struct.
            assert_eq!(unsafe { hvq_connection_get_info(endpoint, connection, &mut info) }, HVQ_OK);
            info
        })
    }

    /// Returns the kind of end of the client's connection, and its code.
    pub fn client_end(&self) -> Option<(u32, u64)> {
        let end = self.client_events.iter().find(|event| event.kind == HVQ_EVENT_CLOSED);
        end.map(|event| (event.closed, event.code))
    }
}

fn pump(from: *mut hvq_endpoint, to: *mut hvq_endpoint, now: u64, told: &mut dyn FnMut(hvq_event)) {
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
            HVQ_OUTPUT_EVENT => told(output.event),
            _ => return,
        }
    }
}
