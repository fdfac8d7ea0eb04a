//! Interest in transmission: tells whether a pass over all that may be sent can have a result.
//!
//! Most polls of a connection find nothing to send: after a datagram, after input that only the application waits for, after a
//! read. Each owner says what it wants; nothing is kept here that could contradict them. With debug assertions every pass that
//! is left out is made nevertheless, and has to come to nothing.

use crate::connection::queue_bound::QueueBound;
use crate::connection::send::Sender;
use crate::path::path::Path;
use crate::time::Instant;

impl Sender<'_> {
    /// Returns true if anything may want to be sent at `now`, once the handshake is confirmed and control frames are
    /// collected. True if in doubt: then a pass finds out.
    pub(in crate::connection) fn has_interest(&mut self, now: Instant) -> bool {
        self.streams.has_sendable()
            || !self.control.is_empty()
            || self.datagrams.has_waiting()
            || self.paths.have_interest(now)
            || self.wants_size_probe(now)
            || self.handshake.post.has_pending()
            || self.handshake.spaces().next().is_some()
            || !self.scheduler.is_at_rest()
            || self.config.rotation.is_set()
    }

    /// Takes note that nothing is to be sent at `now` though there is room, as a pass does that finds nothing.
    pub(in crate::connection) fn note_no_interest(&mut self, now: Instant) {
        let is_alone = self.paths.open().nth(1).is_none();
        if !self.paths.open().all(|path| self.has_all_its_room(path, is_alone, now)) {
            let views = self.views(now);
            return self.note_room(&views, now);
        }
        for path in self.paths.open_mut() {
            let room = path.route.room(path.sent.in_flight(), now);
            path.route.on_pass(room, path.sent.next_unused());
            if room >= path.route.datagram_size {
                path.route.rate.on_app_limited(path.sent.in_flight());
            }
        }
    }

    /// Returns true if another datagram may leave on `path` as soon as its controller has room, so that nothing has to be asked of
    /// other paths: a path that is alone is not bound by them, nor is one with hardly anything in flight.
    fn has_all_its_room(&self, path: &Path, is_alone: bool, now: Instant) -> bool {
        let validation = &path.route.validation;
        let is_proven = validation.is_validated() && !validation.is_put_off(now);
        let is_unbound =
            || is_proven && QueueBound::leaves_room(path.sent.in_flight(), path.route.datagram_size);
        self.paths.remote_ids.current(path.id).is_some() && (is_alone || is_unbound())
    }

    /// Returns true if a path may want a probe of the datagram size, or has to take note that the search has ended.
    pub(in crate::connection) fn wants_size_probe(&self, now: Instant) -> bool {
        let sizes = self.sizes();
        self.paths.open().any(|path| path.route.mtu.is_wanting(now, || sizes.asked_of(path.id)))
    }
}

#[cfg(test)]
impl crate::connection::Connection {
    /// Returns true if a poll at `now` makes a pass over all that may be sent.
    pub(crate) fn has_interest(&mut self, now: Instant) -> bool {
        let mut sender = self.sender();
        sender.collect_control(now);
        sender.has_interest(now)
    }

    /// Returns the number of passes over all that may be sent so far.
    pub(crate) fn passes(&self) -> u64 {
        self.activity.passes()
    }
}
