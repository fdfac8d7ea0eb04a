//! A UDP socket of an endpoint, and the address by which the protocol knows it.

use crate::runtime::{Arrivals, AsyncUdpSocket, Outgoing, Runtime};
use crate::shared::IoStats;
use crate::sockets::Source;
use crate::steering;
use crate::steering::Shares;
use hvq_transport::connection::{FourTuple, Transmit};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// Bytes of the kernel's buffers that are asked for, each way; it gives what its limits allow.
const BUFFER: usize = 4 << 20;

/// Tells who else may bind to the address of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Port {
    /// Nobody else.
    Own,
    /// Sockets that come after may share it; nobody did before.
    First,
    /// The socket shares it with those that did before.
    Another,
}

/// A UDP socket of an endpoint, of the kernel or of the program.
#[derive(Debug)]
pub(crate) struct Socket {
    io: Arc<dyn AsyncUdpSocket>,
    local: SocketAddr,
    device: Option<String>,
    source: Source,
    /// The kernel's socket once more, if others may share its address: to have the kernel share out what comes there.
    shared: Option<UdpSocket>,
    /// Datagrams that the interface refused as too large, until the driver asks.
    refused: Mutex<Vec<OversizedDatagram>>,
}

/// Datagrams of `size` bytes over `tuple` are larger than what the interface takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OversizedDatagram {
    /// The addresses.
    pub(crate) tuple: FourTuple,
    /// The size in bytes of UDP payload.
    pub(crate) size: usize,
}

/// Refusals that are remembered until the driver asks.
const REFUSALS: usize = 64;

impl Socket {
    /// A socket bound to `address`, and to the interface `device`: one of the network of `runtime`, or else of the kernel.
    pub(crate) fn bind(
        runtime: &dyn Runtime,
        address: SocketAddr,
        device: Option<&str>,
        (source, port): (Source, Port),
    ) -> io::Result<Self> {
        if device.is_none()
            && port == Port::Own
            && let Some(socket) = runtime.bind_udp_socket(address)?
        {
            return Self::new(socket, source);
        }
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if let Some(device) = device {
            bind_device(&socket, device)?;
        }
        if port == Port::Another {
            share_port(&socket)?;
        }
        socket.bind(&address.into())?;
        if port == Port::First {
            // Only now: otherwise it would share an address that another process has already.
            share_port(&socket)?;
        }
        for result in [socket.set_recv_buffer_size(BUFFER), socket.set_send_buffer_size(BUFFER)] {
            if let Err(error) = result {
                tracing::debug!(%address, %error, "the socket keeps its small buffer");
            }
        }
        let shared = if port == Port::Own { None } else { Some(UdpSocket::from(socket.try_clone()?)) };
        let bound = Self::adopt(runtime, UdpSocket::from(socket), source)?;
        Ok(Self { device: device.map(str::to_owned), shared, ..bound })
    }

    /// A socket of the kernel that is bound already.
    pub(crate) fn adopt(runtime: &dyn Runtime, socket: UdpSocket, source: Source) -> io::Result<Self> {
        Self::new(runtime.wrap_udp_socket(socket)?, source)
    }

    /// A socket, whoever made it.
    pub(crate) fn new(io: Arc<dyn AsyncUdpSocket>, source: Source) -> io::Result<Self> {
        let local = io.local_addr()?;
        Ok(Self { io, local, device: None, source, shared: None, refused: Mutex::default() })
    }

    /// Has the kernel share out what comes to the address of this socket, the first of those that share it.
    pub(crate) fn steer(&self, shares: &Shares) -> io::Result<()> {
        match &self.shared {
            Some(socket) => steering::attach(socket, shares),
            None => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "nobody shares the address of the socket"))
            }
        }
    }

    /// Returns true if others may share its address.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns true if what it sends may be fragmented on the way.
    pub(crate) fn may_fragment(&self) -> bool {
        self.io.may_fragment()
    }

    /// The address that it is bound to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The interface that it is bound to.
    pub(crate) fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Returns the local address by which the protocol knows a path to `remote`.
    pub(crate) fn source_for(&self, remote: SocketAddr) -> SocketAddr {
        if !self.pins() {
            return self.local;
        }
        let address = route(remote).unwrap_or(self.local.ip());
        SocketAddr::new(address, self.local.port())
    }

    /// Returns true if datagrams from `local` leave through this socket.
    pub(crate) fn sends_from(&self, local: SocketAddr) -> bool {
        self.local == local
            || self.pins() && self.local.port() == local.port() && self.local.is_ipv4() == local.is_ipv4()
    }

    /// Returns true if each datagram has its own local address.
    fn pins(&self) -> bool {
        self.source == Source::Pinned && self.local.ip().is_unspecified()
    }

    /// Ready when the socket may take datagrams again.
    pub(crate) fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.io.poll_send_ready(context)
    }

    /// Sends `transmit` from byte `offset` on; returns how far it came if the socket takes no more now. Datagrams that
    /// the system refuses otherwise are dropped and counted: to the protocol they are lost by the network, unless they were
    /// too large.
    pub(crate) fn send(
        &self,
        transmit: &Transmit,
        mut offset: usize,
        stats: &mut IoStats,
    ) -> Result<(), usize> {
        let from = transmit.local.ip();
        while let Some(contents) = transmit.bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            let segment = transmit.segment.unwrap_or(contents.len()).max(1);
            let batch = Outgoing {
                remote: transmit.remote,
                source: (self.pins() && !from.is_unspecified()).then_some(from),
                ecn: transmit.ecn,
                dscp: transmit.dscp,
                contents,
                segment,
            };
            match self.io.try_send(&batch) {
                Ok(sent) => {
                    // One at least, and no part of one, whatever a socket of the program says.
                    let segments = sent.clamp(1, contents.len()).div_ceil(segment);
                    let sent = segments.saturating_mul(segment).min(contents.len());
                    stats.send_calls += 1;
                    stats.datagrams_sent += segments as u64;
                    stats.bytes_sent += sent as u64;
                    offset += sent;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(offset),
                Err(error) => {
                    stats.send_errors += 1;
                    if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) {
                        self.note_refusal(transmit, segment);
                    }
                    tracing::debug!(local = %transmit.local, remote = %transmit.remote, %error, "not sent");
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn note_refusal(&self, transmit: &Transmit, size: usize) {
        let tuple = FourTuple { local: transmit.local, remote: transmit.remote };
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < REFUSALS && !refused.contains(&OversizedDatagram { tuple, size }) {
            refused.push(OversizedDatagram { tuple, size });
        }
    }

    /// Takes the datagrams that were refused for their size since the last call.
    pub(crate) fn take_refused(&self) -> Vec<OversizedDatagram> {
        std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Receives what is there, at most one batch. Pending if nothing is there.
    pub(crate) fn poll_receive(&self, context: &mut Context<'_>, arrivals: &mut Arrivals) -> Poll<()> {
        let before = arrivals.datagrams.len();
        arrivals.local = (!self.pins()).then_some(self.local);
        let Poll::Ready(received) = self.io.poll_receive(context, arrivals) else { return Poll::Pending };
        // An ICMP message about an earlier datagram, for instance: no reason to end anything.
        if let Err(error) = received {
            tracing::debug!(local = %self.local, %error, "receiving failed");
        }
        // Sockets of the program do not know.
        if let Some(local) = arrivals.local.take() {
            for datagram in arrivals.datagrams.iter_mut().skip(before) {
                datagram.local = local;
            }
        }
        Poll::Ready(())
    }
}

/// The local address that the kernel would choose towards `remote`.
pub(crate) fn route(remote: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let probe = UdpSocket::bind(SocketAddr::new(any, 0))?;
    // Connecting a UDP socket sends nothing.
    probe.connect(remote)?;
    Ok(probe.local_addr()?.ip())
}

#[cfg(unix)]
fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(unix))]
fn share_port(_socket: &socket2::Socket) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system lets no sockets share a port"))
}

#[cfg(target_os = "linux")]
fn bind_device(socket: &socket2::Socket, device: &str) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("interface {device}: {error}"));
    socket.bind_device(Some(device.as_bytes())).map_err(named)
}

#[cfg(not(target_os = "linux"))]
fn bind_device(_socket: &socket2::Socket, device: &str) -> io::Result<()> {
    let reason =
        format!("interface {device}: only Linux binds sockets to interfaces; give an address of it instead");
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

#[cfg(test)]
mod tests;
