//! hvq without sockets, over one path or two.

use super::{BLOCK, PATIENCE, STEP};
use crate::contender::hvq::{KeyExchange, client_tls, permit_streams, server_tls};
use crate::contender::{Material, SMALL};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use hvq::transport::connection::{Connection, Datagram, Event, FourTuple, Transmit};
use hvq::transport::endpoint::{ConnectionHandle, Endpoint, Output};
use hvq::transport::stream::{ReadOutcome, WriteError};
use hvq::transport::time::Instant;
use hvq::{ClientConfig, Direction, EndpointConfig, Policy, ServerConfig, StreamId, TransportConfig};
use std::net::SocketAddr;
use std::sync::Arc;

/// The number of paths of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paths {
    /// One, with policy `single`.
    One,
    /// Two, with policy `hvc`.
    Two,
}

/// One end, and the connection that it has now.
struct End {
    endpoint: Endpoint,
    connection: Option<ConnectionHandle>,
    is_connected: bool,
    sent: u64,
}

pub struct Pair {
    client: End,
    server: End,
    config: ClientConfig,
    paths: Paths,
    now: Instant,
    unanswered: Vec<StreamId>,
}

fn tuple(path: u16) -> FourTuple {
    let address = |port: u16| SocketAddr::from(([127, 0, 0, 1], port));
    FourTuple { local: address(1000 + path), remote: address(443 + path) }
}

impl Pair {
    pub fn new(material: &Material, datagram: u16, paths: Paths, exchange: KeyExchange) -> Result<Self> {
        let policy = if paths == Paths::Two { Policy::Hvc } else { Policy::Single(None) };
        let mut transport = TransportConfig::new(Arc::new(move || policy.scheduler()));
        transport.set_datagram_size(usize::from(datagram).into());
        permit_streams(&mut transport);
        let transport = Arc::new(transport);
        let server = ServerConfig::new(server_tls(material)?, transport.clone());
        let tls = client_tls(material, exchange)?;
        let end = |server, seed| End {
            endpoint: Endpoint::new(EndpointConfig::default(), server, [seed; 32]),
            connection: None,
            is_connected: false,
            sent: 0,
        };
        Ok(Self {
            client: end(None, 1),
            server: end(Some(server), 2),
            config: ClientConfig::new(tls, transport),
            paths,
            now: Instant::from_nanos(1_000_000_000),
            unanswered: Vec::new(),
        })
    }

    /// Both ends say all they have to say, and half a round trip passes.
    fn exchange(&mut self) {
        pump(&mut self.server, &mut self.client, self.now);
        pump(&mut self.client, &mut self.server, self.now);
        self.now += STEP;
    }

    fn close(&mut self) {
        for end in [&mut self.client, &mut self.server] {
            if let Some(connection) = end.connection.take().and_then(|handle| end.endpoint.connection(handle))
            {
                connection.close(0, b"", self.now);
            }
            end.is_connected = false;
        }
        // Closed connections are remembered for three probe timeouts.
        for _ in 0..4 {
            self.exchange();
        }
        self.now += STEP * PATIENCE;
        self.exchange();
    }
}

/// Carries everything that `from` has to send to `to`.
fn pump(from: &mut End, to: &mut End, now: Instant) {
    loop {
        match from.endpoint.poll(now) {
            Output::Transmit(transmit) => from.sent += carry(&transmit, &mut to.endpoint, now),
            Output::Event(handle, Event::Connected) => {
                from.connection = Some(handle);
                from.is_connected = true;
            }
            Output::Event(..) => {}
            Output::Idle(_) => return,
        }
    }
}

fn carry(transmit: &Transmit, to: &mut Endpoint, now: Instant) -> u64 {
    let size = transmit.segment.unwrap_or(transmit.bytes.len()).max(1);
    let mut count = 0;
    for bytes in super::received(&transmit.bytes, size) {
        let (local, remote) = (transmit.remote, transmit.local);
        to.handle(Datagram { local, remote, ecn: transmit.ecn, bytes }, now);
        count += 1;
    }
    count
}

impl super::Pair for Pair {
    fn handshake(&mut self) -> Result<()> {
        self.close();
        self.unanswered.clear();
        self.client.endpoint.connect(&self.config, tuple(0), Material::NAME, self.now)?;
        for _ in 0..PATIENCE {
            self.exchange();
            if self.client.is_connected && self.server.is_connected {
                break;
            }
        }
        ensure!(self.client.is_connected && self.server.is_connected, "hvq did not connect");
        if self.paths == Paths::Two {
            self.exchange();
            self.exchange();
            let handle = self.client.connection.context("connected")?;
            let connection = self.client.endpoint.connection(handle).context("connected")?;
            connection.open_path(tuple(1), self.now)?;
        }
        for _ in 0..4 {
            self.exchange();
        }
        Ok(())
    }

    fn transfer(&mut self, bytes: u64) -> Result<u64> {
        let (server, client) =
            (self.server.connection.context("connected")?, self.client.connection.context("connected")?);
        let before = self.server.sent;
        let connection = self.server.endpoint.connection(server).context("the server's connection")?;
        let stream = connection.open(Direction::Unidirectional).context("no stream may be opened")?;
        let block = Bytes::from(vec![0x5a; BLOCK]);
        let (mut left, mut received, mut idle) = (bytes, 0, 0);
        while received < bytes {
            left = write(&mut self.server.endpoint, server, stream, &block, left)?;
            self.exchange();
            let some = read(&mut self.client.endpoint, client, stream)?;
            received += some;
            idle = if some == 0 { idle + 1 } else { 0 };
            ensure!(idle < PATIENCE, "hvq is stuck after {received} of {bytes} bytes");
        }
        self.exchange();
        read(&mut self.client.endpoint, client, stream)?;
        Ok(self.server.sent - before)
    }

    fn ask(&mut self) -> Result<Option<u64>> {
        let handle = self.client.connection.context("connected")?;
        let connection = self.client.endpoint.connection(handle).context("the client's connection ended")?;
        let Some(id) = connection.open(Direction::Bidirectional) else { return Ok(None) };
        connection.write_bytes(id, Bytes::from_static(&[0xa5; SMALL]))?;
        connection.finish(id)?;
        Ok(Some(id.0))
    }

    fn answer(&mut self) -> Result<()> {
        let handle = self.server.connection.context("connected")?;
        let connection = self.server.endpoint.connection(handle).context("the server's connection ended")?;
        while let Some(id) = connection.accept(Direction::Bidirectional) {
            self.unanswered.push(id);
        }
        for id in std::mem::take(&mut self.unanswered) {
            if read_all(connection, id)? {
                connection.write_bytes(id, Bytes::from_static(&[0x5a; SMALL]))?;
                connection.finish(id)?;
            } else {
                self.unanswered.push(id);
            }
        }
        Ok(())
    }

    fn is_answered(&mut self, id: u64) -> Result<bool> {
        let handle = self.client.connection.context("connected")?;
        let connection = self.client.endpoint.connection(handle).context("the client's connection ended")?;
        read_all(connection, StreamId(id))
    }

    fn carry(&mut self) -> Result<()> {
        self.exchange();
        Ok(())
    }
}

/// Reads a stream; whether its end was there.
fn read_all(connection: &mut Connection, id: StreamId) -> Result<bool> {
    loop {
        match connection.read(id, usize::MAX)? {
            ReadOutcome::Data(_) => {}
            ReadOutcome::Finished => return Ok(true),
            ReadOutcome::Blocked => return Ok(false),
        }
    }
}

/// Writes as much as the stream takes of what is left, and ends it behind the last byte. Returns what is left then.
fn write(
    endpoint: &mut Endpoint,
    handle: ConnectionHandle,
    stream: StreamId,
    block: &Bytes,
    mut left: u64,
) -> Result<u64> {
    let connection = endpoint.connection(handle).context("the server's connection ended")?;
    while left > 0 {
        let part = block.slice(..block.len().min(usize::try_from(left).unwrap_or(block.len())));
        match connection.write_bytes(stream, part) {
            Ok(written) => left -= written as u64,
            Err(WriteError::Blocked) => break,
            Err(error) => return Err(error.into()),
        }
        if left == 0 {
            connection.finish(stream)?;
        }
    }
    Ok(left)
}

/// Reads all that has arrived, and returns how much that was.
fn read(endpoint: &mut Endpoint, handle: ConnectionHandle, stream: StreamId) -> Result<u64> {
    let connection = endpoint.connection(handle).context("the client's connection ended")?;
    while connection.accept(Direction::Unidirectional).is_some() {}
    let mut received = 0;
    while let Ok(ReadOutcome::Data(data)) = connection.read(stream, usize::MAX) {
        received += data.len() as u64;
    }
    Ok(received)
}
