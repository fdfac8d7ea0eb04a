//! A socket of netlink in a reactor: tokio's within tokio, else smol's.

use super::{LARGEST, hear};
use std::io;
use std::os::fd::OwnedFd;
#[cfg(feature = "runtime-tokio")]
use tokio::io::{Interest, unix::AsyncFd};

/// A socket that its reactor watches for what the kernel tells.
#[derive(Debug)]
pub(super) enum Watched {
    /// In the reactor of the runtime of tokio that it was made in.
    #[cfg(feature = "runtime-tokio")]
    Tokio(AsyncFd<OwnedFd>),
    /// In the reactor of smol, which any runtime can wait for.
    #[cfg(feature = "runtime-smol")]
    Smol(smol::Async<OwnedFd>),
}

impl Watched {
    /// Watches `socket`.
    ///
    /// # Errors
    /// The reactor does not take it, or there is none.
    #[cfg_attr(
        feature = "runtime-tokio",
        expect(
            deprecated,
            reason = "its successor is unsafe: it trusts the descriptor, which an OwnedFd is true to"
        )
    )]
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        #[cfg(feature = "runtime-tokio")]
        if tokio::runtime::Handle::try_current().is_ok() {
            return AsyncFd::with_interest(socket, Interest::READABLE).map(Self::Tokio);
        }
        #[cfg(feature = "runtime-smol")]
        return smol::Async::new(socket).map(Self::Smol);
        #[cfg(not(feature = "runtime-smol"))]
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "there is no reactor here to watch a socket of netlink",
        ))
    }

    /// The socket.
    pub(super) fn get_ref(&self) -> &OwnedFd {
        match self {
            #[cfg(feature = "runtime-tokio")]
            Self::Tokio(socket) => socket.get_ref(),
            #[cfg(feature = "runtime-smol")]
            Self::Smol(socket) => socket.get_ref(),
        }
    }

    /// The next datagram of the kernel.
    pub(super) async fn receive(&self) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; LARGEST];
        let length = match self {
            #[cfg(feature = "runtime-tokio")]
            Self::Tokio(socket) => {
                socket.async_io(Interest::READABLE, |socket| hear(socket, &mut buffer)).await?
            }
            #[cfg(feature = "runtime-smol")]
            Self::Smol(socket) => socket.read_with(|socket| hear(socket, &mut buffer)).await?,
        };
        buffer.truncate(length);
        Ok(buffer)
    }
}
