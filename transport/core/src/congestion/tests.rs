//! Events for the tests of controllers, and what holds for all controllers.

use super::*;
use proptest::prelude::*;

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

fn arbitrary_delivery(bytes: usize, time: u64) -> Option<RateSample> {
    (!time.is_multiple_of(7)).then(|| RateSample {
        rate: (!time.is_multiple_of(11)).then(|| Bandwidth::from_bits_per_second(time)),
        delivered: time,
        interval: Duration::from_nanos(time),
        prior_delivered: time / 3,
        total_delivered: time,
        newly_acknowledged: bytes as u64,
        tx_in_flight: bytes as u64,
        lost: time / 5,
        app_limited: time.is_multiple_of(2),
    })
}

fn arbitrary_loss(now: Instant, bytes: usize, time: u64) -> LostPacket {
    LostPacket {
        now,
        number: time,
        bytes,
        sent_at: Instant::from_nanos(time),
        tx_in_flight: time / 3,
        lost: time,
        total_delivered: bytes as u64,
        app_limited: time.is_multiple_of(2),
    }
}

/// Feeds one arbitrary event; numbers of any size.
fn feed(controller: &mut dyn Controller, kind: u8, now: Instant, bytes: usize, time: u64) {
    let (rtt, earlier) = (Duration::from_micros(time), Instant::from_nanos(time));
    match kind {
        0 => controller.on_sent(&Sending {
            now,
            bytes,
            in_flight: if time.is_multiple_of(3) { bytes } else { time as usize },
            app_limited: time.is_multiple_of(2),
        }),
        1 | 2 => controller.on_acknowledged(&Sample {
            now,
            data_path: PathId::ZERO,
            acknowledged_over: PathId((time % 3) as u32),
            bytes,
            sent_at: earlier,
            rtt: Some(rtt),
            min_rtt: rtt,
            smoothed_rtt: rtt,
            delivery_rate: Some(Bandwidth::from_bits_per_second(time)),
            delivery: arbitrary_delivery(bytes, time),
            in_flight: bytes,
            app_limited: kind == 2 && time.is_multiple_of(2),
        }),
        3 => {
            controller.on_packet_lost(&arbitrary_loss(now, bytes, time));
            controller.on_lost(&LossSample {
                now,
                bytes,
                largest_sent_at: earlier,
                persistent: if time.is_multiple_of(5) {
                    Persistence::Persistent
                } else {
                    Persistence::Passing
                },
                cause: Cause::Congestion,
                in_flight: bytes,
            })
        }
        4 => controller.on_ecn_ce(&MarkSample { now, sent_at: earlier }),
        5 => controller.on_spurious(&SpuriousSample { now, bytes, sent_at: earlier, lost_at: now }),
        _ => controller.set_datagram_size(bytes % 65_536),
    }
}

proptest! {
    #[test]
    fn the_window_stays_sane_whatever_happens(
        events in prop::collection::vec((0u8..7, any::<u64>(), any::<usize>(), any::<u64>()), 1..100)
    ) {
        // attacks.md C14, C15.
        for algorithm in Algorithm::ALL {
            let mut controller = algorithm.build(1200);
            for &(kind, now, bytes, time) in &events {
                let rtt = Duration::from_nanos(time);
                let sibling = Flow { path: PathId(1), window: bytes as f64, rtt, between_losses: now };
                controller.on_siblings(&[sibling]);
                let size = if kind >= 6 { bytes % 65_536 } else { 0 };
                feed(controller.as_mut(), kind, Instant::from_nanos(now), bytes, time);
                prop_assert!(controller.window() >= minimum_window(size));
                prop_assert!(controller.window() <= usize::MAX / 2);
            }
        }
    }
}
