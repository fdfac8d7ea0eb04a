//! Interest of a path in transmission: tells whether it may have something of its own to send.

use crate::path::path::Path;
use crate::time::Instant;
use std::time::Duration;

/// The queue of other connections on a narrow channel beside which a path is opened there at once: a datagram at 2 Mbit/s.
const NEGLIGIBLE_QUEUE: Duration = Duration::from_millis(5);

impl Path {
    /// Returns true if the path may owe a challenge, an answer to one or padding at `now`, on the addresses in use or on others.
    #[inline]
    pub fn owes_validation(&self, now: Instant) -> bool {
        self.opening_datagrams > 0 || self.route.validation.has_interest(now) || !self.elsewhere.is_empty()
    }

    /// Returns the time until the queue of this endpoint's other connections on the channel is negligible; `None` if it is, or
    /// not known.
    pub fn opening_wait(&self) -> Option<Duration> {
        let queued = self.rate_of_endpoint()?.transmission_time(self.queued_by_others()?);
        queued.checked_sub(NEGLIGIBLE_QUEUE).filter(|wait| !wait.is_zero())
    }

    /// Returns true if the path may have a packet to send at `now` of its own accord: an acknowledgement, a challenge, an answer
    /// or a probe. What a silent path carried, and addresses beside the one in use, are looked at in every pass.
    pub fn has_interest(&self, now: Instant) -> bool {
        self.received.ack_due(now)
            || self.liveness.is_due()
            || self.liveness.is_silent()
            || self.owes_validation(now)
            || self.collapsed_rate(now).is_some()
    }
}
