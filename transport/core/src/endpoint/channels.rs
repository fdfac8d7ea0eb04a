//! What an endpoint knows of the channels behind its addresses, from hints and from all of its connections.

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
    /// What is known of its channel.
    pub hints: Hints,
}

/// Handshakes that began lately: until when the narrow channels that they are on are busy with them. What they bring back
/// is in nobody's count of bytes in flight.
#[derive(Debug, Default)]
pub(super) struct Channels {
    busy: KeyedMap<SocketAddr, Instant>,
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

    /// For how long the channel of `local` is busy with handshakes.
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
