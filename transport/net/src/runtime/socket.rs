//! The contract of UDP sockets, whoever makes them.

use super::Buffers;
use super::{Datagram, Dscp, Ecn};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

/// A UDP socket, of the kernel ([`KernelSocket`](super::KernelSocket)) or of the program. One task polls it at a time.
pub trait AsyncUdpSocket: fmt::Debug + Send + Sync + 'static {
    /// The address that it is bound to, which does not change. One address is best. A socket that is bound to all of an IP version
    /// has the unspecified one: then each [`Datagram`] says at which it arrived, and a server's [`Outgoing::source`] where it leaves.
    ///
    /// # Errors
    /// It has none.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// Sends datagrams from the front of `batch` on, as many as fit at once, and returns their bytes: at least one datagram, and no
    /// part of one.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if there is no room now: it is tried again once [`poll_send_ready`](Self::poll_send_ready)
    /// is ready. Any other error counts as loss of the whole batch by the network; one whose [raw code](io::Error::raw_os_error) is
    /// the system's EMSGSIZE tells path MTU discovery that datagrams of this size do not fit.
    fn try_send(&self, batch: &Outgoing<'_>) -> io::Result<usize>;

    /// Ready if there may be room to send. Otherwise the task is woken then.
    fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<()>;

    /// Adds datagrams that arrived to `arrivals`: some of them, so that others get their turn. Otherwise the task is woken when one
    /// arrives.
    ///
    /// # Errors
    /// Receiving failed: it is polled again. A socket that is broken for good is pending instead.
    fn poll_receive(&self, context: &mut Context<'_>, arrivals: &mut Arrivals) -> Poll<io::Result<()>>;

    /// Returns true if datagrams may be fragmented on their way (RFC 9000 §14), or nobody knows: connections that begin at such a
    /// socket send datagrams of the least size and look for no larger one. Default: false.
    fn may_fragment(&self) -> bool {
        false
    }
}

/// Datagrams to one address that a socket is to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing<'a> {
    /// The address to send to.
    pub remote: SocketAddr,
    /// The address to send from, for a socket that is bound to several; `None` leaves it to the socket.
    pub source: Option<IpAddr>,
    /// The ECN codepoint to set; a socket that cannot ignores it.
    pub ecn: Ecn,
    /// The Differentiated Services codepoint to set; a socket that cannot ignores it.
    pub dscp: Dscp,
    /// UDP payloads, back to back.
    pub contents: &'a [u8],
    /// The size of each payload but the last, which may be smaller: at least one.
    pub segment: usize,
}

impl<'a> Outgoing<'a> {
    /// The payloads one by one.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.contents.chunks(self.segment.max(1))
    }
}

/// Datagrams that arrived, with the memory into which sockets of the kernel receive.
#[derive(Default)]
pub struct Arrivals {
    pub(crate) datagrams: Vec<Datagram>,
    pub(crate) buffers: Buffers,
    /// The address at which all datagrams of the socket count as arrived, if it is one: who heeds it takes it.
    pub(crate) local: Option<SocketAddr>,
}

impl Arrivals {
    /// The datagrams that are there; those of a socket go behind them.
    pub fn datagrams(&mut self) -> &mut Vec<Datagram> {
        &mut self.datagrams
    }
}

impl fmt::Debug for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrivals").field("datagrams", &self.datagrams.len()).finish_non_exhaustive()
    }
}
