//! TUN devices: IP packets as the kernel of a namespace sends and receives them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::tun::namespace::Namespace;

/// A TUN device in a namespace. It is gone when this value is dropped or the process ends. It never blocks.
pub struct TunDevice {
    device: SyncDevice,
    name: String,
}

impl std::fmt::Debug for TunDevice {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("TunDevice").field("name", &self.name).finish_non_exhaustive()
    }
}

impl TunDevice {
    /// A new device called `name` in `namespace`, down and without an address ([`crate::tun::wiring`]). One read is one
    /// packet: the kernel divides what it would leave to hardware.
    ///
    /// # Errors
    /// The system does not permit it, has no TUN driver, or the name is in use or too long.
    pub fn new(namespace: &Namespace, name: &str) -> io::Result<Self> {
        let device = namespace.within(|| {
            DeviceBuilder::new().name(name).layer(Layer::L3).inherit_enable_state().build_sync()
        })?;
        let device = device?;
        device.set_nonblocking(true)?;
        Ok(Self { device, name: name.to_owned() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads a packet that the namespace sends into `buffer`; returns its size.
    ///
    /// # Errors
    /// `WouldBlock` if there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.device.recv(buffer)
    }

    /// Hands a packet to the namespace.
    ///
    /// # Errors
    /// The kernel does not take it: the device is down, or it is no IP packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet).map(|_| ())
    }
}

impl AsFd for TunDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

impl AsRawFd for TunDevice {
    fn as_raw_fd(&self) -> RawFd {
        self.device.as_raw_fd()
    }
}
