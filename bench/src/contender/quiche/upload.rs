//! A transfer from the client to the server.

use super::lent::Connection;
use super::{REQUEST, STREAM, accept, account, answer, connect, read_answer, read_request};
use crate::contender::{Account, BLOCK, Task};
use crate::meter::Meter;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use quiche::Error;
use std::net::SocketAddr;

/// Reads what a client sends on one stream, answers with the number of bytes, and waits until the client closes the connection.
pub fn take(task: &Task) -> Result<Account> {
    let (mut port, mut connection, from) = accept(task)?;
    let mut buffer = vec![0; BLOCK];
    let (mut meter, mut received, mut is_answered) = (None, 0, false);
    loop {
        let has_arrived = port.receive(&mut connection)?;
        if meter.is_none() && connection.is_established() {
            meter = Some(Meter::start()?);
        }
        if !is_answered && read(&mut connection, &mut buffer, &mut received)? {
            connection.stream_send(STREAM, &u64::to_be_bytes(received), true)?;
            is_answered = true;
        }
        port.flush(&mut connection, from)?;
        if connection.is_closed() || connection.is_draining() {
            ensure!(is_answered, "the client closed the connection after {received} bytes");
            return account(&meter.context("the client closed the connection at once")?, &port, &connection);
        }
        if !has_arrived {
            port.rest(&mut connection)?;
        }
    }
}

/// Reads what has arrived, if the stream is there yet; whether that was all of it.
fn read(connection: &mut Connection, buffer: &mut [u8], received: &mut u64) -> Result<bool> {
    match read_answer(connection, buffer, received) {
        Err(error) if matches!(error.downcast_ref(), Some(Error::InvalidStreamState(_))) => Ok(false),
        result => result,
    }
}

/// Sends `bytes` bytes on one stream, and waits until the server says that it has them.
pub fn give(task: &Task, remote: SocketAddr, bytes: u64) -> Result<Account> {
    let (mut port, mut connection) = connect(task, remote)?;
    let block = Bytes::from(vec![0x5a; BLOCK]);
    let mut answered = Vec::with_capacity(REQUEST);
    let (mut meter, mut left) = (None, bytes);
    loop {
        let has_arrived = port.receive(&mut connection)?;
        ensure!(!connection.is_closed(), "the connection ended: {:?}", connection.peer_error());
        if meter.is_none() && connection.is_established() {
            meter = Some(Meter::start()?);
        }
        if let Some(meter) = &meter {
            answer(&mut connection, &block, &mut left)?;
            if read_request(&mut connection, &mut answered)? {
                ensure!(answered == bytes.to_be_bytes(), "the server has not got {bytes} bytes");
                let account = account(meter, &port, &connection)?;
                connection.close(true, 0, b"")?;
                port.flush(&mut connection, remote)?;
                return Ok(account);
            }
        }
        port.flush(&mut connection, remote)?;
        if !has_arrived {
            port.rest(&mut connection)?;
        }
    }
}
