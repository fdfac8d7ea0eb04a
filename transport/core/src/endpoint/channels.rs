//! The channels behind an endpoint's addresses, as known from hints and from all of its connections.

use crate::connection::{Connection, FourTuple};
use crate::endpoint::HandleMap;
use crate::hashing::KeyedMap;
use crate::time::Instant;
use hvq_scheduler::{Bandwidth, Flights, Hints, PathId, PathView};
use std::net::SocketAddr;
use std::time::Duration;

/// A network path on which a connection could begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkPath {
    /// Its addresses.
    pub tuple: FourTuple,
    /// Hints about its channel.
    pub hints: Hints,
}

/// The time for which no connection begins on a channel where an attempt, or a path, was not answered, if there is another.
const SHUNNED: Duration = Duration::from_secs(10);

/// Knowledge about channels from handshakes that began lately.
#[derive(Debug, Default)]
pub(super) struct Channels {
    /// Times until which narrow channels are busy with handshakes. The answers to those are in nobody's count of bytes
    /// in flight.
    busy: KeyedMap<SocketAddr, Instant>,
    /// Times at which the server had not answered over a channel, though it did over another (RFC 8305 §4: the outcome of
    /// attempts says where to begin the next).
    unanswered: KeyedMap<SocketAddr, Instant>,
}

impl Channels {
    /// A handshake begins at `local`, whose channel promises `rate`.
    pub(super) fn on_handshake(&mut self, local: SocketAddr, rate: Option<Bandwidth>, now: Instant) {
        self.busy.retain(|_, until| *until > now);
        let Some(rate) = rate else { return };
        let took = rate.transmission_time(Flights::USUAL.total());
        let until = self.busy.entry(local).or_insert(now);
        *until = (*until).max(now) + took;
    }

    /// The server answered over another channel before it did over that of `local`, where an attempt was begun earlier.
    pub(super) fn on_unanswered(&mut self, local: SocketAddr, now: Instant) {
        self.unanswered.retain(|_, at| *at + SHUNNED > now);
        self.unanswered.insert(local, now);
    }

    /// Returns true if the channel of `local` did not answer lately, neither an attempt nor a path whose peer answers on another,
    /// and no path from there was answered since.
    pub(super) fn is_shunned(
        &self,
        local: SocketAddr,
        connections: &HandleMap<Box<Connection>>,
        now: Instant,
    ) -> bool {
        let seen = || connections.values().flat_map(|connection| connection.paths_from(local, now));
        let attempt = self.unanswered.get(&local).copied().filter(|at| *at + SHUNNED > now);
        let silences = seen().filter_map(|view| view.silence);
        let lately = silences.filter(|silence| silence.asked_at + SHUNNED > now);
        attempt
            .max(lately.map(|silence| silence.since).max())
            .is_some_and(|at| seen().all(|view| view.heard_at <= at))
    }

    /// Returns the time for which the channel of `local` is busy with handshakes.
    fn busy(&self, local: SocketAddr, now: Instant) -> Duration {
        self.busy.get(&local).map_or(Duration::ZERO, |until| until.since(now))
    }

    /// `way` as a policy may know it, as path `id`; `None` if nothing tells of its delay.
    pub(super) fn view(
        &self,
        id: PathId,
        way: &NetworkPath,
        connections: &HandleMap<Box<Connection>>,
        now: Instant,
    ) -> Option<PathView> {
        let local = way.tuple.local;
        let seen = || connections.values().flat_map(|connection| connection.paths_from(local, now));
        let latest = seen().filter(|view| view.delay.is_some()).max_by_key(|view| view.heard_at);
        let delay = way.hints.delay.or(latest.and_then(|view| view.delay))?;
        let rate = way.hints.rate;
        let handshakes = rate.map_or(0, |rate| rate.bytes_in(self.busy(local, now)));
        let handshakes = usize::try_from(handshakes).unwrap_or(usize::MAX);
        Some(PathView {
            delay,
            rate,
            backlog: seen().map(|view| view.backlog).fold(handshakes, usize::saturating_add),
            hints: way.hints,
            ..PathView::new(id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn handshakes_queue_one_after_another_on_the_channel_that_they_begin_on() {
        // A handshake's 8000 bytes take 64 ms at 1 Mbit/s.
        let rate = Some(Bandwidth::from_mbit(1));
        let mut channels = Channels::default();
        channels.on_handshake(address(1), rate, at(0));
        channels.on_handshake(address(1), rate, at(0));
        channels.on_handshake(address(2), rate, at(17));
        channels.on_handshake(address(3), None, at(17));
        let backlog = |port, now| {
            let hints = Hints { delay: Some(Duration::from_millis(5)), rate, ..Hints::NONE };
            let way = NetworkPath { tuple: FourTuple { local: address(port), remote: address(9) }, hints };
            channels.view(PathId::ZERO, &way, &HandleMap::default(), now).map(|view| view.backlog)
        };
        for (now, expected) in [(17, [13_875, 8_000, 0]), (64, [8_000, 2_125, 0]), (128, [0, 0, 0])] {
            assert_eq!([1, 2, 3].map(|port| backlog(port, at(now))), expected.map(Some), "{now} ms");
        }
    }

    #[test]
    fn a_channel_that_was_not_answered_is_shunned_for_ten_seconds_beside_others() {
        let (mut channels, none) = (Channels::default(), HandleMap::default());
        channels.on_unanswered(address(1), at(0));
        channels.on_unanswered(address(2), at(4_000));
        for (now, expected) in [
            (4_000, [true, true, false]),
            (9_999, [true, true, false]),
            (10_000, [false, true, false]),
            (14_000, [false, false, false]),
        ] {
            assert_eq!([1, 2, 3].map(|port| channels.is_shunned(address(port), &none, at(now))), expected);
        }
    }
}
