//! The four-tuple of a TCP flow that goes into a tunnel.

use hvq_emulation::tun::packet::{Header, TcpFlags, Transport};
use std::net::SocketAddr;

/// Addresses and ports of a TCP flow, as its opener has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Tuple {
    /// The program that opened it.
    pub(crate) source: SocketAddr,
    /// The host that it wants.
    pub(crate) destination: SocketAddr,
}

impl Tuple {
    /// Those of a TCP segment and its flags; `None` for every other packet, fragments included.
    pub(crate) fn of(header: &Header) -> Option<(Self, TcpFlags)> {
        let Transport::Tcp { ports: (source, destination), flags } = header.transport else { return None };
        let tuple = Self {
            source: SocketAddr::new(header.source, source),
            destination: SocketAddr::new(header.destination, destination),
        };
        Some((tuple, flags))
    }
}
