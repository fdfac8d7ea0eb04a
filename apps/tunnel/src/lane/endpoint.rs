//! The near end of one TCP flow, without I/O: segments of a program go in, bytes of its stream come out, and the other way round.

use super::tuple::Tuple;
use bytes::Bytes;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Checksum, Device, DeviceCapabilities, Medium, PacketMeta};
use smoltcp::socket::tcp::{RecvError, Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address, Ipv6Address};
use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::num::{NonZeroU16, NonZeroUsize};
use std::time::Duration;

/// The bytes that wait in either direction of a flow at most, 128 KiB: a round trip to a program of this machine takes far less
/// than a millisecond, so that the window is not in the way.
pub(crate) const BUFFER: usize = 128 << 10;
/// A program that acknowledges nothing for so long is gone.
const TIMEOUT: Duration = Duration::from_secs(180);
/// The silence after which a program is asked whether it is still there (RFC 9293 §3.8.4).
const KEEP_ALIVE: Duration = Duration::from_secs(75);

/// The longest packet that is left to the kernel to divide.
const LONGEST: NonZeroUsize = NonZeroUsize::new(65_535).expect("it is not zero");

/// The work that the kernel behind the device does for packets that leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offload {
    /// None: packets leave as they are to arrive.
    Nothing,
    /// It computes checksums and divides long segments (TSO).
    Segments,
}

/// A packet for the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outgoing {
    /// The packet. With [`Offload::Segments`] it has no checksum.
    pub(crate) packet: Vec<u8>,
    /// The bytes that each packet carries into which the kernel is to divide it; `None` if it is not to be divided.
    pub(crate) piece: Option<NonZeroU16>,
}

/// The result of reading from the program's stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Read {
    /// Bytes, in order.
    Data(Bytes),
    /// Nothing has come yet.
    Nothing,
    /// The program has finished: nothing more will come.
    End,
    /// The program has reset the connection, or is gone.
    Reset,
}

/// The stage of the connection with the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// It goes on in a direction at least.
    Open,
    /// Both ends finished, and a last acknowledgement of ours may have been lost (TIME-WAIT).
    Lingering,
    /// It is over.
    Over,
}

/// The connection with a program inside of the tunnel.
pub(crate) struct Endpoint {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    packets: Packets,
    /// Our direction was finished.
    is_finished: bool,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Endpoint").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// The end of the flow `tuple`, which speaks for its destination in packets of at most [`crate::MTU`] bytes, divided by
    /// `offload`. Nothing was received yet: the SYN is to be the first.
    pub(crate) fn new(tuple: Tuple, offload: Offload) -> Self {
        let mut packets = Packets::new(offload);
        let interface = interface(tuple.destination.ip(), &mut packets);
        let buffer = || SocketBuffer::new(vec![0; BUFFER]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        socket.set_timeout(Some(TIMEOUT.into()));
        socket.set_keep_alive(Some(KEEP_ALIVE.into()));
        // A port of 0 is refused here, and then in `poll` by a reset.
        let _unspecified = socket.listen(tuple.destination);
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        let handle = sockets.add(socket);
        Self { interface, sockets, handle, packets, is_finished: false }
    }

    /// The answer to the SYN of a flow that is refused: a reset, unless the packet is none that may be answered.
    pub(crate) fn refuse(tuple: Tuple, syn: Vec<u8>, offload: Offload) -> Option<Outgoing> {
        let mut packets = Packets::new(offload);
        packets.arrived.push_back(syn);
        let mut interface = interface(tuple.destination.ip(), &mut packets);
        // RFC 9293 §3.10.7.1: nobody listens.
        interface.poll(Instant::ZERO, &mut packets, &mut SocketSet::new(Vec::new()));
        packets.leaving.pop_front()
    }

    /// Takes a segment of the program, whose checksum is right, for [`Self::poll`] to look at.
    pub(crate) fn receive(&mut self, packet: Vec<u8>) {
        self.packets.arrived.push_back(packet);
    }

    /// Treats what was received, written and read, and runs timers that are due at `now`, counted from any moment.
    pub(crate) fn poll(&mut self, now: Duration) {
        self.interface.poll(instant(now), &mut self.packets, &mut self.sockets);
    }

    /// The next packet for the program.
    pub(crate) fn transmit(&mut self) -> Option<Outgoing> {
        self.packets.leaving.pop_front()
    }

    /// The time from `now` until [`Self::poll`] has something to do; `None` if only a call can change that.
    pub(crate) fn deadline(&mut self, now: Duration) -> Option<Duration> {
        self.interface.poll_delay(instant(now), &self.sockets).map(Into::into)
    }

    /// Reads up to `most` bytes that the program sent.
    pub(crate) fn read(&mut self, most: usize) -> Read {
        let is_opening = matches!(self.state(), State::SynReceived);
        let socket = self.socket();
        if is_opening {
            return Read::Nothing;
        }
        let taken = socket.recv(|data| {
            let size = data.len().min(most);
            (size, Bytes::copy_from_slice(data.get(..size).unwrap_or_default()))
        });
        match taken {
            Ok(data) if data.is_empty() => Read::Nothing,
            Ok(data) => Read::Data(data),
            Err(RecvError::Finished) => Read::End,
            Err(RecvError::InvalidState) => Read::Reset,
        }
    }

    /// Writes as much of `data` as there is room for; returns how many bytes, or `None` if the program takes no more.
    pub(crate) fn write(&mut self, data: &[u8]) -> Option<usize> {
        match self.state() {
            State::SynReceived => Some(0),
            _ => self.socket().send_slice(data).ok(),
        }
    }

    /// Finishes the stream towards the program, behind all that was written; the other direction goes on.
    pub(crate) fn finish(&mut self) {
        self.is_finished = true;
        self.socket().close();
    }

    /// Resets the connection: the next poll makes the segment that says so.
    pub(crate) fn abort(&mut self) {
        self.socket().abort();
    }

    /// The stage of the connection.
    pub(crate) fn stage(&self) -> Stage {
        match self.state() {
            State::TimeWait => Stage::Lingering,
            // A reset before the handshake was complete has it listen again.
            State::Closed | State::Listen => Stage::Over,
            _ => Stage::Open,
        }
    }

    /// Returns true if the program broke the connection off: it is over before our direction was finished.
    pub(crate) fn is_broken(&self) -> bool {
        self.stage() == Stage::Over && !self.is_finished
    }

    fn state(&self) -> State {
        self.sockets.get::<Socket<'_>>(self.handle).state()
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut::<Socket<'_>>(self.handle)
    }
}

/// An interface with `address` alone, from which everything can be reached.
fn interface(address: IpAddr, packets: &mut Packets) -> Interface {
    let mut config = Config::new(HardwareAddress::Ip);
    // RFC 9293 §3.4.1: nobody can guess the first number.
    config.random_seed = RandomState::new().hash_one(address);
    let mut interface = Interface::new(config, packets, Instant::ZERO);
    let bits = if address.is_ipv4() { 32 } else { 128 };
    interface.update_ip_addrs(|addresses| {
        let _room_for_two = addresses.push(IpCidr::new(IpAddress::from(address), bits));
    });
    // Where there are no link addresses, a router's own address is of no account.
    let _room_for_two = match address {
        IpAddr::V4(_) => interface.routes_mut().add_default_ipv4_route(Ipv4Address::UNSPECIFIED),
        IpAddr::V6(_) => interface.routes_mut().add_default_ipv6_route(Ipv6Address::UNSPECIFIED),
    };
    interface
}

fn instant(now: Duration) -> Instant {
    Instant::from_micros(i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}

/// The packets of one flow, both ways.
struct Packets {
    arrived: VecDeque<Vec<u8>>,
    leaving: VecDeque<Outgoing>,
    offload: Offload,
}

impl Packets {
    fn new(offload: Offload) -> Self {
        Self { arrived: VecDeque::new(), leaving: VecDeque::new(), offload }
    }
}

impl Device for Packets {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Arrived, Leaving<'_>)> {
        let packet = self.arrived.pop_front()?;
        Some((Arrived(packet), Leaving { packets: &mut self.leaving, piece: None }))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Leaving<'_>> {
        Some(Leaving { packets: &mut self.leaving, piece: None })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = crate::MTU.into();
        // Those of arriving segments were looked at before: a long one has none.
        capabilities.checksum.tcp = match self.offload {
            Offload::Nothing => Checksum::Tx,
            Offload::Segments => Checksum::None,
        };
        // smoltcp 0.14 drops packets of IPv6 that are longer than the MTU, also where it may make them: those leave one by one.
        if self.offload == Offload::Segments {
            capabilities.segmentation.tcpv4 = Some(LONGEST);
        }
        capabilities
    }
}

struct Arrived(Vec<u8>);

impl phy::RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Leaving<'a> {
    packets: &'a mut VecDeque<Outgoing>,
    piece: Option<NonZeroU16>,
}

impl phy::TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, size: usize, fill: F) -> R {
        let mut packet = vec![0; size];
        let filled = fill(&mut packet);
        self.packets.push_back(Outgoing { packet, piece: self.piece });
        filled
    }

    fn set_meta(&mut self, meta: PacketMeta) {
        self.piece = meta.segmentation_offload_size;
    }
}

#[cfg(test)]
pub(super) mod tests;
