//! A TUN device in an async program.

use hvq_emulation::tun::device::TunDevice;
use std::io;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A TUN device whose packets can be awaited.
#[derive(Debug)]
pub struct AsyncDevice {
    device: AsyncFd<TunDevice>,
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

    /// The next packet that the namespace sends, into `buffer`; returns its size.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // A device that somebody removes has an error and nothing else.
        self.device.async_io(Interest::READABLE | Interest::ERROR, |device| device.receive(buffer)).await
    }

    /// Hands a packet to the namespace; the kernel takes it at once or not at all.
    ///
    /// # Errors
    /// It does not take it: the device is down, or it is no IP packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.device.get_ref().send(packet)
    }
}
