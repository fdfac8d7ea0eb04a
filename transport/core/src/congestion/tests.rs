//! Events for the tests of controllers, and what holds for all controllers.

use super::*;
use rand::Rng;
use rand::rngs::StdRng;

mod filling;
mod interruptions;
mod radio;
mod sharing;

/// Acknowledgements return over path 0 and path 1, with these delays, by turns of `period`, or over either if that is zero.
pub(crate) fn by_turns(
    delays: [Duration; 2],
    period: Duration,
) -> impl FnMut(Instant, &mut StdRng) -> (PathId, Duration) {
    move |now, rng| {
        let turn = now.since(Instant::ZERO).as_nanos().checked_div(period.as_nanos());
        let turn = turn.unwrap_or_else(|| rng.random_range(0..2)) % 2;
        (PathId(turn as u32), delays[turn as usize])
    }
}

/// `ms` after the start.
pub(crate) const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A datagram of 1200 bytes is acknowledged at `now`, 50 ms after it left, over its own path.
pub(crate) fn sample(now: Instant) -> Sample {
    let rtt = Duration::from_millis(50);
    Sample {
        now,
        data_path: PathId::ZERO,
        acknowledged_over: PathId::ZERO,
        bytes: 1200,
        sent_at: Instant::ZERO + now.since(Instant::ZERO).saturating_sub(rtt),
        rtt: Some(rtt),
        min_rtt: rtt,
        smoothed_rtt: rtt,
        delivery_rate: None,
        delivery: None,
        in_flight: 0,
        app_limited: false,
    }
}

/// `bytes` that left at `sent` ms are declared lost at `now` ms.
pub(crate) fn lost(sent: u64, now: u64, bytes: usize) -> LossSample {
    let (now, largest_sent_at) = (at(now), at(sent));
    LossSample {
        now,
        bytes,
        largest_sent_at,
        persistent: Persistence::Passing,
        cause: Cause::Congestion,
        in_flight: 0,
    }
}

/// A mark of a packet that left at `sent` ms is reported at `now` ms.
pub(crate) fn marked(sent: u64, now: u64) -> MarkSample {
    MarkSample { now: at(now), sent_at: at(sent) }
}

/// `bytes` declared lost at `lost` ms are acknowledged at `now` ms.
pub(crate) fn spurious(lost: u64, now: u64, bytes: usize) -> SpuriousSample {
    let lost_at = at(lost);
    SpuriousSample { now: at(now), bytes, sent_at: lost_at, lost_at }
}

#[test]
fn the_initial_window_is_that_of_the_rfc() {
    // RFC 9002 §7.2.
    assert_eq!(initial_window(1200), 12_000);
    assert_eq!(initial_window(1472), 14_720);
    assert_eq!(initial_window(1500), 14_720);
    assert_eq!(initial_window(9000), 18_000);
    assert!(initial_window(0) > 0, "a window is a divisor");
}

#[test]
fn names_round_trip() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        assert_eq!(algorithm.build(1200).name(), algorithm.name());
    }
    assert_eq!("Reno".parse(), Ok(Algorithm::NewReno));
    assert_eq!("BBRv3".parse(), Ok(Algorithm::Bbr));
    assert!("bbr9".parse::<Algorithm>().is_err());
}
