//! Links read again and again, by a library that knows the other systems.

use super::{Link, LinkKind, LinkRoute, LinkState, bounded, is_routable, publish};
use crate::runtime;
use crate::runtime::Runtime;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use netdev::interface::state::OperState;
use netdev::interface::types::InterfaceType;
use netdev::{Interface, NetworkDevice};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Publishes the links each time that they are found changed, for ever.
pub(super) async fn follow(runtime: Arc<dyn Runtime>, period: Duration, sender: watch::Sender<Arc<[Link]>>) {
    loop {
        runtime::sleep(&*runtime, period).await;
        match read().await {
            Ok(links) => publish(&sender, links),
            Err(error) => tracing::debug!(%error, "the links cannot be read"),
        }
    }
}

/// The links now. They are read on a thread that may block.
pub(super) async fn read() -> io::Result<Vec<Link>> {
    let interfaces = runtime::unblock(netdev::get_interfaces).await?;
    if interfaces.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the system names no network interfaces"));
    }
    Ok(bounded(interfaces.into_iter().map(link).collect()))
}

fn link(interface: Interface) -> Link {
    let v4 = interface.ipv4.iter().copied().map(IpNet::V4);
    let v6 = interface.ipv6.iter().enumerate().filter(|(place, _)| {
        let flags = interface.ipv6_addr_flags.get(*place);
        flags.is_none_or(|flags| !flags.tentative && !flags.deprecated && !flags.duplicated)
    });
    let addresses = v4.chain(v6.map(|(_, address)| IpNet::V6(*address)));
    Link {
        addresses: addresses.filter(|address| is_routable(address.addr())).collect(),
        routes: default_routes(interface.gateway.as_ref()),
        kind: kind(&interface),
        state: state(&interface),
        name: interface.name,
        index: interface.index,
    }
}

/// The default routes through a gateway. Its metric is not known.
fn default_routes(gateway: Option<&NetworkDevice>) -> Vec<LinkRoute> {
    let Some(gateway) = gateway else { return Vec::new() };
    let v4 = (!gateway.ipv4.is_empty()).then(|| IpNet::V4(Ipv4Net::default()));
    let v6 = (!gateway.ipv6.is_empty()).then(|| IpNet::V6(Ipv6Net::default()));
    let routes = v4.into_iter().chain(v6);
    routes.map(|destination| LinkRoute { destination, metric: 0 }).collect()
}

fn state(interface: &Interface) -> LinkState {
    match interface.oper_state {
        _ if !interface.is_up() => LinkState::Down,
        OperState::Up | OperState::Unknown => LinkState::Up,
        _ => LinkState::NoCarrier,
    }
}

fn kind(interface: &Interface) -> LinkKind {
    match interface.if_type {
        _ if interface.is_loopback() => LinkKind::Loopback,
        InterfaceType::Wireless80211 | InterfaceType::PeerToPeerWireless => LinkKind::Wifi,
        InterfaceType::Wwan | InterfaceType::Wwanpp | InterfaceType::Wwanpp2 => LinkKind::Cellular,
        InterfaceType::Tunnel | InterfaceType::ProprietaryVirtual => LinkKind::Tunnel,
        InterfaceType::Ethernet
        | InterfaceType::Ethernet3Megabit
        | InterfaceType::FastEthernetT
        | InterfaceType::FastEthernetFx
        | InterfaceType::GigabitEthernet
        | InterfaceType::Bridge => LinkKind::Ethernet,
        _ => LinkKind::Other,
    }
}
