//! A TUN device in an async program.

use bytes::Bytes;
use hvq_emulation::tun::device::TunDevice;
use hvq_emulation::tun::offload::{Coalescer, LONGEST, Segment};
use std::io;
use std::num::NonZeroU16;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A TUN device whose packets can be awaited.
#[derive(Debug)]
pub struct AsyncDevice {
    device: AsyncFd<TunDevice>,
}

/// Room for what is read from a device at a time.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Default for Buffer {
    fn default() -> Self {
        Self(vec![0; LONGEST])
    }
}

impl AsyncDevice {
    /// Watches `device`. Within a tokio runtime with I/O.
    ///
    /// # Errors
    /// The system has no more to watch with.
    #[expect(
        deprecated,
        reason = "its successor is unsafe to call; a device keeps its descriptor until it is dropped"
    )]
    pub fn new(device: TunDevice) -> io::Result<Self> {
        Ok(Self { device: AsyncFd::with_interest(device, Interest::READABLE)? })
    }

    /// Reads the next packets that the namespace sends into `buffer`; returns their size there. Cancel-safe.
    ///
    /// # Errors
    /// The device is gone.
    pub(crate) async fn receive(&self, buffer: &mut Buffer) -> io::Result<usize> {
        // A device that somebody removes has an error and nothing else.
        self.device
            .async_io(Interest::READABLE | Interest::ERROR, |device| device.receive(&mut buffer.0))
            .await
    }

    /// Takes the first `size` bytes of `buffer` for what [`Self::receive`] has read; `None` if that makes no sense.
    pub(crate) fn segment<'a>(&self, buffer: &'a mut Buffer, size: usize) -> Option<Segment<'a>> {
        let read = buffer.0.get_mut(..size).unwrap_or_default();
        let segment = self.device.get_ref().segment(read);
        segment.inspect_err(|error| tracing::debug!(%error, "a packet without sense")).ok()
    }

    /// Returns true if checksums and the division of long segments are left to the kernel.
    pub(crate) fn offloads(&self) -> bool {
        self.device.get_ref().offloads()
    }

    /// Hands a TCP packet without a checksum to the namespace, to be divided into pieces of `piece` bytes if that is given.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    pub(crate) fn send_unfinished(&self, packet: &mut [u8], piece: Option<NonZeroU16>) -> io::Result<()> {
        self.device.get_ref().send_unfinished(packet, piece)
    }

    /// Hands packets to the namespace, with few calls.
    ///
    /// # Errors
    /// Those of [`Self::send`], for one of them; the others were tried all the same.
    pub(crate) fn send_all(&self, packets: &[Bytes], coalescer: &mut Coalescer) -> io::Result<()> {
        self.device.get_ref().send_all(packets, coalescer)
    }

    /// Hands a packet to the namespace; the kernel takes it at once or not at all.
    ///
    /// # Errors
    /// It does not take it: the device is down, or it is no IP packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.device.get_ref().send(packet)
    }
}
