//! The technology behind an interface of Linux: by its hardware type, by its driver, and by what sysfs says about it.

use super::LinkKind;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkLayerType, LinkMessage};
use std::fs;
use std::path::Path;

/// Returns the kind of the interface `name` that `message` describes.
pub(super) fn of(message: &LinkMessage, name: &str) -> LinkKind {
    let hardware = by_hardware(message.header.link_layer_type);
    let virtual_kind = message.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::LinkInfo(infos) => infos.iter().find_map(|info| match info {
            LinkInfo::Kind(kind) => Some(by_driver(kind)),
            _ => None,
        }),
        _ => None,
    });
    // Physical interfaces have no kind of their own: a card for Wi-Fi says that it is Ethernet.
    virtual_kind.flatten().or_else(|| by_sysfs(name, message.header.index)).unwrap_or(hardware)
}

fn by_hardware(hardware: LinkLayerType) -> LinkKind {
    use LinkLayerType as Hardware;
    match hardware {
        Hardware::Ether | Hardware::Eether | Hardware::Infiniband => LinkKind::Ethernet,
        Hardware::Ieee80211 | Hardware::Ieee80211Prism | Hardware::Ieee80211Radiotap => LinkKind::Wifi,
        Hardware::Loopback => LinkKind::Loopback,
        // Modems: raw IP, PPP, and the pipes of Phonet.
        Hardware::Rawip | Hardware::PhonetPipe => LinkKind::Cellular,
        Hardware::Tunnel | Hardware::Tunnel6 | Hardware::Sit | Hardware::Ipgre | Hardware::Ip6gre => {
            LinkKind::Tunnel
        }
        // TUN devices and WireGuard have no hardware at all.
        Hardware::None => LinkKind::Tunnel,
        _ => LinkKind::Other,
    }
}

/// Returns the kind that the name of a driver stands for; `None` if it says nothing.
fn by_driver(driver: &InfoKind) -> Option<LinkKind> {
    match driver {
        InfoKind::Bridge
        | InfoKind::Vlan
        | InfoKind::Veth
        | InfoKind::Bond
        | InfoKind::Team
        | InfoKind::MacVlan
        | InfoKind::IpVlan
        | InfoKind::Dsa
        | InfoKind::Netkit => Some(LinkKind::Ethernet),
        InfoKind::VirtWifi => Some(LinkKind::Wifi),
        InfoKind::Wwan | InfoKind::RmNet => Some(LinkKind::Cellular),
        InfoKind::Tun
        | InfoKind::Vxlan
        | InfoKind::GreTap
        | InfoKind::GreTap6
        | InfoKind::IpIp
        | InfoKind::Ip6Tnl
        | InfoKind::SitTun
        | InfoKind::GreTun
        | InfoKind::GreTun6
        | InfoKind::Vti
        | InfoKind::Vti6
        | InfoKind::Wireguard
        | InfoKind::Xfrm
        | InfoKind::Geneve
        | InfoKind::Gtp
        | InfoKind::BareUdp => Some(LinkKind::Tunnel),
        InfoKind::Dummy | InfoKind::Ifb | InfoKind::Nlmon | InfoKind::Vrf => Some(LinkKind::Other),
        _ => None,
    }
}

/// Returns what sysfs says about interface `name`, if the folder there is that of the interface `index`: the file system
/// may be that of another network namespace.
fn by_sysfs(name: &str, index: u32) -> Option<LinkKind> {
    let folder = Path::new("/sys/class/net").join(name);
    let number = fs::read_to_string(folder.join("ifindex")).ok()?;
    if number.trim().parse() != Ok(index) {
        return None;
    }
    if folder.join("phy80211").exists() || folder.join("wireless").exists() {
        return Some(LinkKind::Wifi);
    }
    let events = fs::read_to_string(folder.join("uevent")).ok()?;
    match events.lines().find_map(|line| line.strip_prefix("DEVTYPE=")) {
        Some("wlan") => Some(LinkKind::Wifi),
        Some("wwan") => Some(LinkKind::Cellular),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(hardware: LinkLayerType, driver: Option<InfoKind>) -> LinkKind {
        let mut message = LinkMessage::default();
        message.header.link_layer_type = hardware;
        let infos = driver.map(|driver| LinkAttribute::LinkInfo(vec![LinkInfo::Kind(driver)]));
        message.attributes.extend(infos);
        of(&message, "no-such-if0")
    }

    #[test]
    fn a_driver_says_more_than_the_hardware_and_a_tunnel_is_no_cable() {
        for (hardware, driver, kind) in [
            (LinkLayerType::Ether, None, LinkKind::Ethernet),
            (LinkLayerType::Ether, Some(InfoKind::Veth), LinkKind::Ethernet),
            (LinkLayerType::Ether, Some(InfoKind::Vxlan), LinkKind::Tunnel),
            (LinkLayerType::None, Some(InfoKind::Wireguard), LinkKind::Tunnel),
            (LinkLayerType::None, Some(InfoKind::Wwan), LinkKind::Cellular),
            (LinkLayerType::Rawip, None, LinkKind::Cellular),
            (LinkLayerType::Ether, Some(InfoKind::Dummy), LinkKind::Other),
            (LinkLayerType::Loopback, None, LinkKind::Loopback),
        ] {
            assert_eq!(described(hardware, driver.clone()), kind, "{hardware:?} {driver:?}");
        }
    }
}
