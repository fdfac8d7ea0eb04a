//! Small requests on one connection, and their answers.

use super::lent::Connection;
use super::port::Port;
use super::{accept, account, connect, only};
use crate::contender::{Account, Latency, SMALL, Task};
use crate::meter::Meter;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use quiche::Error;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// From one bidirectional stream of the client to the next (RFC 9000 §2.1).
const NEXT_STREAM: u64 = 4;

/// Answers small requests until the client closes the connection.
pub fn answer(task: &Task) -> Result<Account> {
    let (mut port, mut connection, from) = accept(task)?;
    let mut meter = None;
    let mut buffer = [0; 4096];
    let mut full = Vec::new();
    loop {
        let has_arrived = port.receive(&mut connection)?;
        if meter.is_none() && connection.is_established() {
            meter = Some(Meter::start()?);
        }
        full.retain(|id| respond(&mut connection, *id).is_err());
        for id in connection.readable() {
            if read(&mut connection, id, &mut buffer)?.is_some() && respond(&mut connection, id).is_err() {
                full.push(id);
            }
        }
        port.flush(&mut connection, from)?;
        if connection.is_closed() || connection.is_draining() {
            return account(&meter.context("the client closed the connection at once")?, &port, &connection);
        }
        if !has_arrived {
            port.rest(&mut connection)?;
        }
    }
}

/// The answer, all or nothing: it is as long as a packet has room for.
fn respond(connection: &mut Connection, id: u64) -> Result<()> {
    ensure!(connection.stream_capacity(id)? >= SMALL, "the stream is blocked");
    connection.stream_send_zc(id, Bytes::from_static(&[0x5a; SMALL]), true)?;
    Ok(())
}

/// Reads what is there of stream `id`; `Some` of the bytes read now once it ended.
fn read(connection: &mut Connection, id: u64, buffer: &mut [u8]) -> Result<Option<usize>> {
    let mut length = 0;
    loop {
        match connection.stream_recv(id, buffer) {
            Ok((more, is_end)) => {
                length += more;
                if is_end {
                    return Ok(Some(length));
                }
            }
            Err(Error::Done) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The requests of a client.
struct Asker {
    port: Port,
    connection: Connection,
    under_way: HashMap<u64, Instant>,
    next: u64,
    left: u32,
    /// The rest of a request that went out in part.
    rest: Option<(u64, Bytes)>,
}

/// Sends `count` small requests, always `at_once` of them.
pub fn ask(task: &Task, to: &[SocketAddr], count: u32, at_once: u32) -> Result<Account> {
    let remote = only(to)?;
    let (port, connection) = connect(task, remote)?;
    let mut asker = Asker { port, connection, under_way: HashMap::new(), next: 0, left: count, rest: None };
    let mut times = Vec::with_capacity(usize::try_from(count)?);
    let mut started = None;
    let mut buffer = [0; 4096];
    loop {
        asker.port.flush(&mut asker.connection, remote)?;
        if !asker.port.receive(&mut asker.connection)? {
            asker.port.rest(&mut asker.connection)?;
            continue;
        }
        ensure!(!asker.connection.is_closed(), "the connection ended: {:?}", asker.connection.peer_error());
        if !asker.connection.is_established() {
            continue;
        }
        let meter: Meter = match started {
            Some(meter) => meter,
            None => *started.insert(Meter::start()?),
        };
        asker.collect(&mut times, &mut buffer)?;
        if times.len() >= usize::try_from(count)? {
            let mut account = account(&meter, &asker.port, &asker.connection)?;
            account.latency = Some(Latency::of(times));
            asker.connection.close(true, 0, b"")?;
            asker.port.flush(&mut asker.connection, remote)?;
            return Ok(account);
        }
        asker.fill(at_once)?;
    }
}

impl Asker {
    /// Takes the answers that have arrived.
    fn collect(&mut self, times: &mut Vec<Duration>, buffer: &mut [u8]) -> Result<()> {
        for id in self.connection.readable() {
            if read(&mut self.connection, id, buffer)?.is_some()
                && let Some(started) = self.under_way.remove(&id)
            {
                times.push(started.elapsed());
            }
        }
        Ok(())
    }

    /// Sends requests until `at_once` are under way, or the server permits no more streams, or no more bytes for now.
    fn fill(&mut self, at_once: u32) -> Result<()> {
        loop {
            let (id, data) = match self.rest.take() {
                Some(rest) => rest,
                None if self.left > 0 && self.under_way.len() < usize::try_from(at_once)? => {
                    (self.next, Bytes::from_static(&[0xa5; SMALL]))
                }
                None => return Ok(()),
            };
            let written = match self.connection.stream_send_zc(id, data.clone(), true) {
                Ok((written, _)) => written,
                Err(Error::Done | Error::StreamLimit) => 0,
                Err(error) => return Err(error.into()),
            };
            if id == self.next && written > 0 {
                self.under_way.insert(id, Instant::now());
                self.next += NEXT_STREAM;
                self.left -= 1;
            }
            if written < data.len() {
                self.rest = (id < self.next).then(|| (id, data.slice(written..)));
                return Ok(());
            }
        }
    }
}
