//! A socket, and batches of datagrams through it.

use super::super::{REQUEST, SOCKET_BUFFER};
use super::lent::Connection;
use anyhow::Result;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quiche::{ConnectionId, Error, Header, RecvInfo};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use std::io::{ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::fd::AsFd;
use std::time::Duration;

/// Bytes of a receive buffer: the largest coalesced batch.
pub const BATCH: usize = 1 << 16;

/// A socket and the buffers of its batches.
pub struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
    pub local: SocketAddr,
    datagram: usize,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    pub datagrams_sent: u64,
    pub send_calls: u64,
}

impl Port {
    pub fn open(datagram: u16) -> Result<Self> {
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
    pub fn first_initial(&self) -> Result<(ConnectionId<'static>, SocketAddr)> {
        let mut datagram = [0; 2048];
        let (length, from) = self.socket.peek_from(&mut datagram)?;
        let header = Header::from_slice(&mut datagram[..length], REQUEST)?;
        Ok((header.dcid.into_owned(), from))
    }

    /// Hands what has arrived to the connection, at most one batch: acknowledgements leave between batches. Returns true if there
    /// was any.
    pub fn receive(&mut self, connection: &mut Connection) -> Result<bool> {
        self.each(|datagram, info| match connection.recv(datagram, info) {
            Ok(_) | Err(Error::Done) => Ok(()),
            Err(error) => Err(error.into()),
        })
    }

    /// Hands every datagram of the next batch to `take`. Returns true if there was one.
    pub fn each(&mut self, mut take: impl FnMut(&mut [u8], RecvInfo) -> Result<()>) -> Result<bool> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut slices: Vec<_> = self.incoming.chunks_mut(BATCH).map(IoSliceMut::new).collect();
        let batches = match self.state.recv((&self.socket).into(), &mut slices, &mut metas) {
            Ok(batches) => batches,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for (meta, batch) in metas[..batches].iter().zip(self.incoming.chunks_mut(BATCH)) {
            let info = RecvInfo { from: meta.addr, to: self.local };
            for datagram in batch[..meta.len].chunks_mut(meta.stride.max(1)) {
                take(datagram, info)?;
            }
        }
        Ok(true)
    }

    /// Sends everything that the connection has to send: datagrams of one size, and a smaller one behind them, in one call.
    pub fn flush(&mut self, connection: &mut Connection, to: SocketAddr) -> Result<()> {
        let most = self.state.max_gso_segments().min(connection.send_quantum() / self.datagram).max(1);
        let (mut start, mut end, mut segment) = (0, 0, 0);
        loop {
            let length = match connection.send(&mut self.outgoing[end..end + self.datagram]) {
                Ok((length, _)) => length,
                Err(Error::Done) if start == end => return Ok(()),
                Err(Error::Done) => return self.transmit(start..end, segment, to),
                Err(error) => return Err(error.into()),
            };
            self.datagrams_sent += 1;
            if end > start && length > segment {
                // It is in the buffer already: the next batch begins with it.
                self.transmit(start..end, segment, to)?;
                start = end;
            }
            if start == end {
                segment = length;
            }
            end += length;
            let is_full =
                (end - start).div_ceil(segment) >= most || end + self.datagram > self.outgoing.len();
            if length < segment || is_full {
                self.transmit(start..end, segment, to)?;
                (start, end) = (0, 0);
            }
        }
    }

    /// Sends the bytes of the outgoing buffer in `range`, datagrams of `segment` bytes, and waits for the socket if need be.
    fn transmit(&mut self, range: Range<usize>, segment: usize, to: SocketAddr) -> Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            segment_size: (range.len() > segment).then_some(segment),
            contents: &self.outgoing[range],
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
    pub fn rest(&self, connection: &mut Connection) -> Result<()> {
        if !self.wait(PollFlags::POLLIN, connection.timeout())? {
            connection.on_timeout();
        }
        Ok(())
    }

    /// Waits for `events` of the socket; whether one occurred before the timeout. The timeout is rounded up to whole
    /// milliseconds, as in quiche's programs.
    pub fn wait(&self, events: PollFlags, timeout: Option<Duration>) -> Result<bool> {
        let millis = timeout.map(|timeout| timeout.as_nanos().div_ceil(1_000_000));
        let timeout = millis.map(|millis| PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX));
        let mut waits = [PollFd::new(self.socket.as_fd(), events)];
        Ok(poll(&mut waits, timeout)? > 0)
    }
}
