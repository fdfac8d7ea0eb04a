//! The least that moving bytes in protected datagrams takes: seal and send, receive and open.
//!
//! Each datagram has a number and as much data as fits, copied from the application's block and protected by AES-128-GCM of
//! BoringSSL. Batches of one size leave in one system call with segmentation offload, and arrive coalesced. The receiver says after each
//! batch how much it has, and no more is under way than its buffer holds, so that nothing is lost. There is no handshake, no
//! acknowledgement of packets, no congestion control and no stream: what a QUIC takes more is what these cost.

use super::{Account, BLOCK, Job, Line, SOCKET_BUFFER, Side, Task, say};
use crate::meter::Meter;
use anyhow::{Context, Result, bail, ensure};
use hvq::tls::Suite;
use hvq::transport::crypto::aead::boringssl::BoringKey;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use std::io::{ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

/// Bytes of a datagram's number, which is authenticated and not encrypted.
const NUMBER: usize = 8;
/// Bytes of a datagram that are no data.
const OVERHEAD: usize = NUMBER + Suite::TAG_LENGTH;
/// Bytes of the largest batch.
const BATCH: usize = 1 << 16;
/// Part of the receive buffer that data may take: the kernel counts its own overhead, too.
const SHARE: usize = 3;

/// Does the work of `task`.
pub fn work(task: &Task) -> Result<Account> {
    match (&task.side, task.job) {
        (Side::Server, Job::Bulk { bytes }) => {
            let port = Port::open()?;
            say(&Line::Listening(vec![port.socket.local_addr()?]))?;
            send(&port, usize::from(task.datagram), bytes)
        }
        (Side::Client(to), Job::Bulk { bytes }) => fetch(to, bytes),
        (_, job) => bail!("the floor takes no part in {job:?}"),
    }
}

/// A socket with buffers as large as all contenders have.
struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Port {
    fn open() -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER)?;
        state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER)?;
        Ok(Self { socket, state })
    }

    /// Bytes that may be under way towards this socket, and towards one of the same kind.
    fn window(&self) -> Result<u64> {
        Ok((self.state.recv_buffer_size((&self.socket).into())? / SHARE) as u64)
    }

    fn wait(&self, events: PollFlags) -> Result<()> {
        poll(&mut [PollFd::new(self.socket.as_fd(), events)], PollTimeout::NONE)?;
        Ok(())
    }

    /// Sends datagrams of `segment` bytes, but for the last, in one call, and waits for room if need be.
    fn send(&self, contents: &[u8], segment: usize, to: SocketAddr) -> Result<()> {
        let segment_size = (contents.len() > segment).then_some(segment);
        let transmit = Transmit { destination: to, ecn: None, segment_size, contents, src_ip: None };
        loop {
            match self.state.send((&self.socket).into(), &transmit) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::POLLOUT)?,
                result => return Ok(result?),
            }
        }
    }

    /// Hands each datagram that arrives next to `take`, once there is one.
    fn receive(&self, buffer: &mut [u8], mut take: impl FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let batches = loop {
            let mut slices: Vec<_> = buffer.chunks_mut(BATCH).map(IoSliceMut::new).collect();
            match self.state.recv((&self.socket).into(), &mut slices, &mut metas) {
                Ok(batches) => break batches,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::POLLIN)?,
                Err(error) => return Err(error.into()),
            }
        };
        for (meta, batch) in metas[..batches].iter().zip(buffer.chunks_mut(BATCH)) {
            batch[..meta.len].chunks_mut(meta.stride.max(1)).try_for_each(&mut take)?;
        }
        Ok(())
    }
}

/// The same key at both ends: nobody listens here.
fn key() -> BoringKey {
    BoringKey::new(Suite::Aes128Gcm, &[0x42; 16])
}

fn nonce(number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&number.to_be_bytes());
    nonce
}

/// Waits for a client, sends it `bytes` bytes in datagrams of `segment` bytes, and waits until it has all.
fn send(port: &Port, segment: usize, bytes: u64) -> Result<Account> {
    let (key, block) = (key(), vec![0x5a; BLOCK]);
    port.wait(PollFlags::POLLIN)?;
    let (_, to) = port.socket.recv_from(&mut [0; NUMBER])?;
    let meter = Meter::start()?;
    let window = port.window()?;
    let most = port.state.max_gso_segments().min(BATCH / segment);
    let (mut batch, mut credit) = (Vec::with_capacity(BATCH), vec![0; BATCH * BATCH_SIZE]);
    let (mut number, mut sent, mut arrived, mut offset) = (0, 0, 0, 0);
    while arrived < bytes {
        batch.clear();
        while batch.len() < most * segment && sent < bytes && sent - arrived < window {
            let left = usize::try_from(bytes - sent).unwrap_or(usize::MAX);
            let length = left.min(segment - OVERHEAD).min(BLOCK - offset);
            put(&mut batch, &key, number, &block[offset..offset + length]);
            offset = (offset + length) % BLOCK;
            sent += length as u64;
            number += 1;
            if length < segment - OVERHEAD {
                break;
            }
        }
        if batch.is_empty() {
            port.receive(&mut credit, |datagram| {
                arrived = u64::from_be_bytes(datagram.try_into().context("a credit has eight bytes")?);
                Ok(())
            })?;
        } else {
            port.send(&batch, segment, to)?;
        }
    }
    account(&meter, number)
}

/// Appends a sealed datagram with `data`.
fn put(batch: &mut Vec<u8>, key: &BoringKey, number: u64, data: &[u8]) {
    let header = number.to_be_bytes();
    batch.extend_from_slice(&header);
    let start = batch.len();
    batch.extend_from_slice(data);
    let tag = key.seal(nonce(number), &header, &mut batch[start..]);
    batch.extend_from_slice(&tag);
}

/// Asks for `bytes` bytes, opens them, and says after each batch how many there are.
fn fetch(to: &[SocketAddr], bytes: u64) -> Result<Account> {
    let [remote] = to else { bail!("one address of the server is needed, not {}", to.len()) };
    let (port, key) = (Port::open()?, key());
    let mut buffer = vec![0; BATCH * BATCH_SIZE];
    let meter = Meter::start()?;
    port.send(&bytes.to_be_bytes(), NUMBER, *remote)?;
    let (mut expected, mut arrived) = (0u64, 0u64);
    while arrived < bytes {
        port.receive(&mut buffer, |datagram| {
            let (header, sealed) =
                datagram.split_at_mut_checked(NUMBER).context("a datagram has a number")?;
            let number = u64::from_be_bytes(header.as_ref().try_into()?);
            ensure!(number == expected, "datagram {expected} was lost");
            expected += 1;
            ensure!(key.open(nonce(number), header, sealed).is_some(), "datagram {number} is not authentic");
            arrived += (sealed.len() - Suite::TAG_LENGTH) as u64;
            Ok(())
        })?;
        port.send(&arrived.to_be_bytes(), NUMBER, *remote)?;
    }
    account(&meter, 0)
}

fn account(meter: &Meter, datagrams_sent: u64) -> Result<Account> {
    Ok(Account { usage: meter.stop()?, datagrams_sent, ..Account::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives_in_datagrams_of_one_size_but_those_at_the_end_of_a_block() {
        let port = Port::open().unwrap();
        let to = [port.socket.local_addr().unwrap()];
        let bytes = 3 * BLOCK as u64 + 1;
        let client = std::thread::spawn(move || fetch(&to, bytes).unwrap());
        let server = send(&port, 1_200, bytes).unwrap();
        client.join().unwrap();
        let a_block = BLOCK.div_ceil(1_200 - OVERHEAD) as u64;
        assert_eq!(server.datagrams_sent, 3 * a_block + 1);
    }

    #[test]
    fn a_datagram_that_was_changed_is_refused() {
        let (port, other) = (Port::open().unwrap(), Port::open().unwrap());
        let to = [port.socket.local_addr().unwrap()];
        let client = std::thread::spawn(move || fetch(&to, 100));
        port.wait(PollFlags::POLLIN).unwrap();
        let (_, from) = port.socket.recv_from(&mut [0; NUMBER]).unwrap();
        let mut batch = Vec::new();
        put(&mut batch, &key(), 0, &[0x5a; 100]);
        batch[NUMBER] ^= 1;
        other.send(&batch, batch.len(), from).unwrap();
        let error = client.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("not authentic"), "{error}");
    }
}
