//! The bytes of each path, for the budgets of metered links; and the sockets that paths have left.

use super::budget::Spending;
use super::rules::{Rules, Use};
use crate::links::Link;
use crate::{PathId, PathInfo};
use hvq_transport::time::Instant;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The time for which a socket is kept that no path uses: late packets arrive there, and a move may be taken back.
const GRACE: Duration = Duration::from_secs(30);
/// Sockets without paths at most.
const MOST_LEFT: usize = 64;

/// The bytes of paths that are in the account of a budget already.
#[derive(Debug, Default)]
pub(super) struct Meter {
    counted: BTreeMap<PathId, u64>,
}

impl Meter {
    /// Adds to `spending` what crossed metered links since the last call. `link` tells which link a path uses.
    pub(super) fn read<'a>(
        &mut self,
        paths: &[PathInfo],
        rules: &Rules,
        spending: &Spending,
        link: impl Fn(PathId) -> Option<&'a Link>,
    ) {
        self.counted.retain(|id, _| paths.iter().any(|path| path.id == *id));
        for path in paths {
            let counters = &path.stats.counters;
            let total = counters.bytes_sent + counters.bytes_received;
            let news = total - self.counted.insert(path.id, total).unwrap_or(0).min(total);
            let Some(link) = link(path.id).filter(|_| news > 0) else { continue };
            let local = path.stats.tuple.local.ip();
            let own = link.addresses.iter().find(|address| address.addr() == local);
            // A path from wherever the system likes leaves from one of the link's addresses.
            let address = own.or_else(|| link.addresses.first());
            let rule = address.and_then(|address| rules.find(link, address));
            if let Some(rule) = rule
                && let Use::Metered(Some(budget)) = rule.usage()
            {
                spending.spend(&rule.to_string(), budget, super::calendar(), news);
            }
        }
    }
}

/// The local addresses of sockets that paths have used.
#[derive(Debug, Default)]
pub(super) struct UsedSockets {
    /// Each with the time since which no path uses it.
    left: BTreeMap<SocketAddr, Option<Instant>>,
}

impl UsedSockets {
    /// Takes note of the addresses that paths use now. Returns those that none has used for long.
    pub(super) fn follow(&mut self, used: &[SocketAddr], now: Instant) -> Vec<SocketAddr> {
        for (address, since) in &mut self.left {
            let is_used = used.contains(address);
            *since = if is_used { None } else { Some(since.unwrap_or(now)) };
        }
        self.left.extend(used.iter().map(|address| (*address, None)));
        let mut over: Vec<SocketAddr> = Vec::new();
        let is_over = |since: &Option<Instant>| since.is_some_and(|since| now.since(since) >= GRACE);
        self.left.retain(|address, since| {
            over.extend(is_over(since).then_some(*address));
            !is_over(since)
        });
        // Links that flap without end do not leave sockets without end.
        while self.left.len() > MOST_LEFT {
            let oldest = self.left.iter().filter_map(|(address, since)| Some(((*since)?, *address))).min();
            let Some((_, address)) = oldest else { break };
            self.left.remove(&address);
            over.push(address);
        }
        over
    }

    /// Returns true if some are still to be released.
    pub(super) fn is_waiting(&self) -> bool {
        self.left.values().any(Option::is_some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        ([10, 0, 0, 1], port).into()
    }

    #[test]
    fn a_socket_is_released_once_no_path_has_used_it_for_a_while() {
        let (mut sockets, start) = (UsedSockets::default(), Instant::ZERO);
        assert_eq!(sockets.follow(&[address(1), address(2)], start), []);
        assert_eq!(sockets.follow(&[address(2)], start), []);
        assert!(sockets.is_waiting());
        assert_eq!(sockets.follow(&[address(2)], start + GRACE), [address(1)]);
        assert_eq!(sockets.follow(&[address(2)], start + GRACE * 2), []);
        assert!(!sockets.is_waiting());
    }

    #[test]
    fn paths_that_come_and_go_quickly_leave_a_bounded_number_of_sockets() {
        let mut sockets = UsedSockets::default();
        let mut released = 0;
        for port in 1..1_000 {
            let now = Instant::ZERO + Duration::from_millis(u64::from(port));
            released += sockets.follow(&[address(port)], now).len();
        }
        assert_eq!(released, 999 - MOST_LEFT);
    }
}
