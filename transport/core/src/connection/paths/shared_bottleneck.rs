//! Shared-bottleneck accounting: the bytes that all connections of an endpoint put on the channels that they share, so
//! that each knows those that it finds there.

use crate::Bandwidth;
use crate::connection::{Connection, Role};
use crate::hashing::KeyedMap;
use crate::path::path::{Account, Path};
use crate::recovery::backlog::Backlog;
use crate::time::Instant;
use std::net::SocketAddr;

/// Connections of an endpoint that open their paths with padding. Each takes some 5 kB of the way up, and a path that opens without is
/// in full use a round trip later: twenty small requests beside a download took up to a third longer.
const FEW: usize = 4;

/// The queues in front of channels whose rate was promised to one endpoint ([`Sharing::Endpoint`](hvq_scheduler::Sharing)).
/// Each grows by what any connection sends and drains at that rate.
///
/// A connection alone learns of the queue of others from round trips, which show it only after it was met, and both
/// directions as one. The endpoint to which the channel belongs owns all who send there and knows it at once.
#[derive(Debug, Default)]
pub(crate) struct SharedBottlenecks {
    queues: KeyedMap<Channel, Queue>,
}

/// The bytes that wait for a channel, and the rate at which they drain.
#[derive(Clone, Copy, Debug)]
struct Queue {
    backlog: Backlog,
    rate: Bandwidth,
}

impl Queue {
    fn bytes(&self, now: Instant) -> usize {
        self.backlog.bytes(now, usize::MAX, || Some(self.rate))
    }
}

/// A channel of an endpoint: its own by the local address, that of a peer by the peer's as well, from which all of the
/// peer's connections come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Channel {
    local: SocketAddr,
    remote: Option<SocketAddr>,
}

impl Channel {
    /// The channel of `path`, as `role` sees it: clients are those who have channels of their own.
    fn of(path: &Path, role: Role) -> Self {
        let tuple = path.route.tuple;
        Self { local: tuple.local, remote: (role == Role::Server).then_some(tuple.remote) }
    }
}

impl SharedBottlenecks {
    /// Returns true if anything was ever entered.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.queues.is_empty()
    }

    /// `bytes` leave at `now` over `channel`, which carries `rate`. Before another channel is added those are forgotten whose
    /// queue is gone, so that no more are kept than have one.
    fn add(&mut self, channel: Channel, bytes: usize, rate: Bandwidth, now: Instant) {
        if !self.queues.contains_key(&channel) {
            self.queues.retain(|_, queue| queue.bytes(now) > 0);
        }
        let queue = self.queues.entry(channel).or_insert_with(|| Queue { backlog: Backlog::new(now), rate });
        queue.rate = rate;
        queue.backlog.on_sent(now, bytes, || Some(rate));
    }

    /// Bytes that wait at `now` in front of `channel`.
    fn queued(&self, channel: Channel, now: Instant) -> usize {
        self.queues.get(&channel).map_or(0, |queue| queue.bytes(now))
    }
}

impl Connection {
    /// Learns what is queued on channels that it shares with others of this endpoint, which has so many `connections`.
    ///
    /// One of many opens paths without padding.
    pub(crate) fn learn_competition(
        &mut self,
        accounts: &SharedBottlenecks,
        connections: usize,
        now: Instant,
    ) {
        let role = self.role;
        let account = if role == Role::Client { Account::Whole } else { Account::Part };
        for path in self.paths.open_mut() {
            if connections > FEW {
                path.open_with(0);
            }
            if path.rate_of_endpoint().is_some() {
                let queued = accounts.queued(Channel::of(path, role), now);
                path.learn_queue(queued, account, now);
            }
        }
    }

    /// Enters what it sent over such channels since the last time.
    pub(crate) fn report_traffic(&mut self, accounts: &mut SharedBottlenecks, now: Instant) {
        let role = self.role;
        for path in self.paths.open_mut() {
            if let Some(rate) = path.rate_of_endpoint()
                && let Some(bytes) = path.take_unentered()
            {
                accounts.add(Channel::of(path, role), bytes, rate, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(port: u16) -> Channel {
        Channel { local: ([192, 0, 2, 1], port).into(), remote: None }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    #[test]
    fn what_all_sent_waits_until_the_channel_has_carried_it() {
        let (mut accounts, rate) = (SharedBottlenecks::default(), Bandwidth::from_mbit(2));
        assert!(!accounts.is_in_use());
        // 250 bytes a millisecond.
        accounts.add(channel(1), 1000, rate, at(0));
        accounts.add(channel(1), 1000, rate, at(2));
        accounts.add(channel(2), 500, rate, at(2));
        assert_eq!(accounts.queued(channel(1), at(2)), 1500);
        assert_eq!(accounts.queued(channel(2), at(2)), 500);
        assert_eq!(accounts.queued(channel(3), at(2)), 0);
        assert_eq!(accounts.queued(channel(1), at(8)), 0);
    }

    #[test]
    fn no_more_channels_are_kept_than_have_a_queue() {
        // attacks.md D: whoever sends from many addresses finds no table that grows with them.
        let (mut accounts, rate) = (SharedBottlenecks::default(), Bandwidth::from_mbit(2));
        for port in 0..10_000 {
            accounts.add(channel(port), 250, rate, at(port.into()));
        }
        assert!(accounts.queues.len() <= 2, "{}", accounts.queues.len());
    }

    #[test]
    fn a_servers_channels_are_those_of_its_peers() {
        let part = |remote: u16| Channel { remote: Some(([198, 51, 100, 1], remote).into()), ..channel(443) };
        let (mut accounts, rate) = (SharedBottlenecks::default(), Bandwidth::from_mbit(2));
        accounts.add(part(1), 1000, rate, at(0));
        assert_eq!(accounts.queued(part(1), at(0)), 1000);
        assert_eq!(accounts.queued(part(2), at(0)), 0);
    }
}
