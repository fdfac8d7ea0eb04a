//! Devices, addresses, routes and rules of this network namespace, by rtnetlink(7).

use crate::prefix::Prefix;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use netlink_packet_route::{AddressFamily, IpProtocol, RouteNetlinkMessage};
use nix::sys::socket::{
    AddressFamily as SocketFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    socket,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;

/// The number by which the kernel knows who made a rule: no other program uses it.
const MAKER: u8 = 0x76;
/// The main routing table.
pub(super) const MAIN: u32 = 254;
/// Bytes of the largest answer to a request.
const ANSWER: usize = 8 << 10;

/// A protocol with ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// The version of IP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Version {
    V4,
    V6,
}

impl Version {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The version of `address`.
    pub(super) const fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// All of its addresses.
    pub(super) fn everything(self) -> Prefix {
        let first: IpAddr = match self {
            Self::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Self::V6 => Ipv6Addr::UNSPECIFIED.into(),
        };
        Prefix::new(first, 0).expect("every address has no bits in common")
    }

    const fn family(self) -> AddressFamily {
        match self {
            Self::V4 => AddressFamily::Inet,
            Self::V6 => AddressFamily::Inet6,
        }
    }
}

/// The packets that a rule is for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Selector {
    /// All.
    All,
    /// UDP to this address and port.
    Peer(SocketAddr),
    /// To this network.
    Network(String),
    /// To this port.
    Port(Protocol, u16),
    /// With this mark.
    Mark(u32),
}

/// A rule of the routing policy: `selector` looks into `table`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Rule {
    pub(super) version: Version,
    pub(super) priority: u32,
    pub(super) selector: Selector,
    pub(super) table: u32,
    /// Pass over the default routes of the table.
    pub(super) specific: bool,
}

impl Rule {
    /// Adds it.
    ///
    /// # Errors
    /// The kernel refuses, or has it already ([`io::ErrorKind::AlreadyExists`]).
    pub(super) fn add(&self) -> io::Result<()> {
        request(RouteNetlinkMessage::NewRule(self.message()?), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Removes it, if it is there.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn remove(&self) -> io::Result<()> {
        match request(RouteNetlinkMessage::DelRule(self.message()?), 0) {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            // No such version of IP in this kernel: then there is no rule of it, either.
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => Ok(()),
            other => other,
        }
    }

    fn message(&self) -> io::Result<RuleMessage> {
        let mut message = RuleMessage::default();
        message.header.family = self.version.family();
        message.header.action = RuleAction::ToTable;
        message.header.table = u8::try_from(self.table).unwrap_or(0);
        message.attributes = vec![
            RuleAttribute::Priority(self.priority),
            RuleAttribute::Table(self.table),
            RuleAttribute::Protocol(RouteProtocol::Other(MAKER)),
        ];
        if self.specific {
            message.attributes.push(RuleAttribute::SuppressPrefixLen(0));
        }
        match &self.selector {
            Selector::All => {}
            Selector::Peer(peer) => {
                message.header.dst_len = Prefix::only(peer.ip()).bits();
                message.attributes.push(RuleAttribute::Destination(peer.ip()));
                message.attributes.extend(ports(Protocol::Udp, peer.port()));
            }
            Selector::Network(network) => {
                let network: Prefix = network.parse().map_err(io::Error::other)?;
                message.header.dst_len = network.bits();
                message.attributes.push(RuleAttribute::Destination(network.address()));
            }
            Selector::Port(protocol, port) => message.attributes.extend(ports(*protocol, *port)),
            Selector::Mark(mark) => message.attributes.push(RuleAttribute::FwMark(*mark)),
        }
        Ok(message)
    }
}

/// The attributes that select packets of `protocol` to `port`.
fn ports(protocol: Protocol, port: u16) -> [RuleAttribute; 2] {
    let number = match protocol {
        Protocol::Tcp => IpProtocol::Tcp,
        Protocol::Udp => IpProtocol::Udp,
    };
    let range = RulePortRange { start: port, end: port };
    [RuleAttribute::IpProtocol(number), RuleAttribute::DestinationPortRange(range)]
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let six = if self.version == Version::V6 { "-6 " } else { "" };
        write!(f, "ip {six}rule add priority {}", self.priority)?;
        match &self.selector {
            Selector::All => {}
            Selector::Peer(peer) => write!(f, " to {} ipproto udp dport {}", peer.ip(), peer.port())?,
            Selector::Network(network) => write!(f, " to {network}")?,
            Selector::Port(protocol, port) => write!(f, " ipproto {} dport {port}", protocol.name())?,
            Selector::Mark(mark) => write!(f, " fwmark {mark:#x}")?,
        }
        write!(f, " lookup {}", self.table)?;
        if self.specific { f.write_str(" suppress_prefixlength 0") } else { Ok(()) }
    }
}

/// Returns the number of `device`; `None` if there is none of that name.
pub(super) fn index(device: &str) -> Option<u32> {
    nix::net::if_::if_nametoindex(device).ok()
}

/// Brings the device with number `index` up, with packets of `mtu` bytes at most.
///
/// # Errors
/// The kernel refuses.
pub(super) fn bring_up(index: u32, mtu: u16) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index;
    message.header.flags = LinkFlags::Up;
    message.header.change_mask = LinkFlags::Up;
    message.attributes = vec![LinkAttribute::Mtu(mtu.into()), LinkAttribute::TxQueueLen(1000)];
    request(RouteNetlinkMessage::SetLink(message), 0)
}

/// Gives the device with number `index` an address. Nobody is asked whether he has it (RFC 4862 §5.4): the server assigned it.
///
/// # Errors
/// The kernel refuses.
pub(super) fn add_address(index: u32, address: Prefix) -> io::Result<()> {
    request(RouteNetlinkMessage::NewAddress(address_message(index, address)), NLM_F_CREATE | NLM_F_EXCL)
}

/// Takes an address from the device with number `index`.
///
/// # Errors
/// The kernel refuses.
pub(super) fn remove_address(index: u32, address: Prefix) -> io::Result<()> {
    request(RouteNetlinkMessage::DelAddress(address_message(index, address)), 0)
}

fn address_message(index: u32, address: Prefix) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = index;
    message.header.family = Version::of(address.address()).family();
    message.header.prefix_len = address.bits();
    if address.address().is_ipv6() {
        message.header.flags = AddressHeaderFlags::Nodad;
    }
    message.attributes =
        vec![AddressAttribute::Local(address.address()), AddressAttribute::Address(address.address())];
    message
}

/// Routes `network` through the device with number `index`, in `table`. The route ends with the device.
///
/// # Errors
/// The kernel refuses, or there is such a route already ([`io::ErrorKind::AlreadyExists`]).
pub(super) fn add_route(index: u32, network: Prefix, table: u32) -> io::Result<()> {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: Version::of(network.address()).family(),
        destination_prefix_length: network.bits(),
        table: u8::try_from(table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC),
        protocol: RouteProtocol::Static,
        scope: if network.address().is_ipv4() { RouteScope::Link } else { RouteScope::Universe },
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Oif(index), RouteAttribute::Table(table)];
    if network.bits() > 0 {
        message.attributes.push(RouteAttribute::Destination(network.address().into()));
    }
    request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
}

/// Sends a request, and waits for the kernel's answer, which comes at once.
fn request(message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let socket =
        socket(SocketFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::from(message));
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    message.header.sequence_number = 1;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    send(socket.as_raw_fd(), &bytes, MsgFlags::empty())?;
    let mut answer = vec![0; ANSWER];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    let answer = answer.get(..length).unwrap_or_default();
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(answer).map_err(io::Error::other)?;
    match answer.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
        _ => Ok(()),
    }
}
