//! The pair in Rust.

use super::{BLOCK, DATAGRAM, Pair, STEP, Sender, identity};
use bytes::BytesMut;
use hvq_scheduler::Policy;
use hvq_transport::connection::{Connection, Datagram, Event, FourTuple, TransportConfig};
use hvq_transport::crypto::session::{ClientTls, Identity, ServerTls, Verify};
use hvq_transport::endpoint::{
    ClientConfig, ConnectionHandle, Endpoint, EndpointConfig, Output, ServerConfig,
};
use hvq_transport::stream::{Direction, ReadOutcome, StreamId, WriteError};
use hvq_transport::time::Instant;
use std::net::SocketAddr;
use std::sync::Arc;

/// One end.
struct End {
    endpoint: Endpoint,
    connection: Option<ConnectionHandle>,
    copies: Copies,
}

/// Memory for copies of batches, used again, as the C interface has it: what is compared is the interface alone.
#[derive(Default)]
struct Copies {
    buffers: Vec<BytesMut>,
    next: usize,
}

impl Copies {
    fn copy(&mut self, bytes: &[u8]) -> BytesMut {
        let count = self.buffers.len();
        let order = (0..count).map(|step| (self.next + step) % count);
        let free = order.into_iter().find(|index| self.buffers[*index].try_reclaim(bytes.len()));
        self.next = free.unwrap_or(count);
        if free.is_none() {
            self.buffers.push(BytesMut::with_capacity(128 << 10));
        }
        let buffer = &mut self.buffers[self.next];
        buffer.extend_from_slice(bytes);
        buffer.split()
    }
}

/// The pair.
pub struct Rust {
    client: End,
    server: End,
    now: u64,
    block: Vec<u8>,
}

/// The number of paths of a pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paths {
    One,
    /// Two, both of which the policy uses.
    Two,
}

impl Rust {
    /// A connected pair that sends batches of so many datagrams at most.
    pub fn new(segments: usize) -> Self {
        Self::over(Paths::One, segments)
    }

    /// The same, over one path or two.
    pub fn over(paths: Paths, segments: usize) -> Self {
        let (chain, key) = identity();
        let policy = if paths == Paths::Two { Policy::Hvc } else { Policy::Single(None) };
        let mut transport = TransportConfig::new(Arc::new(move || policy.scheduler()));
        transport.set_datagram_size(usize::from(DATAGRAM).into());
        transport.set_segments(segments);
        let transport = Arc::new(transport);
        let server_tls = ServerTls::builder(Identity::Pem { chain: chain.clone().into(), key: key.into() });
        let server_tls = server_tls.alpn(["test"]).build().expect("the identity is valid");
        let client_tls = ClientTls::builder().alpn(["test"]).verify(Verify::CaPem(chain.into()));
        let client_tls = client_tls.build().expect("the certificate is valid");
        let end = |server, seed| End {
            endpoint: Endpoint::new(EndpointConfig::default(), server, [seed; 32]),
            connection: None,
            copies: Copies::default(),
        };
        let mut pair = Self {
            client: end(None, 1),
            server: end(Some(ServerConfig::new(server_tls, transport.clone())), 2),
            now: 1_000_000_000,
            block: vec![0x5a; BLOCK],
        };
        let config = ClientConfig::new(client_tls, transport);
        let now = Instant::from_nanos(pair.now);
        pair.client
            .endpoint
            .connect(&config, route(0), "localhost", now)
            .expect("a connection can be started");
        for _ in 0..100 {
            pair.exchange();
        }
        if paths == Paths::Two {
            let now = Instant::from_nanos(pair.now);
            pair.sender(Sender::Client).open_path(route(1), now).expect("both speak multipath");
            for _ in 0..100 {
                pair.exchange();
            }
        }
        assert!(pair.client.connection.is_some() && pair.server.connection.is_some());
        pair
    }
}

/// The addresses of path `number`.
fn route(number: u16) -> FourTuple {
    let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    FourTuple { local: address(1000 + number), remote: address(2000 + number) }
}

/// Carries everything that `from` has to say to `to`.
fn pump(from: &mut End, to: &mut End, now: Instant) -> u64 {
    let mut count = 0;
    loop {
        match from.endpoint.poll(now) {
            Output::Transmit(transmit) => {
                let mut left = to.copies.copy(&transmit.bytes);
                let size = transmit.segment.unwrap_or(left.len()).max(1);
                while !left.is_empty() {
                    let bytes = left.split_to(size.min(left.len()));
                    let (local, remote) = (transmit.remote, transmit.local);
                    to.endpoint.handle(Datagram { local, remote, ecn: transmit.ecn, bytes }, now);
                    count += 1;
                }
                from.endpoint.recycle(transmit.bytes);
            }
            Output::Event(handle, Event::Connected) => from.connection = Some(handle),
            Output::Event(..) => {}
            Output::Idle(_) => return count,
        }
    }
}

impl Rust {
    /// The connection of the sender, or of its peer.
    fn sender(&mut self, sender: Sender) -> &mut Connection {
        let end = if sender == Sender::Client { &mut self.client } else { &mut self.server };
        end.endpoint.connection(end.connection.expect("connected")).expect("connected")
    }

    fn receiver(&mut self, sender: Sender) -> &mut Connection {
        self.sender(if sender == Sender::Client { Sender::Server } else { Sender::Client })
    }
}

impl Pair for Rust {
    fn open(&mut self, sender: Sender) -> u64 {
        self.sender(sender).open(Direction::Unidirectional).expect("the peer permits it").0
    }

    fn write(&mut self, sender: Sender, stream: u64, mut left: u64) -> u64 {
        let block = std::mem::take(&mut self.block);
        let connection = self.sender(sender);
        while left > 0 {
            let part = &block[..BLOCK.min(left as usize)];
            match connection.write(StreamId(stream), part) {
                Ok(written) => left -= written as u64,
                Err(WriteError::Blocked) => break,
                Err(error) => panic!("{error}"),
            }
        }
        if left == 0 {
            connection.finish(StreamId(stream)).expect("it is open");
        }
        self.block = block;
        left
    }

    fn exchange(&mut self) -> u64 {
        let now = Instant::from_nanos(self.now);
        self.now += STEP;
        pump(&mut self.server, &mut self.client, now) + pump(&mut self.client, &mut self.server, now)
    }

    fn read(&mut self, sender: Sender, stream: u64) -> u64 {
        let connection = self.receiver(sender);
        while connection.accept(Direction::Unidirectional).is_some() {}
        let mut received = 0;
        while let Ok(ReadOutcome::Data(data)) = connection.read(StreamId(stream), usize::MAX) {
            received += data.len() as u64;
        }
        received
    }
}
