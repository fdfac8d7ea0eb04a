//! TCP of the kernel with TLS 1.3 by rustls and `ring`, on blocking sockets: the plain way to move bytes, for comparison.
//!
//! Segments have the size of the others' datagrams (TCP_MAXSEG), and the kernel cuts and joins them as it does datagrams with
//! segmentation offload. Congestion control is the kernel's, CUBIC by default, and windows are those that it chooses.

use super::{ALPN, Account, BLOCK, Job, Line, Material, REQUEST, Side, Task, say};
use crate::meter::Meter;
use anyhow::{Context, Result, bail, ensure};
use nix::sys::socket::{setsockopt, sockopt};
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Bytes by which TCP's header is longer than that of UDP, so that packets are of one size. TCP_MAXSEG counts options as data.
const LONGER: u16 = 12;

/// Does the work of `task`.
pub fn work(task: &Task) -> Result<Account> {
    match (&task.side, task.job) {
        (Side::Server, Job::Bulk { .. }) => send(task, listen(task)?),
        (Side::Client(to), Job::Bulk { bytes }) => fetch(task, to, bytes),
        (Side::Server, Job::Upload { .. }) => take(task, listen(task)?),
        (Side::Client(to), Job::Upload { bytes }) => give(task, to, bytes),
        (_, job) => bail!("TCP takes no part in {job:?}"),
    }
}

fn listen(task: &Task) -> Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // The other end sends no larger ones, either: it is told in the handshake.
    setsockopt(&listener, sockopt::TcpMaxSeg, &u32::from(task.datagram - LONGER))?;
    say(&Line::Listening(vec![listener.local_addr()?]))?;
    Ok(listener)
}

/// Accepts the first connection.
fn accept(task: &Task, listener: &TcpListener) -> Result<StreamOwned<ServerConnection, TcpStream>> {
    let (socket, _) = listener.accept()?;
    socket.set_nodelay(true)?;
    Ok(StreamOwned::new(ServerConnection::new(Arc::new(task.material.rustls_server(ALPN)?))?, socket))
}

/// Connects, and completes the handshake.
fn connect(task: &Task, to: &[SocketAddr]) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let [remote] = to else { bail!("one address of the server is needed, not {}", to.len()) };
    let socket = TcpStream::connect(remote)?;
    socket.set_nodelay(true)?;
    let config = Arc::new(task.material.rustls_client(ALPN)?);
    let mut stream = StreamOwned::new(ClientConnection::new(config, Material::NAME.try_into()?)?, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

/// Answers one request with as many bytes as it asks for, and waits until the client closes the connection.
fn send(task: &Task, listener: TcpListener) -> Result<Account> {
    let mut stream = accept(task, &listener)?;
    let mut request = [0; REQUEST];
    stream.read_exact(&mut request)?;
    let meter = Meter::start()?;
    write_all(&mut stream, u64::from_be_bytes(request))?;
    wait_for_end(&mut stream)?;
    account(&meter)
}

fn fetch(task: &Task, to: &[SocketAddr], bytes: u64) -> Result<Account> {
    let mut stream = connect(task, to)?;
    let meter = Meter::start()?;
    stream.write_all(&bytes.to_be_bytes())?;
    read_all(&mut stream, bytes)?;
    let account = account(&meter);
    end(stream)?;
    account
}

/// Reads what a client sends, answers with the number of bytes, and waits until the client closes the connection.
fn take(task: &Task, listener: TcpListener) -> Result<Account> {
    let mut stream = accept(task, &listener)?;
    let mut request = [0; REQUEST];
    stream.read_exact(&mut request)?;
    let meter = Meter::start()?;
    read_all(&mut stream, u64::from_be_bytes(request))?;
    stream.write_all(&request)?;
    let account = account(&meter);
    wait_for_end(&mut stream)?;
    account
}

/// Sends a length and so many bytes, and waits until the server says that it has them.
fn give(task: &Task, to: &[SocketAddr], bytes: u64) -> Result<Account> {
    let mut stream = connect(task, to)?;
    let meter = Meter::start()?;
    stream.write_all(&bytes.to_be_bytes())?;
    write_all(&mut stream, bytes)?;
    let mut answer = [0; REQUEST];
    stream.read_exact(&mut answer)?;
    ensure!(answer == bytes.to_be_bytes(), "the server has not got {bytes} bytes");
    let account = account(&meter);
    end(stream)?;
    account
}

fn write_all(stream: &mut impl Write, length: u64) -> Result<()> {
    let block = vec![0x5a; BLOCK];
    let mut left = length;
    while left > 0 {
        let part = BLOCK.min(usize::try_from(left).unwrap_or(BLOCK));
        stream.write_all(&block[..part])?;
        left -= part as u64;
    }
    Ok(stream.flush()?)
}

fn read_all(stream: &mut impl Read, length: u64) -> Result<()> {
    let mut buffer = vec![0; BLOCK];
    let mut left = length;
    while left > 0 {
        let read = stream.read(&mut buffer)?;
        ensure!(read > 0, "the connection ended {left} bytes too early");
        left = left.checked_sub(read as u64).context("more bytes came than were asked for")?;
    }
    Ok(())
}

/// Closes the connection.
fn end(mut stream: StreamOwned<ClientConnection, TcpStream>) -> Result<()> {
    stream.conn.send_close_notify();
    Ok(stream.flush()?)
}

fn wait_for_end(stream: &mut StreamOwned<ServerConnection, TcpStream>) -> Result<()> {
    ensure!(stream.read(&mut [0; 1])? == 0, "a second request came");
    Ok(())
}

fn account(meter: &Meter) -> Result<Account> {
    Ok(Account { usage: meter.stop()?, ..Account::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Contender;
    use std::thread;

    #[test]
    fn a_transfer_arrives_either_way() {
        let folder = tempfile::tempdir().unwrap();
        let material = Material::create(folder.path()).unwrap();
        let bytes = BLOCK as u64 + 1;
        type Server = fn(&Task, TcpListener) -> Result<Account>;
        type Client = fn(&Task, &[SocketAddr], u64) -> Result<Account>;
        let ways: [(Server, Client); 2] = [(send, fetch), (take, give)];
        for (server, client) in ways {
            let (job, datagram) = (Job::Upload { bytes }, 1_200);
            let (contender, side, material) = (Contender::TcpTls, Side::Server, material.clone());
            let task = Task { contender, side, job, datagram, material };
            let listener = listen(&task).unwrap();
            let to = [listener.local_addr().unwrap()];
            let of_client = task.clone();
            let client = thread::spawn(move || client(&of_client, &to, bytes).unwrap());
            server(&task, listener).unwrap();
            assert!(client.join().unwrap().usage.elapsed > 0.0);
        }
    }
}
