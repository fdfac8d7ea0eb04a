//! quiche, which has no sockets of its own.

use super::{BLOCK, PATIENCE};
use crate::contender::quiche::lent::{self, Connection};
use crate::contender::{Material, SMALL, quiche as contender};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use quiche::{Config, ConnectionId, Error, RecvInfo};
use std::net::{Ipv4Addr, SocketAddr};

/// The first stream of the server that goes one way (RFC 9000 §2.1).
const FIRST_STREAM: u64 = 3;
/// From one such stream to the next.
const NEXT_STREAM: u64 = 4;

/// One end, and the connection that it has now.
struct End {
    config: Config,
    connection: Option<Connection>,
    address: SocketAddr,
    sent: u64,
}

pub struct Pair {
    client: End,
    server: End,
    buffer: Vec<u8>,
    next_stream: u64,
    next_request: u64,
}

impl Pair {
    pub fn new(material: &Material, datagram: u16) -> Result<Self> {
        let end = |config, port| End {
            config,
            connection: None,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            sent: 0,
        };
        Ok(Self {
            client: end(contender::client_config(material, datagram)?, 1000),
            server: end(contender::server_config(material, datagram)?, 443),
            buffer: vec![0; 65_536],
            next_stream: FIRST_STREAM,
            next_request: 0,
        })
    }

    fn exchange(&mut self) -> Result<()> {
        pump(&mut self.server, &mut self.client, &mut self.buffer)?;
        pump(&mut self.client, &mut self.server, &mut self.buffer)
    }
}

/// Carries everything that `from` has to send to `to`. quiche reads the clock itself; nothing here is delayed.
fn pump(from: &mut End, to: &mut End, buffer: &mut [u8]) -> Result<()> {
    let (Some(sender), Some(receiver)) = (&mut from.connection, &mut to.connection) else { return Ok(()) };
    if sender.timeout().is_some_and(|left| left.is_zero()) {
        sender.on_timeout();
    }
    let info = RecvInfo { from: from.address, to: to.address };
    loop {
        let (length, _) = match sender.send(buffer) {
            Ok(sent) => sent,
            Err(Error::Done) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        from.sent += 1;
        match receiver.recv(&mut buffer[..length], info) {
            Ok(_) | Err(Error::Done) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

impl super::Pair for Pair {
    fn handshake(&mut self) -> Result<()> {
        self.next_stream = FIRST_STREAM;
        self.next_request = 0;
        let id = ConnectionId::from_ref(b"hvq-bench client");
        let (local, remote) = (self.client.address, self.server.address);
        let connection = lent::connect(Material::NAME, &id, [local, remote], &mut self.client.config)?;
        self.client.connection = Some(connection);
        let id = ConnectionId::from_ref(b"hvq-bench server");
        self.server.connection = Some(lent::accept(&id, [remote, local], &mut self.server.config)?);
        for _ in 0..PATIENCE {
            self.exchange()?;
            let is_established = |end: &End| end.connection.as_ref().is_some_and(Connection::is_established);
            if is_established(&self.client) && is_established(&self.server) {
                for _ in 0..4 {
                    self.exchange()?;
                }
                return Ok(());
            }
        }
        anyhow::bail!("quiche did not connect")
    }

    fn transfer(&mut self, bytes: u64) -> Result<u64> {
        let before = self.server.sent;
        let stream = self.next_stream;
        self.next_stream += NEXT_STREAM;
        let block = Bytes::from(vec![0x5a; BLOCK]);
        let mut taken = vec![0; BLOCK];
        let (mut left, mut received, mut idle) = (bytes, 0, 0);
        while received < bytes {
            let sender = self.server.connection.as_mut().context("connected")?;
            while left > 0 {
                let part = block.len().min(usize::try_from(left).unwrap_or(block.len()));
                match sender.stream_send_zc(stream, block.slice(..part), part as u64 == left) {
                    Ok((written, _)) => left -= written as u64,
                    Err(Error::Done) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            self.exchange()?;
            let receiver = self.client.connection.as_mut().context("connected")?;
            let before = received;
            while let Ok((length, _)) = receiver.stream_recv(stream, &mut taken) {
                received += length as u64;
            }
            idle = if received == before { idle + 1 } else { 0 };
            ensure!(idle < PATIENCE, "quiche is stuck after {received} of {bytes} bytes");
        }
        self.exchange()?;
        Ok(self.server.sent - before)
    }

    fn ask(&mut self) -> Result<Option<u64>> {
        let connection = self.client.connection.as_mut().context("connected")?;
        match connection.stream_send_zc(self.next_request, Bytes::from_static(&[0xa5; SMALL]), true) {
            Ok((written, _)) => ensure!(written == SMALL, "a request went out in part"),
            Err(Error::Done | Error::StreamLimit) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        self.next_request += NEXT_STREAM;
        Ok(Some(self.next_request - NEXT_STREAM))
    }

    fn answer(&mut self) -> Result<()> {
        let connection = self.server.connection.as_mut().context("connected")?;
        for id in connection.readable() {
            if read_all(connection, id)? {
                let (written, _) = connection.stream_send_zc(id, Bytes::from_static(&[0x5a; SMALL]), true)?;
                ensure!(written == SMALL, "an answer went out in part");
            }
        }
        Ok(())
    }

    fn is_answered(&mut self, id: u64) -> Result<bool> {
        read_all(self.client.connection.as_mut().context("connected")?, id)
    }

    fn carry(&mut self) -> Result<()> {
        self.exchange()
    }
}

/// Reads a stream; whether its end was there.
fn read_all(connection: &mut Connection, id: u64) -> Result<bool> {
    let mut buffer = [0; 4 * SMALL];
    loop {
        match connection.stream_recv(id, &mut buffer) {
            Ok((_, true)) => return Ok(true),
            Ok((_, false)) => {}
            Err(Error::Done) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}
