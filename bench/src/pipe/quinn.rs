//! quinn-proto: quinn without sockets.

use super::{BLOCK, PATIENCE, STEP};
use crate::contender::{Material, quinn as contender};
use anyhow::{Context, Result, ensure};
use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, StreamId,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

/// Datagrams of a batch: what segmentation offload would take.
const BATCH: usize = 10;

/// One end, and the connection that it has now.
struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
    is_connected: bool,
    sent: u64,
}

pub struct Pair {
    client: End,
    server: End,
    config: ClientConfig,
    now: Instant,
}

impl Pair {
    pub fn new(material: &Material, datagram: u16) -> Result<Self> {
        let server = contender::server_config(material, datagram)?;
        let config = contender::client_config(material, datagram)?;
        let end = |server, port| End {
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), server, false, None),
            connection: None,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            is_connected: false,
            sent: 0,
        };
        Ok(Self {
            client: end(None, 1000),
            server: end(Some(Arc::new(server)), 443),
            config,
            now: Instant::now(),
        })
    }

    fn exchange(&mut self) -> Result<()> {
        pump(&mut self.server, &mut self.client, self.now)?;
        pump(&mut self.client, &mut self.server, self.now)?;
        self.now += STEP;
        Ok(())
    }
}

/// Carries everything that `from` has to send to `to`.
fn pump(from: &mut End, to: &mut End, now: Instant) -> Result<()> {
    from.settle(now);
    let mut batch = Vec::new();
    while let Some((_, connection)) = &mut from.connection {
        batch.clear();
        let Some(transmit) = connection.poll_transmit(now, BATCH, &mut batch) else { break };
        let size = transmit.segment_size.unwrap_or(transmit.size).max(1);
        for payload in super::received(&batch[..transmit.size], size) {
            from.sent += 1;
            to.receive(from.address, payload, now)?;
        }
    }
    from.settle(now);
    Ok(())
}

impl End {
    fn receive(&mut self, from: SocketAddr, payload: BytesMut, now: Instant) -> Result<()> {
        let local = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
        let mut answer = Vec::new();
        match self.endpoint.handle(now, from, local, None, payload, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some((own, connection)) = &mut self.connection
                    && *own == handle
                {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut answer, None);
                self.connection = Some(accepted.map_err(|error| error.cause)?);
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
        Ok(())
    }

    /// Timers, events, and what endpoint and connection tell each other.
    fn settle(&mut self, now: Instant) {
        let Some((handle, connection)) = &mut self.connection else { return };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            self.is_connected |= matches!(event, Event::Connected);
        }
    }
}

impl super::Pair for Pair {
    fn handshake(&mut self) -> Result<()> {
        for end in [&mut self.client, &mut self.server] {
            end.connection = None;
            end.is_connected = false;
        }
        let (address, config) = (self.server.address, self.config.clone());
        let connected = self.client.endpoint.connect(self.now, config, address, Material::NAME)?;
        self.client.connection = Some(connected);
        for _ in 0..PATIENCE {
            self.exchange()?;
            if self.client.is_connected && self.server.is_connected {
                break;
            }
        }
        ensure!(self.client.is_connected && self.server.is_connected, "quinn did not connect");
        for _ in 0..4 {
            self.exchange()?;
        }
        Ok(())
    }

    fn transfer(&mut self, bytes: u64) -> Result<u64> {
        let before = self.server.sent;
        let (_, connection) = self.server.connection.as_mut().context("connected")?;
        let stream = connection.streams().open(Dir::Uni).context("no stream may be opened")?;
        let block = Bytes::from(vec![0x5a; BLOCK]);
        let (mut left, mut received, mut idle) = (bytes, 0, 0);
        while received < bytes {
            let (_, connection) = self.server.connection.as_mut().context("connected")?;
            left = write(connection, stream, &block, left)?;
            self.exchange()?;
            let (_, connection) = self.client.connection.as_mut().context("connected")?;
            let some = read(connection, stream)?;
            received += some;
            idle = if some == 0 { idle + 1 } else { 0 };
            ensure!(idle < PATIENCE, "quinn is stuck after {received} of {bytes} bytes");
        }
        self.exchange()?;
        Ok(self.server.sent - before)
    }
}

/// Writes as much as the stream takes of what is left, and ends it behind the last byte. Returns what is left then.
fn write(connection: &mut Connection, stream: StreamId, block: &Bytes, mut left: u64) -> Result<u64> {
    let mut stream = connection.send_stream(stream);
    while left > 0 {
        let part = block.slice(..block.len().min(usize::try_from(left).unwrap_or(block.len())));
        let Ok(written) = stream.write_chunks(&mut [part]) else { break };
        left -= written.bytes as u64;
        if left == 0 {
            stream.finish()?;
        }
    }
    Ok(left)
}

/// Reads all that has arrived, and returns how much that was.
fn read(connection: &mut Connection, stream: StreamId) -> Result<u64> {
    while connection.streams().accept(Dir::Uni).is_some() {}
    let mut stream = connection.recv_stream(stream);
    let Ok(mut chunks) = stream.read(true) else { return Ok(0) };
    let mut received = 0;
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        received += chunk.bytes.len() as u64;
    }
    let _told = chunks.finalize();
    Ok(received)
}
