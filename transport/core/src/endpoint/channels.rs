//! The channels behind an endpoint's addresses, as known from hints and from all of its connections.

use crate::connection::{Connection, FourTuple};
use crate::endpoint::ConnectionHandle;
use crate::hashing::KeyedMap;
use crate::time::Instant;
use hvq_scheduler::{Bandwidth, Flights, Hints, PathId, PathView};
use std::net::SocketAddr;
use std::time::Duration;

/// A way on which a connection could begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// Its addresses.
    pub tuple: FourTuple,
    /// Hints about its channel.
    pub hints: Hints,
}

/// The time for which no connection begins on a channel where an attempt was not answered, if there is another.
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
        let took = rate.transmission_time(Flights::USUAL.sent + Flights::USUAL.received);
        let until = self.busy.entry(local).or_insert(now);
        *until = (*until).max(now) + took;
    }

    /// The server answered over another channel before it did over that of `local`, where an attempt was begun earlier.
    pub(super) fn on_unanswered(&mut self, local: SocketAddr, now: Instant) {
        self.unanswered.retain(|_, at| *at + SHUNNED > now);
        self.unanswered.insert(local, now);
    }

    /// Returns true if the channel of `local` did not answer lately, and no path from there did since.
    pub(super) fn is_shunned(
        &self,
        local: SocketAddr,
        connections: &KeyedMap<ConnectionHandle, Box<Connection>>,
        now: Instant,
    ) -> bool {
        let Some(at) = self.unanswered.get(&local).copied().filter(|at| *at + SHUNNED > now) else {
            return false;
        };
        let mut seen = connections.values().flat_map(|connection| connection.paths_from(local, now));
        seen.all(|view| view.heard_at <= at)
    }

    /// Returns the time for which the channel of `local` is busy with handshakes.
    fn busy(&self, local: SocketAddr, now: Instant) -> Duration {
        self.busy.get(&local).map_or(Duration::ZERO, |until| until.since(now))
    }

    /// `way` as a policy may know it, under the number `index`; `None` if nothing tells of its delay.
    pub(super) fn view(
        &self,
        (index, way): (usize, &Way),
        connections: &KeyedMap<ConnectionHandle, Box<Connection>>,
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
            ..PathView::new(PathId(u32::try_from(index).ok()?))
        })
    }
}
