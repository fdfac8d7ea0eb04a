//! quiche in a loop around one socket, on one thread.
//!
//! The loop is that of quiche's own programs: read until nothing is left, let the connection work, send until nothing is
//! left, wait. Where the small examples send each packet alone, this one does as quiche's larger programs do: it fills a
//! buffer with packets of one size, up to the connection's send quantum, and hands them over in one system call with UDP
//! segmentation offload. It receives with recvmmsg and coalesced datagrams. Both go through quinn-udp, as those of the
//! other contenders do. Windows are those that quiche's client program sets by default; pacing is off, because quiche
//! leaves it to the kernel, which does not pace loopback.

use super::{ALPN, Account, BLOCK, Line, Material, REQUEST, SOCKET_BUFFER, Task, say};
use crate::meter::Meter;
use anyhow::{Context, Result, bail, ensure};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quiche::{Config, Connection, ConnectionId, Error, Header, RecvInfo};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use std::io::{ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

/// The first bidirectional stream of the client (RFC 9000 §2.1).
const STREAM: u64 = 0;
/// Bytes of a receive buffer: the largest coalesced batch.
const BATCH: usize = 1 << 16;

/// Listens, answers one request and waits until the client closes the connection.
pub fn serve(task: &Task) -> Result<Account> {
    let mut port = Port::open(task.datagram)?;
    say(&Line::Listening(vec![port.local]))?;
    port.wait(PollFlags::POLLIN, None)?;
    let (id, from) = port.first_initial()?;
    let mut connection =
        quiche::accept(&id, None, port.local, from, &mut server_config(&task.material, task.datagram)?)?;
    let block = vec![0x5a; BLOCK];
    let mut request = Vec::with_capacity(REQUEST);
    let mut started = None;
    let mut left = 0;
    loop {
        port.receive(&mut connection)?;
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
        port.rest(&mut connection)?;
    }
}

/// Connects, sends a request and reads the answer.
pub fn fetch(task: &Task, to: &[SocketAddr]) -> Result<Account> {
    let [remote] = to else { bail!("quiche has one address of its server, not {}", to.len()) };
    let mut port = Port::open(task.datagram)?;
    let id = ConnectionId::from_ref(b"hvq-bench client");
    let name = Some(Material::NAME);
    let mut connection =
        quiche::connect(name, &id, port.local, *remote, &mut client_config(&task.material, task.datagram)?)?;
    let mut buffer = vec![0; BLOCK];
    let mut started = None;
    let mut received = 0;
    loop {
        port.flush(&mut connection, *remote)?;
        port.rest(&mut connection)?;
        port.receive(&mut connection)?;
        ensure!(!connection.is_closed(), "the connection ended: {:?}", connection.peer_error());
        let Some(meter) = &started else {
            if connection.is_established() {
                started = Some(Meter::start()?);
                connection.stream_send(STREAM, &task.bytes.to_be_bytes(), true)?;
            }
            continue;
        };
        if read_answer(&mut connection, &mut buffer, &mut received)? {
            ensure!(received == task.bytes, "{received} bytes arrived instead of {}", task.bytes);
            let account = account(meter, &port, &connection)?;
            connection.close(true, 0, b"")?;
            port.flush(&mut connection, *remote)?;
            return Ok(account);
        }
    }
}

/// What a server is made from that sends datagrams of `datagram` bytes.
pub fn server_config(material: &Material, datagram: u16) -> Result<Config> {
    let mut config = config(datagram)?;
    config.load_cert_chain_from_pem_file(text(&material.certificate)?)?;
    config.load_priv_key_from_pem_file(text(&material.key)?)?;
    Ok(config)
}

/// What a client is made from that sends datagrams of `datagram` bytes.
pub fn client_config(material: &Material, datagram: u16) -> Result<Config> {
    let mut config = config(datagram)?;
    config.load_verify_locations_from_file(text(&material.certificate)?)?;
    config.verify_peer(true);
    Ok(config)
}

fn config(datagram: u16) -> Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[ALPN])?;
    config.set_cc_algorithm_name("cubic")?;
    config.enable_pacing(false);
    config.set_max_idle_timeout(30_000);
    config.set_max_send_udp_payload_size(usize::from(datagram));
    config.set_max_recv_udp_payload_size(BATCH - 1);
    config.set_initial_max_data(10_000_000);
    config.set_max_connection_window(25_165_824);
    config.set_initial_max_stream_data_bidi_local(1_000_000);
    config.set_initial_max_stream_data_bidi_remote(1_000_000);
    config.set_max_stream_window(16_777_216);
    config.set_initial_max_stream_data_uni(1_000_000);
    config.set_initial_max_streams_bidi(100);
    config.set_initial_max_streams_uni(100);
    Ok(config)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8, which quiche wants", path.display()))
}

/// Whether the whole request has arrived.
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

/// Writes as much of what is `left` of the answer as the connection takes.
fn answer(connection: &mut Connection, block: &[u8], left: &mut u64) -> Result<()> {
    while *left > 0 {
        let part = block.len().min(usize::try_from(*left).unwrap_or(block.len()));
        match connection.stream_send(STREAM, &block[..part], part as u64 == *left) {
            Ok(written) => *left -= written as u64,
            Err(Error::Done) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Reads what has arrived of the answer; whether that was all of it.
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
    Ok(Account { usage, datagrams_sent: port.datagrams_sent, send_calls: port.send_calls, packets_lost })
}

/// A socket and the buffers of its batches.
struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    datagram: usize,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    datagrams_sent: u64,
    send_calls: u64,
}

impl Port {
    fn open(datagram: u16) -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER)?;
        state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER)?;
        Ok(Self {
            local: socket.local_addr()?,
            socket,
            state,
            datagram: usize::from(datagram),
            outgoing: vec![0; BATCH],
            incoming: vec![0; BATCH * BATCH_SIZE],
            datagrams_sent: 0,
            send_calls: 0,
        })
    }

    /// The connection ID and the sender of the datagram that waits at the socket, which stays there.
    fn first_initial(&self) -> Result<(ConnectionId<'static>, SocketAddr)> {
        let mut datagram = [0; 2048];
        let (length, from) = self.socket.peek_from(&mut datagram)?;
        let header = Header::from_slice(&mut datagram[..length], REQUEST)?;
        Ok((header.dcid.into_owned(), from))
    }

    /// Hands everything that has arrived to the connection.
    fn receive(&mut self, connection: &mut Connection) -> Result<()> {
        loop {
            let mut metas = [RecvMeta::default(); BATCH_SIZE];
            let mut slices: Vec<_> = self.incoming.chunks_mut(BATCH).map(IoSliceMut::new).collect();
            let batches = match self.state.recv((&self.socket).into(), &mut slices, &mut metas) {
                Ok(batches) => batches,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            for (meta, batch) in metas[..batches].iter().zip(self.incoming.chunks_mut(BATCH)) {
                let info = RecvInfo { from: meta.addr, to: self.local };
                for datagram in batch[..meta.len].chunks_mut(meta.stride.max(1)) {
                    match connection.recv(datagram, info) {
                        Ok(_) | Err(Error::Done) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
    }

    /// Sends everything that the connection has to send, in batches of equal datagrams.
    fn flush(&mut self, connection: &mut Connection, to: SocketAddr) -> Result<()> {
        loop {
            let most = self.state.max_gso_segments().min(self.outgoing.len() / self.datagram);
            let burst = (connection.send_quantum() / self.datagram).clamp(1, most) * self.datagram;
            let mut filled = 0;
            while filled < burst {
                match connection.send(&mut self.outgoing[filled..filled + self.datagram]) {
                    Ok((length, _)) => {
                        filled += length;
                        self.datagrams_sent += 1;
                        if length < self.datagram {
                            break;
                        }
                    }
                    Err(Error::Done) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            if filled == 0 {
                return Ok(());
            }
            self.transmit(filled, to)?;
        }
    }

    /// Sends the first `length` bytes of the outgoing buffer, and waits for the socket if need be.
    fn transmit(&mut self, length: usize, to: SocketAddr) -> Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: &self.outgoing[..length],
            segment_size: (length > self.datagram).then_some(self.datagram),
            src_ip: None,
        };
        loop {
            self.send_calls += 1;
            match self.state.send((&self.socket).into(), &transmit) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(PollFlags::POLLOUT, None)?;
                }
                result => return Ok(result?),
            }
        }
    }

    /// Waits until something arrives or the connection's timer fires.
    fn rest(&self, connection: &mut Connection) -> Result<()> {
        if !self.wait(PollFlags::POLLIN, connection.timeout())? {
            connection.on_timeout();
        }
        Ok(())
    }

    /// Waits for `events` of the socket; whether one occurred before the timeout. The timeout is rounded up to whole
    /// milliseconds, as in quiche's programs.
    fn wait(&self, events: PollFlags, timeout: Option<Duration>) -> Result<bool> {
        let millis = timeout.map(|timeout| timeout.as_nanos().div_ceil(1_000_000));
        let timeout = millis.map(|millis| PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX));
        let mut waits = [PollFd::new(self.socket.as_fd(), events)];
        Ok(poll(&mut waits, timeout)? > 0)
    }
}
