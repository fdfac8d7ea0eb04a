//! The round-trip time estimate of RFC 9002 §5.

use std::time::Duration;

/// The round-trip time assumed before the first sample (RFC 9002 §6.2.2).
pub const INITIAL_RTT: Duration = Duration::from_millis(333);

/// The granularity of timers (RFC 9002 §6.1.2, kGranularity).
pub const GRANULARITY: Duration = Duration::from_millis(1);

/// No sample counts as more than this, so that arithmetic on estimates cannot overflow.
const LARGEST_SAMPLE: Duration = Duration::from_secs(3600);

/// The nanoseconds of `duration`, an estimate, which is no more than the largest sample.
#[inline]
const fn nanos(duration: Duration) -> u64 {
    duration.as_secs() * 1_000_000_000 + duration.subsec_nanos() as u64
}

/// Round-trip time, smoothed, with its variation and its minimum (RFC 9002 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rtt {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Option<Duration>,
}

impl Default for Rtt {
    fn default() -> Self {
        Self::new(INITIAL_RTT)
    }
}

impl Rtt {
    /// An estimate without samples: `initial` is believed with half of it as variation (RFC 9002 §5.3).
    pub fn new(initial: Duration) -> Self {
        let initial = initial.min(LARGEST_SAMPLE);
        Self { latest: initial, smoothed: initial, variance: initial / 2, min: None }
    }

    /// Takes a sample of which the peer says that it waited `ack_delay` on purpose.
    ///
    /// `ack_delay` must already be limited to the peer's max_ack_delay (see [`ack_delay`]) and be zero for packets
    /// of the Initial space (RFC 9002 §5.3).
    pub fn update(&mut self, sample: Duration, ack_delay: Duration) {
        let sample = sample.min(LARGEST_SAMPLE);
        self.latest = sample;
        let Some(min) = self.min else {
            //= https://www.rfc-editor.org/rfc/rfc9002#section-5.2
            //# min_rtt MUST be set to the latest_rtt on the first RTT sample. min_rtt MUST be set to the
            //# lesser of min_rtt and latest_rtt (Section 5.1) on all other samples.
            // RFC 9002 §5.2 and §5.3: the first sample replaces the guess.
            self.min = Some(sample);
            self.smoothed = sample;
            self.variance = sample / 2;
            return;
        };
        //= https://www.rfc-editor.org/rfc/rfc9002#section-5.2
        //# min_rtt MUST be set to the latest_rtt on the first RTT sample. min_rtt MUST be set to the lesser
        //# of min_rtt and latest_rtt (Section 5.1) on all other samples.
        let min = min.min(sample);
        self.min = Some(min);
        let adjusted = adjust(sample, ack_delay, min);
        // In nanoseconds, which is quicker: no sample is so large that they could overflow.
        let [variance, smoothed, adjusted] = [self.variance, self.smoothed, adjusted].map(nanos);
        self.variance = Duration::from_nanos((variance * 3 + smoothed.abs_diff(adjusted)) / 4);
        self.smoothed = Duration::from_nanos((smoothed * 7 + adjusted) / 8);
    }

    /// Returns true if there was a sample.
    pub fn is_sampled(&self) -> bool {
        self.min.is_some()
    }

    /// The last sample, its acknowledgement delay included.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The moving average.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation (rttvar).
    pub fn variance(&self) -> Duration {
        self.variance
    }

    /// The smallest sample, if there was one (RFC 9002 §5.2).
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// The probe timeout without backoff: smoothed + max(4 variance, granularity) + max_ack_delay (RFC 9002 §6.2.1).
    ///
    /// `max_ack_delay` is zero in the Initial and Handshake spaces.
    pub fn probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        self.spread().saturating_add(max_ack_delay)
    }

    /// Returns the time by which a packet must be older than an acknowledged one to count as lost: 9/8 of the larger of
    /// the smoothed and the latest round-trip time, at least the granularity (RFC 9002 §6.1.2).
    pub fn loss_delay(&self) -> Duration {
        let rtt = nanos(self.latest.max(self.smoothed));
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2
        //# To avoid declaring packets as lost too early, this time threshold MUST be set to at least the
        //# local timer granularity, as indicated by the kGranularity constant
        Duration::from_nanos((rtt + rtt / 8).max(nanos(GRANULARITY)))
    }

    /// Returns the time without an acknowledgement that makes congestion persistent (RFC 9002 §7.6.1).
    pub fn persistent_congestion_duration(&self, max_ack_delay: Duration) -> Duration {
        self.probe_timeout(max_ack_delay).saturating_mul(3)
    }

    /// Smoothed + max(4 variance, granularity): what an acknowledgement sent at once hardly exceeds.
    pub fn spread(&self) -> Duration {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# The PTO period MUST be at least kGranularity to avoid the timer expiring immediately.
        Duration::from_nanos(nanos(self.smoothed) + (nanos(self.variance) * 4).max(nanos(GRANULARITY)))
    }
}

/// The sample without the delay that the peer reports, unless that would make it smaller than the minimum
/// (RFC 9002 §5.3).
pub fn adjust(sample: Duration, ack_delay: Duration, min: Duration) -> Duration {
    //= https://www.rfc-editor.org/rfc/rfc9002#section-5.3
    //# MUST NOT subtract the acknowledgment delay from the RTT sample if the resulting value is smaller than
    //# the min_rtt
    if sample >= min.saturating_add(ack_delay) { sample - ack_delay } else { sample }
}

/// The delay that an ACK frame reports: `raw` units of 2^`exponent` µs, at most `limit` (RFC 9002 §5.3, RFC 9000 §19.3).
///
/// `limit` is the peer's max_ack_delay once the handshake is confirmed.
pub fn ack_delay(raw: u64, exponent: u8, limit: Duration) -> Duration {
    let factor = 1u64.checked_shl(u32::from(exponent)).unwrap_or(u64::MAX);
    //= https://www.rfc-editor.org/rfc/rfc9002#section-5.3
    //# MUST use the lesser of the acknowledgment delay and the peer's max_ack_delay after the handshake is
    //# confirmed; and
    Duration::from_micros(raw.saturating_mul(factor)).min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn before_a_sample_the_initial_value_stands_in() {
        let rtt = Rtt::default();
        assert!(!rtt.is_sampled());
        assert_eq!((rtt.smoothed(), rtt.variance(), rtt.min()), (INITIAL_RTT, INITIAL_RTT / 2, None));
        // RFC 9002 §6.2.2: 333 ms make a first probe timeout of about a second.
        assert_eq!(rtt.probe_timeout(Duration::ZERO), ms(999));
    }

    //= https://www.rfc-editor.org/rfc/rfc9002#section-5.2
    //= type=test
    //# min_rtt MUST be set to the latest_rtt on the first RTT sample. min_rtt MUST be set to the lesser of
    //# min_rtt and latest_rtt (Section 5.1) on all other samples.
    #[test]
    fn the_first_sample_replaces_the_guess() {
        let mut rtt = Rtt::default();
        rtt.update(ms(100), ms(30));
        assert_eq!(
            (rtt.latest(), rtt.smoothed(), rtt.variance(), rtt.min()),
            (ms(100), ms(100), ms(50), Some(ms(100)))
        );
        assert!(rtt.is_sampled());
    }

    //= https://www.rfc-editor.org/rfc/rfc9002#section-5.2
    //= type=test
    //# min_rtt MUST be set to the latest_rtt on the first RTT sample. min_rtt MUST be set to the lesser of
    //# min_rtt and latest_rtt (Section 5.1) on all other samples.
    #[test]
    fn later_samples_move_the_average_by_an_eighth() {
        // RFC 9002 §5.3.
        let mut rtt = Rtt::default();
        rtt.update(ms(100), Duration::ZERO);
        rtt.update(ms(180), Duration::ZERO);
        assert_eq!((rtt.smoothed(), rtt.variance()), (ms(110), Duration::from_micros(57_500)));
    }

    #[test]
    fn round_trips_of_seconds_count_in_full() {
        let mut rtt = Rtt::default();
        rtt.update(ms(4000), Duration::ZERO);
        assert_eq!((rtt.spread(), rtt.loss_delay()), (ms(12_000), ms(4500)));
        rtt.update(ms(2400), Duration::ZERO);
        assert_eq!((rtt.smoothed(), rtt.variance()), (ms(3800), ms(1900)));
    }

    //= https://www.rfc-editor.org/rfc/rfc9002#section-5.3
    //= type=test
    //# MUST NOT subtract the acknowledgment delay from the RTT sample if the resulting value is smaller than
    //# the min_rtt
    #[test]
    fn the_delay_is_taken_off_only_above_the_minimum() {
        let mut rtt = Rtt::default();
        rtt.update(ms(100), Duration::ZERO);
        rtt.update(ms(120), ms(20));
        assert_eq!(rtt.smoothed(), ms(100));
        // 110 - 20 would be below the minimum of 100: the sample counts unadjusted.
        rtt.update(ms(108), ms(20));
        assert_eq!(rtt.smoothed(), ms(101));
        assert_eq!(rtt.min(), Some(ms(100)));
    }

    //= https://www.rfc-editor.org/rfc/rfc9002#section-5.3
    //= type=test
    //# MUST use the lesser of the acknowledgment delay and the peer's max_ack_delay after the handshake is
    //# confirmed; and
    #[test]
    fn a_huge_reported_delay_is_limited() {
        // attacks.md C7.
        assert_eq!(ack_delay(1 << 62, 20, ms(25)), ms(25));
        assert_eq!(ack_delay(u64::MAX, 255, ms(25)), ms(25));
        assert_eq!(ack_delay(100, 3, ms(25)), Duration::from_micros(800));
    }

    //= https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2
    //= type=test
    //# To avoid declaring packets as lost too early, this time threshold MUST be set to at least the local
    //# timer granularity, as indicated by the kGranularity constant
    //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
    //= type=test
    //# The PTO period MUST be at least kGranularity to avoid the timer expiring immediately.
    #[test]
    fn loss_delay_and_persistent_duration_follow_the_rfc() {
        let mut rtt = Rtt::default();
        rtt.update(ms(80), Duration::ZERO);
        assert_eq!(rtt.loss_delay(), ms(90));
        assert_eq!(rtt.probe_timeout(ms(25)), ms(80 + 160 + 25));
        assert_eq!(rtt.persistent_congestion_duration(ms(25)), ms(3 * 265));
        let mut tiny = Rtt::default();
        tiny.update(Duration::ZERO, Duration::ZERO);
        assert_eq!((tiny.loss_delay(), tiny.spread()), (GRANULARITY, GRANULARITY));
    }

    proptest! {
        #[test]
        fn no_sample_overflows(samples in prop::collection::vec((any::<u64>(), any::<u64>()), 1..40)) {
            // attacks.md C14.
            let mut rtt = Rtt::default();
            for (sample, delay) in samples {
                rtt.update(Duration::from_micros(sample), Duration::from_micros(delay));
                prop_assert!(rtt.min() <= Some(rtt.latest()));
                prop_assert!(rtt.smoothed() <= LARGEST_SAMPLE.max(INITIAL_RTT));
            }
            prop_assert!(rtt.probe_timeout(Duration::MAX) == Duration::MAX);
            prop_assert!(rtt.persistent_congestion_duration(Duration::MAX) == Duration::MAX);
        }
    }
}
