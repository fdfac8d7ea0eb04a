//! Pacing (RFC 9002 §7.7): a token bucket that spreads a window over the round trip.

use crate::Bandwidth;
use crate::time::Instant;
use std::time::Duration;

/// Datagrams that may always leave back to back (RFC 9002 §7.7: the initial congestion window).
const BURST_DATAGRAMS: usize = 10;

/// The time whose worth of data may leave at once at high rates, because timers are no finer.
const BURST_TIME: Duration = Duration::from_millis(2);

/// Under a ceiling one datagram and this much time's worth of data may leave at once: what is sent ahead waits in the
/// bottleneck's queue, so no more than makes up for late timers.
const CEILING_BURST: Duration = Duration::from_millis(4);

/// Credit of one byte: it counts bits times nanoseconds per second, so that no rounding is lost at any rate.
const BYTE: u128 = 8 * 1_000_000_000;

/// A token bucket over bytes.
#[derive(Clone, Debug)]
pub struct Pacer {
    datagram_size: usize,
    rate: Option<Bandwidth>,
    ceiling: Option<Bandwidth>,
    credit: u128,
    at: Instant,
}

impl Pacer {
    /// A full bucket for datagrams of `datagram_size` bytes; it limits nothing until a rate is set.
    pub fn new(datagram_size: usize, now: Instant) -> Self {
        let mut pacer =
            Self { datagram_size: datagram_size.max(1), rate: None, ceiling: None, credit: 0, at: now };
        pacer.credit = pacer.capacity();
        pacer
    }

    /// Follows the controller: its own `rate` if it has one, else 5/4 of `window` bytes per `smoothed_rtt`
    /// (RFC 9002 §7.7). At least one datagram a second stays allowed, so that no estimate stalls the path.
    pub fn set_rate(&mut self, rate: Option<Bandwidth>, window: usize, smoothed_rtt: Duration, now: Instant) {
        self.refill(now);
        let rate = rate.unwrap_or_else(|| spread(window, smoothed_rtt));
        let least = Bandwidth::from_bits_per_second((self.datagram_size as u64).saturating_mul(8));
        self.rate = Some(rate.max(least));
        self.credit = self.credit.min(self.capacity());
    }

    /// No rate above `ceiling` from now on, whatever [`set_rate`](Self::set_rate) says, and no bursts to speak of.
    pub fn set_ceiling(&mut self, ceiling: Option<Bandwidth>) {
        self.ceiling = ceiling;
        self.credit = self.credit.min(self.capacity());
    }

    /// Datagrams have `datagram_size` bytes from now on.
    pub fn set_datagram_size(&mut self, datagram_size: usize, now: Instant) {
        self.refill(now);
        self.datagram_size = datagram_size.max(1);
        self.credit = self.credit.min(self.capacity());
    }

    /// The rate in force, `None` without a ceiling before the first [`set_rate`](Self::set_rate).
    pub fn rate(&self) -> Option<Bandwidth> {
        match (self.rate, self.ceiling) {
            (Some(rate), Some(ceiling)) => Some(rate.min(ceiling)),
            (rate, ceiling) => rate.or(ceiling),
        }
    }

    /// Bytes that may leave at `now`.
    #[inline]
    pub fn available(&self, now: Instant) -> usize {
        let credit = self.credit_at(now);
        // Nearly always 64 bits are enough, which divide several times as fast.
        match u64::try_from(credit) {
            Ok(credit) => usize::try_from(credit / BYTE as u64).unwrap_or(usize::MAX),
            Err(_) => usize::try_from(credit / BYTE).unwrap_or(usize::MAX),
        }
    }

    /// `bytes` left at `now`.
    pub fn on_sent(&mut self, bytes: usize, now: Instant) {
        self.refill(now);
        self.credit = self.credit.saturating_sub(bytes as u128 * BYTE);
    }

    /// Returns the time at which `bytes` (at most a burst) may leave: `now` if they already may.
    pub fn ready_at(&self, bytes: usize, now: Instant) -> Instant {
        let wanted = (bytes as u128 * BYTE).min(self.capacity());
        let missing = wanted.saturating_sub(self.credit_at(now));
        let Some(rate) = self.rate() else { return now };
        let nanos = missing.div_ceil(u128::from(rate.bits_per_second().max(1)));
        now + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    #[inline]
    fn capacity(&self) -> u128 {
        let rate = self.rate().map_or(0, |rate| u128::from(rate.bits_per_second()));
        if self.ceiling.is_some() {
            return self.datagram_size as u128 * BYTE + rate * CEILING_BURST.as_nanos();
        }
        let datagrams = self.datagram_size.saturating_mul(BURST_DATAGRAMS) as u128 * BYTE;
        datagrams.max(rate * BURST_TIME.as_nanos())
    }

    #[inline]
    fn credit_at(&self, now: Instant) -> u128 {
        let Some(rate) = self.rate() else { return self.capacity() };
        if now <= self.at {
            // Within a burst nothing is earned, and the credit is never above the capacity.
            return self.credit;
        }
        let earned = u128::from(rate.bits_per_second()) * now.since(self.at).as_nanos();
        self.credit.saturating_add(earned).min(self.capacity())
    }

    fn refill(&mut self, now: Instant) {
        self.credit = self.credit_at(now);
        self.at = self.at.max(now);
    }
}

/// 5/4 of `window` bytes per `rtt`.
fn spread(window: usize, rtt: Duration) -> Bandwidth {
    // Below a microsecond the estimate is noise, and dividing by it would only overflow.
    let nanos = rtt.as_nanos().max(1000);
    let bits = (window as u128).saturating_mul(10 * 1_000_000_000) / nanos;
    Bandwidth::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sends datagrams of `size` as early as the pacer permits for `length`; returns the bytes that left.
    fn drive(pacer: &mut Pacer, size: usize, length: Duration) -> usize {
        let (mut now, mut sent) = (Instant::ZERO, 0);
        while now < Instant::ZERO + length {
            now = pacer.ready_at(size, now);
            assert!(pacer.available(now) >= size, "ready_at must be an instant at which the bytes may leave");
            pacer.on_sent(size, now);
            sent += size;
        }
        sent
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::new(1200, Instant::ZERO);
        pacer.on_sent(1_000_000, Instant::ZERO);
        assert_eq!(pacer.available(Instant::ZERO), 12_000);
        assert_eq!(pacer.ready_at(1200, Instant::ZERO), Instant::ZERO);
    }

    //= https://www.rfc-editor.org/rfc/rfc9002#section-7.7
    //= type=test
    //# Senders MUST either use pacing or limit such bursts
    #[test]
    fn the_rate_is_kept_within_a_per_mille() {
        for mbit in [1, 2, 60, 1000] {
            let mut pacer = Pacer::new(1200, Instant::ZERO);
            let rate = Bandwidth::from_mbit(mbit);
            pacer.set_rate(Some(rate), 0, Duration::ZERO, Instant::ZERO);
            let burst = pacer.available(Instant::ZERO);
            let sent = drive(&mut pacer, 1200, Duration::from_secs(10)) as f64;
            let expected = burst as f64 + rate.bits_per_second() as f64 * 10.0 / 8.0;
            assert!((sent / expected - 1.0).abs() < 0.001, "{mbit} Mbit/s: {sent} of {expected}");
        }
    }

    //= https://www.rfc-editor.org/rfc/rfc9002#section-7.7
    //= type=test
    //# Senders MUST either use pacing or limit such bursts
    #[test]
    fn the_default_rate_is_five_quarters_of_a_window_per_round_trip() {
        // RFC 9002 §7.7.
        let mut pacer = Pacer::new(1200, Instant::ZERO);
        pacer.set_rate(None, 100_000, Duration::from_millis(50), Instant::ZERO);
        assert_eq!(pacer.rate(), Some(Bandwidth::from_bits_per_second(20_000_000)));
    }

    #[test]
    fn a_fast_path_may_send_what_two_milliseconds_carry() {
        let mut pacer = Pacer::new(1200, Instant::ZERO);
        pacer.set_rate(Some(Bandwidth::from_mbit(1000)), 0, Duration::ZERO, Instant::ZERO);
        let later = Instant::ZERO + Duration::from_secs(1);
        assert_eq!(pacer.available(later), 250_000);
    }

    #[test]
    fn a_rate_whose_burst_takes_more_than_64_bits_is_counted_as_exactly() {
        let mut pacer = Pacer::new(1200, Instant::ZERO);
        pacer.set_rate(Some(Bandwidth::from_mbit(16_000_000)), 0, Duration::ZERO, Instant::ZERO);
        assert_eq!(pacer.available(Instant::ZERO + Duration::from_secs(1)), 4_000_000_000);
    }

    #[test]
    fn under_a_ceiling_no_rate_is_higher_and_no_burst_longer() {
        let mut pacer = Pacer::new(1200, Instant::ZERO);
        pacer.set_ceiling(Some(Bandwidth::from_mbit(2)));
        pacer.set_rate(Some(Bandwidth::from_mbit(60)), 0, Duration::ZERO, Instant::ZERO);
        assert_eq!(pacer.rate(), Some(Bandwidth::from_mbit(2)));
        // A datagram and 4 ms of 2 Mbit/s.
        assert_eq!(pacer.available(Instant::ZERO), 2200);
        let sent = drive(&mut pacer, 1200, Duration::from_secs(1));
        assert!(sent <= 253_400, "{sent}");
        pacer.set_rate(Some(Bandwidth::from_mbit(1)), 0, Duration::ZERO, Instant::FAR_FUTURE);
        assert_eq!(pacer.rate(), Some(Bandwidth::from_mbit(1)), "a controller may ask for less");
        pacer.set_ceiling(None);
        pacer.set_rate(Some(Bandwidth::from_mbit(60)), 0, Duration::ZERO, Instant::FAR_FUTURE);
        assert_eq!(pacer.rate(), Some(Bandwidth::from_mbit(60)));
    }

    #[test]
    fn no_rate_stalls_a_path() {
        let mut pacer = Pacer::new(1200, Instant::ZERO);
        pacer.set_rate(Some(Bandwidth::from_bits_per_second(0)), 0, Duration::ZERO, Instant::ZERO);
        pacer.on_sent(12_000, Instant::ZERO);
        assert_eq!(pacer.ready_at(1200, Instant::ZERO), Instant::ZERO + Duration::from_secs(1));
    }

    proptest! {
        #[test]
        fn nothing_overflows(rate in prop::option::of(any::<u64>()), window in any::<usize>(), rtt in any::<u64>(),
                             times in prop::collection::vec((any::<u64>(), any::<usize>()), 1..20)) {
            // attacks.md C14, times that run backwards included.
            let mut pacer = Pacer::new(1200, Instant::ZERO);
            for (at, bytes) in times {
                let now = Instant::from_nanos(at);
                pacer.set_rate(rate.map(Bandwidth::from_bits_per_second), window, Duration::from_micros(rtt), now);
                pacer.on_sent(bytes, now);
                prop_assert!(pacer.ready_at(bytes, now) >= now);
                prop_assert!(pacer.ready_at(1200, now).since(now) <= Duration::from_secs(1));
            }
        }
    }

    #[test]
    fn a_burst_shrinks_with_the_datagrams_at_once_and_grows_with_time() {
        let now = Instant::from_nanos(1_000);
        let mut pacer = Pacer::new(1_200, now);
        pacer.set_rate(Some(Bandwidth::from_mbit(1)), 0, Duration::ZERO, now);
        let burst = pacer.available(now);
        pacer.set_datagram_size(600, now);
        assert_eq!(pacer.available(now), burst / 2);
        pacer.set_datagram_size(1_200, now);
        assert_eq!(pacer.available(now), burst / 2, "no time has passed");
    }
}
