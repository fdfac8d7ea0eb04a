//! The queue of datagrams that wait in a socket, and the marks that tell their senders of it.
//!
//! The kernel's buffer is the last queue of a network path, and drops what does not fit, as any other. Where many connections send
//! to one socket, the sum of their congestion windows is larger than the buffer, and a part of all that is sent is lost there. So
//! this queue is managed as routers manage theirs (RFC 7567): datagrams that leave it while it is more than three quarters full are
//! marked with congestion experienced (RFC 3168), if their senders take part, who slow down before more is lost. One datagram of a
//! batch is enough: a sender reacts once in a round trip, and whoever acknowledges answers each mark at once (RFC 9000 §13.2.1).
//!
//! Marks leave smaller windows, and those smaller batches, which cost more a byte. Few connections have large windows, and lose
//! next to nothing where those overflow the buffer: for them it stays as it is.

use hvq_transport::connection::{Datagram, Ecn};

/// Connections from which on a queue is managed: each has some 50 datagrams in a buffer of 4 MiB then.
pub(crate) const CROWD: usize = 100;

/// The length of a socket's queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    /// At most three quarters of the buffer are in use, or the system does not tell.
    Short,
    /// More than that is.
    Long,
}

impl Queue {
    /// Marks the last datagram of a batch that waited in this queue, if it is long and the sender takes part.
    pub(crate) fn mark(self, last: &mut Datagram) {
        if self == Self::Long && last.ecn != Ecn::NotEct {
            last.ecn = Ecn::Ce;
        }
    }
}

/// Returns the length of the queue of `socket`.
#[cfg(target_os = "linux")]
pub(crate) fn state(socket: &impl std::os::fd::AsFd) -> Queue {
    match linux::memory(socket) {
        Some((used, limit)) if used > limit / 4 * 3 => Queue::Long,
        _ => Queue::Short,
    }
}

/// Returns the length of a queue that nothing is known of: only Linux tells.
#[cfg(not(target_os = "linux"))]
pub(crate) fn state<S>(_socket: &S) -> Queue {
    Queue::Short
}

#[cfg(target_os = "linux")]
mod linux {
    use nix::{getsockopt_impl, sockopt_impl};

    /// The numbers of SO_MEMINFO, as the kernel's `linux/sock_diag.h` counts them.
    const NUMBERS: usize = 9;

    sockopt_impl!(
        /// The memory of a socket (SO_MEMINFO of socket(7)).
        SocketMemory, GetOnly, libc::SOL_SOCKET, libc::SO_MEMINFO, [u32; NUMBERS]
    );

    /// Returns the bytes that the queue of received datagrams takes (SK_MEMINFO_RMEM_ALLOC), and its bound (SK_MEMINFO_RCVBUF).
    pub(super) fn memory(socket: &impl std::os::fd::AsFd) -> Option<(u32, u32)> {
        let [used, limit, ..] = nix::sys::socket::getsockopt(socket, SocketMemory).ok()?;
        Some((used, limit))
    }
}
