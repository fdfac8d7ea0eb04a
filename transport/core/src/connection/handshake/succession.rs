//! A client's connection that takes the place of another to the same server, whose handshake came to nothing.

use crate::PathId;
use crate::connection::activity::Activity;
use crate::connection::frame_owners::frame_owners;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::send::scheduler_slot::SchedulerSlot;
use crate::connection::{Connection, Event, PathEvent};
use crate::datagram::Datagrams;
use crate::error::ConnectionError;
use crate::handshake::zero_rtt::ZeroRtt;
use crate::path::paths::Paths;
use crate::stream::Streams;
use crate::time::Instant;
use std::time::Duration;

/// The application's consent to data that the server may process twice, once from each of two attempts at one connection.
/// Data in 0-RTT packets has it already (RFC 9001 §9.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Replay {
    /// Nothing is sent twice: once application data left in 1-RTT packets, the attempt is not replaced any more.
    #[default]
    Refused,
    /// All that is written does no harm when it is done twice, as with safe and idempotent requests (RFC 9110 §9.2.2).
    Accepted,
}

/// The progress of a connection's handshake, for whoever runs several attempts at one connection.
pub(crate) struct AttemptProgress<'a> {
    lifecycle: Lifecycle,
    activity: &'a Activity,
    scheduler: &'a SchedulerSlot,
    zero_rtt: &'a ZeroRtt,
    paths: &'a Paths,
    streams: &'a Streams,
    datagrams: &'a Datagrams,
}

impl AttemptProgress<'_> {
    /// The latest packet of the peer that authenticated, or the start.
    pub fn progressed_at(&self) -> Instant {
        self.activity.last()
    }

    /// The smoothed round-trip time of path 0, the initial one of RFC 9002 §6.2.2 before the first sample.
    pub fn handshake_rtt(&self) -> Duration {
        self.paths.get(PathId::ZERO).map_or(Duration::ZERO, |path| path.rtt().smoothed())
    }

    /// Returns true if nothing of the server authenticated since `since`.
    pub fn stands_still_since(&self, since: Instant) -> bool {
        self.progressed_at() <= since
    }

    /// The time at which the connection was begun.
    pub fn born(&self) -> Instant {
        self.scheduler.epoch()
    }

    /// Returns true if anything that the server sent on streams or in datagrams arrived, which the application may have read.
    pub fn has_arrivals(&self) -> bool {
        self.streams.has_arrivals() || self.datagrams.stats().received > 0
    }

    /// Returns true if the server is known to have completed the handshake: it said so, or acknowledged a 1-RTT packet
    /// (RFC 9001 §4.1.2), which a path that was validated beside the first shows too.
    pub fn is_completed_by_peer(&self) -> bool {
        let acknowledged = |number: u64, id: PathId| id != PathId::ZERO || self.zero_rtt.is_one_rtt(number);
        self.lifecycle == Lifecycle::Confirmed
            || self.lifecycle == Lifecycle::Connected
                && self.paths.all().any(|path| {
                    let largest = path.sent.largest_acknowledged();
                    largest.is_some_and(|number| acknowledged(number, path.id))
                })
    }

    /// Returns true if another connection can take the place of this one without the application noticing: no data of
    /// the peer on streams or in datagrams arrived, and none was sent that `replay` forbids to repeat.
    pub fn is_replaceable(&self, replay: Replay) -> bool {
        let sent = self.streams.has_departures() || self.datagrams.stats().sent > 0;
        let left = self.lifecycle.is_connected() && sent;
        !self.has_arrivals() && (replay == Replay::Accepted || !left)
    }
}

impl Connection {
    /// The progress of the handshake.
    pub(crate) fn progress(&self) -> AttemptProgress<'_> {
        AttemptProgress {
            lifecycle: self.lifecycle,
            activity: &self.activity,
            scheduler: &self.scheduler,
            zero_rtt: &self.zero_rtt,
            paths: &self.paths,
            streams: &self.streams,
            datagrams: &self.datagrams,
        }
    }

    /// Ends the handshake with an error at `until` if it takes so long, whatever the configuration says.
    pub(crate) fn limit_handshake(&mut self, until: Instant) {
        self.handshake.limit(until);
    }

    /// Sends the last flight of the handshake once more, without waiting for a probe timeout that backed off, and which
    /// counts from here on (RFC 9002 §6.2.1).
    pub(crate) fn repeat_flight(&mut self) {
        if matches!(self.lifecycle, Lifecycle::Handshaking | Lifecycle::Connected) {
            let spaces = self.handshake.spaces().filter(|(_, space)| space.has_keys());
            spaces.for_each(|(_, space)| space.repeat());
        }
    }

    /// Ends a connection whose handshake the server never completed, without a word.
    pub(crate) fn give_up_handshake(&mut self) {
        self.end_silently(ConnectionError::HandshakeTimeout);
    }

    /// Takes over what the application did on `previous`, which [is replaceable](Self::is_replaceable): all of it is sent
    /// again within the limits that the peer announced here, as after 0-RTT that was rejected (RFC 9001 §4.6.2).
    pub(crate) fn succeed(&mut self, previous: &mut Self, now: Instant) {
        frame_owners!(previous).withdraw(now);
        std::mem::swap(&mut self.streams, &mut previous.streams);
        std::mem::swap(&mut self.datagrams, &mut previous.datagrams);
        self.streams.set_peer_limits(self.peer.parameters());
        self.datagrams.set_peer_limit(self.peer.parameters().max_datagram_frame_size);
        let protocol = if previous.lifecycle.is_connected() {
            previous.handshake.session.alpn().or(Some(Vec::new()))
        } else {
            previous.zero_rtt.remembered_protocol().map(<[u8]>::to_vec)
        };
        if let Err(error) = self.handshake_driver().check_restart(protocol.as_deref()) {
            self.fail(error, now);
        }
    }

    /// Tells the application of a connection that was complete once what became of the paths of `previous`: there is but
    /// the first, and it is elsewhere.
    pub(crate) fn announce_succession(&mut self, previous: &Self) {
        self.events.push(Event::Path(PathEvent::Migrated(PathId::ZERO)));
        let others = previous.paths.open().map(|path| path.id).filter(|id| *id != PathId::ZERO);
        for path in others {
            self.events.push(Event::Path(PathEvent::Abandoned { path, code: 0 }));
        }
    }
}
