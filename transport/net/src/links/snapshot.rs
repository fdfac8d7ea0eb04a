//! A snapshot of the links, put together from the messages of three dumps: links, addresses, routes.

use super::{Link, LinkRoute, LinkState, MOST_LINKS, MOST_OF_EACH, bounded, is_routable, kind};
use ipnet::IpNet;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteType};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The table of routes to this machine's own addresses (RT_TABLE_LOCAL).
const LOCAL: u32 = 255;

/// The links that were told of so far, by index.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    links: BTreeMap<u32, Link>,
}

impl Snapshot {
    /// Takes in a message of a dump. Links have to come before their addresses and routes.
    pub(super) fn take(&mut self, message: &RouteNetlinkMessage) {
        match message {
            RouteNetlinkMessage::NewLink(link) => self.take_link(link),
            RouteNetlinkMessage::NewAddress(address) => self.take_address(address),
            RouteNetlinkMessage::NewRoute(route) => self.take_route(route),
            _ => {}
        }
    }

    /// The links.
    pub(super) fn into_links(self) -> Vec<Link> {
        bounded(self.links.into_values().collect())
    }

    fn take_link(&mut self, message: &LinkMessage) {
        let name = message.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name.clone()),
            _ => None,
        });
        let (Some(name), true) = (name, self.links.len() < MOST_LINKS) else {
            tracing::debug!(index = message.header.index, "a link without a name, or one too many");
            return;
        };
        let flags = message.header.flags;
        let state = if !flags.contains(LinkFlags::Up) {
            LinkState::Down
        } else if flags.contains(LinkFlags::LowerUp) && !flags.contains(LinkFlags::Dormant) {
            // IFF_RUNNING says the same up to a second later.
            LinkState::Up
        } else {
            LinkState::NoCarrier
        };
        let index = message.header.index;
        let kind = kind::of(message, &name);
        self.links
            .insert(index, Link { name, index, kind, state, addresses: Vec::new(), routes: Vec::new() });
    }

    fn take_address(&mut self, message: &AddressMessage) {
        let (mut address, mut local) = (None, None);
        let mut flags = AddressFlags::from_bits_retain(message.header.flags.bits().into());
        for attribute in &message.attributes {
            match attribute {
                AddressAttribute::Address(value) => address = Some(*value),
                // At the end of a point-to-point link the other is that of the peer.
                AddressAttribute::Local(value) => local = Some(*value),
                AddressAttribute::Flags(value) => flags = *value,
                _ => {}
            }
        }
        let unusable = AddressFlags::Tentative | AddressFlags::Dadfailed | AddressFlags::Deprecated;
        let usable = local.or(address).filter(|address| is_routable(*address) && !flags.intersects(unusable));
        let address = usable.and_then(|address| IpNet::new(address, message.header.prefix_len).ok());
        if let (Some(address), Some(link)) = (address, self.links.get_mut(&message.header.index))
            && link.addresses.len() < MOST_OF_EACH
        {
            link.addresses.push(address);
        }
    }

    fn take_route(&mut self, message: &RouteMessage) {
        let (mut destination, mut interfaces, mut metric) = (None, Vec::new(), 0);
        let mut table = u32::from(message.header.table);
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Destination(RouteAddress::Inet(address)) => {
                    destination = Some((*address).into())
                }
                RouteAttribute::Destination(RouteAddress::Inet6(address)) => {
                    destination = Some((*address).into());
                }
                RouteAttribute::Oif(index) => interfaces.push(*index),
                RouteAttribute::MultiPath(hops) => {
                    interfaces.extend(hops.iter().map(|hop| hop.interface_index));
                }
                RouteAttribute::Priority(value) => metric = *value,
                RouteAttribute::Table(value) => table = *value,
                _ => {}
            }
        }
        if message.header.kind != RouteType::Unicast || table == LOCAL {
            return;
        }
        let Some(prefix) = prefix(message, destination) else { return };
        for index in interfaces {
            if let Some(link) = self.links.get_mut(&index) {
                note(&mut link.routes, LinkRoute { destination: prefix, metric });
            }
        }
    }
}

/// Adds `route`, in place of the narrowest if there are as many as are kept: a default route is never lost.
fn note(routes: &mut Vec<LinkRoute>, route: LinkRoute) {
    if routes.len() < MOST_OF_EACH {
        routes.push(route);
        return;
    }
    let narrowest = routes.iter_mut().max_by_key(|route| route.destination.prefix_len());
    if let Some(narrowest) = narrowest
        && route.destination.prefix_len() < narrowest.destination.prefix_len()
    {
        *narrowest = route;
    }
}

/// The destination of a route; a message without one is about a default route. `None` for what is neither IPv4 nor IPv6,
/// and for multicast and link-local destinations.
fn prefix(message: &RouteMessage, destination: Option<IpAddr>) -> Option<IpNet> {
    use netlink_packet_route::AddressFamily;
    let length = message.header.destination_prefix_length;
    let any: IpAddr = match message.header.address_family {
        AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        AddressFamily::Inet6 => Ipv6Addr::UNSPECIFIED.into(),
        _ => return None,
    };
    let address = destination.unwrap_or(any);
    (length == 0 || is_routable(address)).then(|| IpNet::new(address, length).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_route::AddressFamily;
    use netlink_packet_route::address::AddressHeaderFlags;
    use netlink_packet_route::route::RouteHeader;

    fn link(index: u32, name: &str) -> RouteNetlinkMessage {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up | LinkFlags::LowerUp;
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        RouteNetlinkMessage::NewLink(message)
    }

    fn address(index: u32, address: &str, flags: AddressHeaderFlags) -> RouteNetlinkMessage {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = 64;
        message.header.flags = flags;
        message.attributes.push(AddressAttribute::Address(address.parse().unwrap()));
        RouteNetlinkMessage::NewAddress(message)
    }

    fn route(index: u32, destination: &str, metric: u32) -> RouteMessage {
        let destination: ipnet::Ipv4Net = destination.parse().unwrap();
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: AddressFamily::Inet,
            destination_prefix_length: destination.prefix_len(),
            table: RouteHeader::RT_TABLE_MAIN,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        // The kernel leaves out the destination of a default route.
        if destination.prefix_len() > 0 {
            let address = RouteAddress::Inet(destination.addr());
            message.attributes.push(RouteAttribute::Destination(address));
        }
        message.attributes.extend([RouteAttribute::Oif(index), RouteAttribute::Priority(metric)]);
        message
    }

    fn taken(messages: &[RouteNetlinkMessage]) -> Vec<Link> {
        let mut snapshot = Snapshot::default();
        messages.iter().for_each(|message| snapshot.take(message));
        snapshot.into_links()
    }

    #[test]
    fn addresses_that_cannot_be_used_beyond_the_link_or_not_yet_are_left_out() {
        let none = AddressHeaderFlags::empty();
        let links = taken(&[
            link(7, "wlan0"),
            address(7, "2001:db8::1", none),
            address(7, "2001:db8::2", AddressHeaderFlags::Tentative),
            address(7, "2001:db8::3", AddressHeaderFlags::Deprecated),
            address(7, "fe80::1", none),
            address(8, "2001:db8::4", none),
        ]);
        assert_eq!(links[0].addresses, ["2001:db8::1/64".parse().unwrap()]);
    }

    #[test]
    fn a_link_is_up_once_it_is_switched_on_connected_and_admitted() {
        let state = |flags: LinkFlags| {
            let RouteNetlinkMessage::NewLink(mut message) = link(7, "wlan0") else { unreachable!() };
            message.header.flags = flags;
            taken(&[RouteNetlinkMessage::NewLink(message)])[0].state
        };
        assert_eq!(state(LinkFlags::empty()), LinkState::Down);
        assert_eq!(state(LinkFlags::Up), LinkState::NoCarrier);
        assert_eq!(state(LinkFlags::Up | LinkFlags::LowerUp), LinkState::Up);
        // A station waits for its authentication (RFC 2863 §3.1.12).
        assert_eq!(state(LinkFlags::Up | LinkFlags::LowerUp | LinkFlags::Dormant), LinkState::NoCarrier);
    }

    #[test]
    fn of_a_great_many_routes_the_default_ones_are_kept_whenever_they_come() {
        let narrow = (0..1000_u32).map(|number| {
            let network = format!("{}/24", Ipv4Addr::from(0x0a00_0000 + (number << 8)));
            RouteNetlinkMessage::NewRoute(route(7, &network, 5))
        });
        let default = RouteNetlinkMessage::NewRoute(route(7, "0.0.0.0/0", 600));
        let messages: Vec<_> = std::iter::once(link(7, "wlan0")).chain(narrow).chain([default]).collect();
        let links = taken(&messages);
        assert_eq!(links[0].routes.len(), MOST_OF_EACH);
        assert_eq!(links[0].default_metric([192, 0, 2, 1].into()), Some(600));
    }

    #[test]
    fn routes_to_this_machine_itself_and_those_that_refuse_are_no_way_out() {
        let mut own = route(7, "0.0.0.0/0", 1);
        own.attributes.push(RouteAttribute::Table(LOCAL));
        let mut refusal = route(7, "0.0.0.0/0", 2);
        refusal.header.kind = RouteType::Unreachable;
        let links = taken(&[
            link(7, "wlan0"),
            RouteNetlinkMessage::NewRoute(own),
            RouteNetlinkMessage::NewRoute(refusal),
        ]);
        assert_eq!(links[0].routes, []);
    }
}
