//! The backoff of the probe timeout (RFC 9002 §6.2).

use crate::time::Instant;
use std::time::Duration;

/// The backoff doubles at most this often: 2^16 probe periods outlive every idle timeout.
const LARGEST_BACKOFF: u32 = 16;

/// Counts probe timeouts without an answer, each of which doubles the next (RFC 9002 §6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pto {
    count: u32,
}

impl Pto {
    /// Timeouts since the last acknowledgement.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The period `base` (see [`Rtt::probe_timeout`](crate::recovery::rtt::Rtt::probe_timeout)) times 2^count.
    pub fn period(&self, base: Duration) -> Duration {
        base.saturating_mul(1 << self.count.min(LARGEST_BACKOFF))
    }

    /// Returns the time at which the timer fires: one period after the last ack-eliciting packet left.
    pub fn deadline(&self, last_ack_eliciting: Instant, base: Duration) -> Instant {
        last_ack_eliciting + self.period(base)
    }

    /// The timer fired.
    pub fn on_timeout(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# When a PTO timer expires, the PTO backoff MUST be increased, resulting in the PTO period being set
        //# to twice its current value
        self.count = self.count.saturating_add(1);
    }

    /// An acknowledgement of something new arrived, or the keys were discarded (RFC 9002 §6.2.1, §6.2.2).
    ///
    /// A client that does not know whether the server validated its address must not call it (RFC 9002 §6.2.1).
    pub fn reset(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
    //= type=test
    //# When a PTO timer expires, the PTO backoff MUST be increased, resulting in the PTO period being set to
    //# twice its current value
    #[test]
    fn each_timeout_doubles_the_period_and_an_answer_resets_it() {
        let mut pto = Pto::default();
        let base = Duration::from_millis(100);
        assert_eq!(pto.period(base), base);
        pto.on_timeout();
        pto.on_timeout();
        assert_eq!(pto.deadline(Instant::from_nanos(5), base), Instant::from_nanos(400_000_005));
        assert_eq!(pto.count(), 2);
        pto.reset();
        assert_eq!(pto.count(), 0);
        assert_eq!(pto.period(base), base);
    }

    #[test]
    fn the_exponent_saturates() {
        // attacks.md C8.
        let mut pto = Pto::default();
        for _ in 0..10_000 {
            pto.on_timeout();
        }
        assert_eq!(pto.period(Duration::from_millis(1)), Duration::from_millis(1 << LARGEST_BACKOFF));
        assert_eq!(pto.period(Duration::MAX), Duration::MAX);
        assert_eq!(pto.deadline(Instant::FAR_FUTURE, Duration::MAX), Instant::FAR_FUTURE);
        assert_eq!(Pto { count: u32::MAX }.period(Duration::ZERO), Duration::ZERO);
    }
}
