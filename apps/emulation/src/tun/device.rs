//! TUN devices: IP packets as the kernel of a namespace sends and receives them.

use std::io::{self, IoSlice};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use bytes::Bytes;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::tun::namespace::Namespace;
use crate::tun::offload::{self, Coalescer, Segment};

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
        Self::build(namespace, DeviceBuilder::new().name(name))
    }

    /// A new device as of [`Self::new`], whose packets cross it in one piece where the kernel lets them: see [`Segment`]. Where it
    /// does not, one read is one packet.
    ///
    /// # Errors
    /// Those of [`Self::new`].
    pub fn offloading(namespace: &Namespace, name: &str) -> io::Result<Self> {
        let offloading = DeviceBuilder::new().name(name).offload(true);
        Self::build(namespace, offloading).or_else(|_| Self::new(namespace, name))
    }

    fn build(namespace: &Namespace, builder: DeviceBuilder) -> io::Result<Self> {
        let device = namespace.within(|| builder.layer(Layer::L3).inherit_enable_state().build_sync())?;
        let device = device?;
        device.set_nonblocking(true)?;
        Ok(Self { name: device.name()?, device })
    }

    /// Returns true if checksums and the division of long segments are left to the kernel.
    pub fn offloads(&self) -> bool {
        self.device.tcp_gso()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads a packet that the namespace sends into `buffer`; returns its size. For devices without offloads.
    ///
    /// # Errors
    /// `WouldBlock` if there is none.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.device.recv(buffer)
    }

    /// Takes what [`Self::receive`] has read for what it is.
    ///
    /// # Errors
    /// The kernel left nothing of that kind.
    pub fn segment<'a>(&self, read: &'a mut [u8]) -> io::Result<Segment<'a>> {
        match self.offloads() {
            true => Segment::read(read),
            false => Ok(Segment::plain(read)),
        }
    }

    /// Hands a packet to the namespace.
    ///
    /// # Errors
    /// The kernel does not take it: the device is down, or it is no IP packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        match self.offloads() {
            true => self.send_behind(offload::plain(), packet),
            false => self.device.send(packet).map(|_| ()),
        }
    }

    /// Hands a TCP packet without a checksum to the namespace, which is divided into packets that carry `piece` bytes if that is
    /// given. The device has to have offloads.
    ///
    /// # Errors
    /// Those of [`Self::send`], and `InvalidInput` if it is no packet of TCP.
    pub fn send_unfinished(&self, packet: &mut [u8], piece: Option<NonZeroU16>) -> io::Result<()> {
        let header = offload::unfinished(packet, piece).ok_or(io::ErrorKind::InvalidInput)?;
        self.send_behind(header, packet)
    }

    /// Hands packets to the namespace, those of a flow in one piece where they follow each other.
    ///
    /// # Errors
    /// The kernel does not take one; the others were tried all the same.
    pub fn send_all(&self, packets: &[Bytes], coalescer: &mut Coalescer) -> io::Result<()> {
        if packets.len() < 2 || !self.offloads() {
            let mut result = Ok(());
            for packet in packets {
                result = result.and(self.send(packet));
            }
            return result;
        }
        let count = coalescer.fill(packets);
        let (table, packets) = (&mut coalescer.table, &mut coalescer.packets);
        let packets = packets.get_mut(..count).unwrap_or_default();
        self.device.send_multiple(table, packets, Coalescer::AHEAD).map(|_| ())
    }

    fn send_behind(&self, header: [u8; Coalescer::AHEAD], packet: &[u8]) -> io::Result<()> {
        self.device.send_vectored(&[IoSlice::new(&header), IoSlice::new(packet)]).map(|_| ())
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
