//! The pair through the C interface.

use super::{BLOCK, DATAGRAM, Pair, STEP, Sender, identity};
use hvq_ffi::address::{hvq_address, hvq_bytes, hvq_route};
use hvq_ffi::config::{hvq_transport_config, hvq_transport_config_init};
use hvq_ffi::endpoint::*;
use hvq_ffi::error::{HVQ_ERR_BLOCKED, HVQ_OK};
use hvq_ffi::hvq_endpoint;
use hvq_ffi::output::*;
use hvq_ffi::stream::*;
use hvq_ffi::tls::*;
use std::ffi::c_char;
use std::mem::{MaybeUninit, size_of};
use std::ptr;

/// One end.
struct End {
    endpoint: *mut hvq_endpoint,
    connection: Option<u64>,
}

/// The pair.
pub struct C {
    client: End,
    server: End,
    now: u64,
    block: Vec<u8>,
}

impl Drop for C {
    fn drop(&mut self) {
        for end in [&self.client, &self.server] {
            // SAFETY: the endpoints are ours, and not used any more.
            assert_eq!(unsafe { hvq_endpoint_free(end.endpoint) }, HVQ_OK);
        }
    }
}

/// A struct as its init function fills it.
pub fn filled<T>(init: unsafe extern "C" fn(*mut T, usize) -> i32) -> T {
    let mut value = MaybeUninit::uninit();
    // SAFETY: there is room for the struct, and the function fills it.
    unsafe {
        assert_eq!(init(value.as_mut_ptr(), size_of::<T>()), HVQ_OK);
        value.assume_init()
    }
}

/// An address of the network that is not there.
pub fn address(port: u16) -> hvq_address {
    let mut ip = [0; 16];
    ip[..4].copy_from_slice(&[127, 0, 0, 1]);
    hvq_address { family: 4, port, scope: 0, ip }
}

/// Text as bytes of C.
pub fn bytes(text: &str) -> hvq_bytes {
    hvq_bytes { data: text.as_ptr(), length: text.len() }
}

impl C {
    /// A connected pair that sends batches of so many datagrams at most.
    pub fn new(segments: u32) -> Self {
        let (chain, key) = identity();
        let mut transport: hvq_transport_config = filled(hvq_transport_config_init);
        transport.scheduler = c"single".as_ptr();
        transport.fixed_datagram_size = DATAGRAM.into();
        transport.segments = segments;
        // As the defaults of the Rust API have it.
        transport.ecn = 1;
        let protocols: [*const c_char; 1] = [c"test".as_ptr()];
        let mut server: hvq_server_options = filled(hvq_server_options_init);
        (server.transport, server.alpn, server.alpn_count) = (&transport, protocols.as_ptr(), 1);
        (server.certificate_pem, server.key_pem) = (bytes(&chain), bytes(&key));
        let mut client: hvq_client_options = filled(hvq_client_options_init);
        (client.transport, client.alpn, client.alpn_count) = (&transport, protocols.as_ptr(), 1);
        client.ca_pem = bytes(&chain);
        let (mut client_config, mut server_config) = (ptr::null_mut(), ptr::null_mut());
        let mut ends = [ptr::null_mut(), ptr::null_mut()];
        let mut options: hvq_endpoint_options = filled(hvq_endpoint_options_init);
        let mut number = 0;
        let route = hvq_route { local: address(1000), remote: address(2000) };
        // SAFETY: everything that is pointed to is above.
        unsafe {
            assert_eq!(hvq_server_config_new(&server, &mut server_config), HVQ_OK);
            assert_eq!(hvq_client_config_new(&client, &mut client_config), HVQ_OK);
            assert_eq!(hvq_endpoint_new(&options, &mut ends[0]), HVQ_OK);
            options.server = server_config;
            assert_eq!(hvq_endpoint_new(&options, &mut ends[1]), HVQ_OK);
            hvq_server_config_free(server_config);
            let connect =
                hvq_connect_options { config: client_config, server_name: c"localhost".as_ptr(), route };
            assert_eq!(hvq_endpoint_connect(ends[0], &connect, 1_000_000_000, &mut number), HVQ_OK);
            hvq_client_config_free(client_config);
        }
        let end = |endpoint| End { endpoint, connection: None };
        let mut pair =
            Self { client: end(ends[0]), server: end(ends[1]), now: 1_000_000_000, block: vec![0x5a; BLOCK] };
        for _ in 0..100 {
            pair.exchange();
        }
        assert!(pair.client.connection.is_some() && pair.server.connection.is_some());
        pair
    }
}

/// Carries everything that `from` has to say to `to`.
fn pump(from: &mut End, to: &mut End, now: u64) -> u64 {
    let mut count = 0;
    loop {
        let mut output = MaybeUninit::uninit();
        // SAFETY: the endpoint is ours, and a poll that succeeds fills the output.
        let output: hvq_output = unsafe {
            assert_eq!(hvq_endpoint_poll(from.endpoint, now, output.as_mut_ptr()), HVQ_OK);
            output.assume_init()
        };
        match output.kind {
            HVQ_OUTPUT_TRANSMIT => {
                let transmit = output.transmit;
                let route = hvq_route { local: transmit.route.remote, remote: transmit.route.local };
                let (bytes, length, segment, ecn) =
                    (transmit.bytes, transmit.length, transmit.segment, transmit.ecn);
                let incoming = hvq_incoming { route, bytes, length, segment, ecn, reserved: 0 };
                // SAFETY: the bytes are valid until the next poll.
                assert_eq!(unsafe { hvq_endpoint_handle(to.endpoint, &incoming, now) }, HVQ_OK);
                count += if segment == 0 { 1 } else { length.div_ceil(segment) as u64 };
            }
            HVQ_OUTPUT_EVENT if output.event.kind == HVQ_EVENT_CONNECTED => {
                from.connection = Some(output.event.connection);
            }
            HVQ_OUTPUT_EVENT => {}
            _ => return count,
        }
    }
}

impl C {
    /// The sender, or its peer: the endpoint and its number of the connection.
    fn sender(&self, sender: Sender) -> (*mut hvq_endpoint, u64) {
        let end = if sender == Sender::Client { &self.client } else { &self.server };
        (end.endpoint, end.connection.expect("connected"))
    }

    fn receiver(&self, sender: Sender) -> (*mut hvq_endpoint, u64) {
        self.sender(if sender == Sender::Client { Sender::Server } else { Sender::Client })
    }
}

impl Pair for C {
    fn open(&mut self, sender: Sender) -> u64 {
        let (endpoint, connection) = self.sender(sender);
        let mut stream = hvq_stream::default();
        // SAFETY: the endpoint is ours.
        let opened = unsafe { hvq_stream_open(endpoint, connection, HVQ_UNIDIRECTIONAL, &mut stream) };
        assert_eq!(opened, HVQ_OK);
        stream.id
    }

    fn write(&mut self, sender: Sender, id: u64, mut left: u64) -> u64 {
        let (endpoint, connection) = self.sender(sender);
        let stream = hvq_stream { connection, id };
        while left > 0 {
            let part = &self.block[..BLOCK.min(left as usize)];
            let mut written = 0;
            // SAFETY: the endpoint is ours, and so are the bytes.
            let result =
                unsafe { hvq_stream_write(endpoint, stream, part.as_ptr().cast(), part.len(), &mut written) };
            match result {
                HVQ_OK => left -= written as u64,
                HVQ_ERR_BLOCKED => return left,
                other => panic!("{other}"),
            }
        }
        // SAFETY: as above.
        assert_eq!(unsafe { hvq_stream_finish(endpoint, stream) }, HVQ_OK);
        0
    }

    fn exchange(&mut self) -> u64 {
        let now = self.now;
        self.now += STEP;
        pump(&mut self.server, &mut self.client, now) + pump(&mut self.client, &mut self.server, now)
    }

    fn read(&mut self, sender: Sender, stream: u64) -> u64 {
        let (endpoint, connection) = self.receiver(sender);
        let (mut accepted, mut received) = (hvq_stream::default(), 0);
        let mut chunk = hvq_bytes { data: ptr::null(), length: 0 };
        // SAFETY: the endpoint is ours, and so is everything else.
        unsafe {
            while hvq_stream_accept(endpoint, connection, HVQ_UNIDIRECTIONAL, &mut accepted) == HVQ_OK {}
            let stream = hvq_stream { connection, id: stream };
            while hvq_stream_read_chunk(endpoint, stream, usize::MAX, &mut chunk) == HVQ_OK {
                received += chunk.length as u64;
            }
        }
        received
    }
}
