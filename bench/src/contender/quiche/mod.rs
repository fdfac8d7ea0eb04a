//! quiche in a loop around one socket, on one thread.
//!
//! The loop is that of quiche's own server: read a batch, let the connection work, send until nothing is left, wait only if
//! nothing had arrived. It fills a buffer with packets and hands those of one size over in one system call with UDP
//! segmentation offload, up to the connection's send quantum. It is lent what it sends. It receives with recvmmsg and coalesced
//! datagrams. Both go through quinn-udp, as those of the other contenders do. Windows are those that quiche's client program sets
//! by default; pacing is off, because quiche leaves it to the kernel, which does not pace loopback.

pub mod lent;
mod many;
mod port;
mod requests;
mod upload;

use super::{ALPN, Account, BLOCK, IDLE_TIMEOUT, Job, Line, Material, REQUEST, STREAMS, Side, Task, say};
use crate::meter::Meter;
use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use lent::Connection;
use nix::poll::PollFlags;
use port::{BATCH, Port};
use quiche::{Config, ConnectionId, Error};
use std::net::SocketAddr;
use std::path::Path;

/// The first bidirectional stream of the client (RFC 9000 §2.1).
const STREAM: u64 = 0;
/// Does the work of `task`, for the contender that has no sockets of its own.
pub fn work(task: &Task) -> Result<Account> {
    match (&task.side, task.job) {
        (Side::Server, Job::Bulk { .. }) => serve(task),
        (Side::Client(to), Job::Bulk { bytes }) => fetch(task, to, bytes),
        (Side::Server, Job::Upload { .. }) => upload::take(task),
        (Side::Client(to), Job::Upload { bytes }) => upload::give(task, only(to)?, bytes),
        (Side::Server, Job::Requests { .. }) => requests::answer(task),
        (Side::Client(to), Job::Requests { count, at_once }) => requests::ask(task, to, count, at_once),
        (Side::Server, Job::Handshakes { count }) => many::greet(task, count),
        (Side::Client(to), Job::Handshakes { count }) => many::shake_hands(task, only(to)?, count),
        (_, Job::Many { .. }) => bail!("quiche takes no part in transfers on many connections"),
        (Side::Server, Job::Idle { connections }) => many::hold(task, connections),
        (Side::Client(to), Job::Idle { connections }) => many::idle(task, only(to)?, connections),
    }
}

fn only(to: &[SocketAddr]) -> Result<SocketAddr> {
    let [remote] = to else { bail!("quiche has one address of its server, not {}", to.len()) };
    Ok(*remote)
}

/// Listens, and accepts the connection that arrives first.
fn accept(task: &Task) -> Result<(Port, Connection, SocketAddr)> {
    let port = Port::open(task.datagram)?;
    say(&Line::Listening(vec![port.local]))?;
    port.wait(PollFlags::POLLIN, None)?;
    let (id, from) = port.first_initial()?;
    let config = &mut server_config(&task.material, task.datagram)?;
    let connection = lent::accept(&id, [port.local, from], config)?;
    Ok((port, connection, from))
}

/// Begins a connection to `remote`.
fn connect(task: &Task, remote: SocketAddr) -> Result<(Port, Connection)> {
    let port = Port::open(task.datagram)?;
    let id = ConnectionId::from_ref(b"hvq-bench client");
    let config = &mut client_config(&task.material, task.datagram)?;
    let connection = lent::connect(Material::NAME, &id, [port.local, remote], config)?;
    Ok((port, connection))
}

/// Listens, answers one request and waits until the client closes the connection.
fn serve(task: &Task) -> Result<Account> {
    let (mut port, mut connection, from) = accept(task)?;
    let block = Bytes::from(vec![0x5a; BLOCK]);
    let mut request = Vec::with_capacity(REQUEST);
    let mut started = None;
    let mut left = 0;
    loop {
        let has_arrived = port.receive(&mut connection)?;
        if started.is_none() && read_request(&mut connection, &mut request)? {
            left = u64::from_be_bytes(request.as_slice().try_into().context("a request has eight bytes")?);
            started = Some(Meter::start()?);
        }
        if started.is_some() {
            answer(&mut connection, &block, &mut left)?;
        }
        port.flush(&mut connection, from)?;
        if connection.is_closed() || connection.is_draining() {
            let meter = started.context("the client closed the connection before its request")?;
            ensure!(left == 0, "the client closed the connection with {left} bytes to send");
            return account(&meter, &port, &connection);
        }
        if !has_arrived {
            port.rest(&mut connection)?;
        }
    }
}

/// Connects, sends a request and reads the answer.
fn fetch(task: &Task, to: &[SocketAddr], bytes: u64) -> Result<Account> {
    let remote = only(to)?;
    let (mut port, mut connection) = connect(task, remote)?;
    let mut buffer = vec![0; BLOCK];
    let mut started = None;
    let mut received = 0;
    loop {
        port.flush(&mut connection, remote)?;
        if !port.receive(&mut connection)? {
            port.rest(&mut connection)?;
            continue;
        }
        ensure!(!connection.is_closed(), "the connection ended: {:?}", connection.peer_error());
        let Some(meter) = &started else {
            if connection.is_established() {
                started = Some(Meter::start()?);
                connection.stream_send(STREAM, &bytes.to_be_bytes(), true)?;
            }
            continue;
        };
        if read_answer(&mut connection, &mut buffer, &mut received)? {
            ensure!(received == bytes, "{received} bytes arrived instead of {bytes}");
            let account = account(meter, &port, &connection)?;
            connection.close(true, 0, b"")?;
            port.flush(&mut connection, remote)?;
            return Ok(account);
        }
    }
}

/// Returns the configuration of a server that sends datagrams of `datagram` bytes.
pub fn server_config(material: &Material, datagram: u16) -> Result<Config> {
    let mut config = config(datagram)?;
    config.load_cert_chain_from_pem_file(text(&material.certificate)?)?;
    config.load_priv_key_from_pem_file(text(&material.key)?)?;
    Ok(config)
}

/// Returns the configuration of a client that sends datagrams of `datagram` bytes.
pub fn client_config(material: &Material, datagram: u16) -> Result<Config> {
    let mut config = config(datagram)?;
    config.load_verify_locations_from_file(text(&material.authority)?)?;
    config.verify_peer(true);
    Ok(config)
}

fn config(datagram: u16) -> Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[ALPN])?;
    config.set_curves_list("X25519")?;
    config.set_cc_algorithm_name("cubic")?;
    config.enable_pacing(false);
    config.set_max_idle_timeout(u64::try_from(IDLE_TIMEOUT.as_millis())?);
    config.set_max_send_udp_payload_size(usize::from(datagram));
    config.set_max_recv_udp_payload_size(BATCH - 1);
    config.set_initial_max_data(10_000_000);
    config.set_max_connection_window(25_165_824);
    config.set_initial_max_stream_data_bidi_local(1_000_000);
    config.set_initial_max_stream_data_bidi_remote(1_000_000);
    config.set_max_stream_window(16_777_216);
    config.set_initial_max_stream_data_uni(1_000_000);
    config.set_initial_max_streams_bidi(STREAMS.into());
    config.set_initial_max_streams_uni(STREAMS.into());
    Ok(config)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8, which quiche wants", path.display()))
}

/// Returns true if the whole request has arrived.
fn read_request(connection: &mut Connection, request: &mut Vec<u8>) -> Result<bool> {
    let mut part = [0; REQUEST];
    loop {
        match connection.stream_recv(STREAM, &mut part) {
            Ok((length, is_end)) => {
                request.extend_from_slice(&part[..length]);
                if is_end {
                    return Ok(true);
                }
            }
            Err(Error::Done | Error::InvalidStreamState(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Writes as much of what is `left` of a transfer as the connection takes.
fn answer(connection: &mut Connection, block: &Bytes, left: &mut u64) -> Result<()> {
    while *left > 0 {
        let part = block.len().min(usize::try_from(*left).unwrap_or(block.len()));
        match connection.stream_send_zc(STREAM, block.slice(..part), part as u64 == *left) {
            Ok((written, _)) => *left -= written as u64,
            Err(Error::Done) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads what has arrived of a transfer; whether that was all of it.
fn read_answer(connection: &mut Connection, buffer: &mut [u8], received: &mut u64) -> Result<bool> {
    loop {
        match connection.stream_recv(STREAM, buffer) {
            Ok((length, is_end)) => {
                *received += length as u64;
                if is_end {
                    return Ok(true);
                }
            }
            Err(Error::Done) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

fn account(meter: &Meter, port: &Port, connection: &Connection) -> Result<Account> {
    let usage = meter.stop()?;
    let packets_lost = connection.stats().lost as u64;
    Ok(Account {
        usage,
        datagrams_sent: port.datagrams_sent,
        send_calls: port.send_calls,
        packets_lost,
        ..Account::default()
    })
}
