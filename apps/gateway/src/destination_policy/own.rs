//! Addresses of this machine, at which its own services listen.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time for which the addresses that were seen count.
const FRESH: Duration = Duration::from_secs(2);

/// The addresses as they were seen last, and when.
static SEEN: Mutex<Option<(Instant, HashSet<IpAddr>)>> = Mutex::new(None);

/// Returns true if `address` is one of an interface of this machine, or means the machine itself.
pub(super) fn is_own(address: IpAddr) -> bool {
    if address.is_loopback() || address.is_unspecified() {
        return true;
    }
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *seen {
        Some((since, addresses)) if since.elapsed() < FRESH => addresses.contains(&address),
        stale => {
            let addresses = look();
            let is_own = addresses.contains(&address);
            *stale = Some((Instant::now(), addresses));
            is_own
        }
    }
}

/// The addresses of all interfaces; none where the system does not tell.
#[cfg(target_os = "linux")]
pub(super) fn look() -> HashSet<IpAddr> {
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else { return HashSet::new() };
    let address = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())))
    };
    interfaces.filter_map(address).collect()
}

/// None: there are no tunnels, and what is not public is not reached unless it is named.
#[cfg(not(target_os = "linux"))]
pub(super) fn look() -> HashSet<IpAddr> {
    HashSet::new()
}
