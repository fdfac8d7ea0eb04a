//! Activity of a connection: when it last heard or sent something, and when it was last served.

use crate::time::Instant;
use std::time::Duration;

/// Times that the idle timeout, keep-alive and hibernation count from (RFC 9000 §10.1).
#[derive(Debug)]
pub(in crate::connection) struct Activity {
    /// The last packet that authenticated, or the first ack-eliciting packet sent after it.
    last: Instant,
    /// True if an ack-eliciting packet was sent since the last packet arrived.
    sent_since: bool,
    /// The time at which timers were last looked at, since the connection was idle.
    served_at: Option<Instant>,
    /// The time at which it is decided whether the connection may hibernate.
    hibernate_at: Option<Instant>,
    /// Passes over all that may be sent so far, but for those that only check that they are in vain.
    #[cfg(test)]
    passes: u64,
}

/// Tells whether an idle connection gives up what it can do without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::connection) enum Quiet {
    /// Nothing happened for long enough: now.
    Hibernate,
    /// Not now.
    Stay,
}

impl Activity {
    /// A connection that begins at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            last: now,
            sent_since: false,
            served_at: None,
            hibernate_at: None,
            #[cfg(test)]
            passes: 0,
        }
    }

    /// A pass over all that may be sent is made.
    #[cfg(test)]
    pub fn count_pass(&mut self) {
        self.passes += 1;
    }

    /// Returns the passes so far.
    #[cfg(test)]
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// The last packet that authenticated, or the first ack-eliciting one that was sent after it.
    pub fn last(&self) -> Instant {
        self.last
    }

    /// Returns true if there was no activity for `quiet`.
    #[inline]
    pub fn is_quiet(&self, quiet: Duration, now: Instant) -> bool {
        self.last + quiet <= now
    }

    /// A packet authenticated.
    pub fn on_received(&mut self, now: Instant) {
        self.last = now;
        self.sent_since = false;
    }

    /// An ack-eliciting packet left. The first since input restarts the idle timer (RFC 9000 §10.1).
    pub fn on_sent(&mut self, now: Instant) {
        if !self.sent_since {
            self.sent_since = true;
            self.last = now;
        }
    }

    /// A PING is queued that keeps the connection alive: the next is due a period later.
    pub fn on_keep_alive(&mut self, now: Instant) {
        self.last = now;
    }

    /// The time at which silence ends the connection: after the shorter of the timeouts of both ends, zero being none, and
    /// not before `least` (RFC 9000 §10.1: at least three PTOs).
    pub fn idle_at(
        &self,
        ours: Duration,
        theirs: Duration,
        least: impl FnOnce() -> Duration,
    ) -> Option<Instant> {
        let effective = effective_timeout(ours, theirs)?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.1
        //# To avoid excessively small idle timeout periods, endpoints MUST increase the idle timeout period
        //# to be at least three times the current Probe Timeout (PTO)
        Some(self.last + effective.max(least()))
    }

    /// Returns true if silence has lasted for so long that the connection may be over: [`Self::idle_at`] tells.
    #[inline]
    pub fn may_be_over(&self, ours: Duration, theirs: Duration, now: Instant) -> bool {
        effective_timeout(ours, theirs).is_some_and(|effective| self.is_quiet(effective, now))
    }

    /// The time at which a PING keeps the connection alive, if one is sent after each `period` without input.
    pub fn keep_alive_at(&self, period: Option<Duration>) -> Option<Instant> {
        let period = period?;
        (!self.sent_since).then(|| self.last + period)
    }

    /// Returns true if timers were looked at at `now`.
    pub fn is_served(&self, now: Instant) -> bool {
        self.served_at == Some(now)
    }

    /// Timers were looked at.
    pub fn on_served(&mut self, now: Instant) {
        self.served_at = Some(now);
    }

    /// Nothing is left to do: timers are looked at again with the next poll.
    pub fn on_idle(&mut self) {
        self.served_at = None;
    }

    /// The time at which [`Self::review_hibernation`] has something to decide.
    pub fn hibernate_at(&self) -> Option<Instant> {
        self.hibernate_at
    }

    /// There is nothing to do at `now`. Hibernation follows `quiet` after the last activity, if `may_hibernate` holds;
    /// `is_active` tells whether there is something to give up.
    pub fn review_hibernation(
        &mut self,
        quiet: Duration,
        may_hibernate: bool,
        is_active: impl FnOnce() -> bool,
        now: Instant,
    ) -> Quiet {
        match self.hibernate_at {
            None if may_hibernate && is_active() => self.hibernate_at = Some(now + quiet),
            Some(at) if at <= now => {
                let until = self.last + quiet;
                self.hibernate_at = (until > now).then_some(until);
                if self.hibernate_at.is_none() && may_hibernate {
                    return Quiet::Hibernate;
                }
            }
            None | Some(_) => {}
        }
        Quiet::Stay
    }
}

/// The shorter of the idle timeouts of both ends, zero being none (RFC 9000 §10.1).
#[inline]
fn effective_timeout(ours: Duration, theirs: Duration) -> Option<Duration> {
    match (ours.is_zero(), theirs.is_zero()) {
        (true, true) => None,
        (true, false) => Some(theirs),
        (false, true) => Some(ours),
        (false, false) => Some(ours.min(theirs)),
    }
}
