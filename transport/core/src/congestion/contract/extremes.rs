//! Events with numbers of any size, in any order.

use crate::congestion::{
    Cause, Controller, ControllerFactory, Flow, LossSample, LostPacket, MarkSample, Persistence, RateSample,
    Sample, Sending, SpuriousSample, minimum_window,
};
use crate::time::Instant;
use crate::{Bandwidth, PathId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// Events that one call of [`check`] tells.
const EVENTS: usize = 2000;
/// Events after which a fresh pair of controllers begins.
const LIFE: usize = 100;

/// Numbers of one event.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    kind: u8,
    now: Instant,
    bytes: usize,
    time: u64,
}

impl Numbers {
    fn drawn(dice: &mut StdRng) -> Self {
        Self {
            kind: dice.random_range(0..8),
            now: Instant::from_nanos(number(dice)),
            bytes: number(dice) as usize,
            time: number(dice),
        }
    }
}

/// A number of any magnitude, the largest and zero among them.
fn number(dice: &mut StdRng) -> u64 {
    match dice.random_range(0..16) {
        0 => 0,
        1 => u64::MAX,
        _ => dice.random::<u64>() >> dice.random_range(0..64),
    }
}

/// Tells two controllers of the same extreme events, and panics if they differ or have no sane answer.
pub(super) fn check(factory: &dyn ControllerFactory, seed: u64) {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut size = 1200;
    let mut pair = [factory.build(size), factory.build(size)];
    for index in 0..EVENTS {
        if index % LIFE == 0 {
            size = 1200;
            pair = [factory.build(size), factory.build(size)];
        }
        let numbers = Numbers::drawn(&mut dice);
        if numbers.kind == 7 {
            size = numbers.bytes % 65_536;
        }
        for controller in &mut pair {
            tell(controller.as_mut(), numbers);
        }
        let [one, twin] = &pair;
        let (window, rate) = (one.window(), one.pacing_rate());
        let name = one.name();
        assert_eq!((window, rate), (twin.window(), twin.pacing_rate()), "{name}: equal events, {numbers:?}");
        assert!(window >= minimum_window(size), "{name}: a window of {window} bytes after {numbers:?}");
        assert!(window <= usize::MAX / 2, "{name}: a window of {window} bytes after {numbers:?}");
        assert!(rate != Some(Bandwidth::default()), "{name}: paced at nothing after {numbers:?}");
    }
}

fn tell(controller: &mut dyn Controller, numbers: Numbers) {
    let Numbers { kind, now, bytes, time } = numbers;
    let (rtt, earlier) = (Duration::from_micros(time), Instant::from_nanos(time));
    let sibling = Flow { path: PathId(1), window: bytes as f64, rtt, between_losses: time };
    controller.on_siblings(&[sibling]);
    match kind {
        0 | 1 => controller.on_sent(&Sending {
            now,
            bytes,
            in_flight: if time.is_multiple_of(3) { bytes } else { time as usize },
            app_limited: time.is_multiple_of(2),
        }),
        2 | 3 => controller.on_acknowledged(&Sample {
            now,
            data_path: PathId::ZERO,
            acknowledged_over: PathId((time % 3) as u32),
            bytes,
            sent_at: earlier,
            rtt: (!time.is_multiple_of(5)).then_some(rtt),
            min_rtt: rtt,
            smoothed_rtt: rtt,
            delivery_rate: Some(Bandwidth::from_bits_per_second(time)),
            delivery: delivery(numbers),
            in_flight: bytes,
            app_limited: kind == 3 && time.is_multiple_of(2),
        }),
        4 => tell_of_loss(controller, numbers),
        5 => controller.on_ecn_ce(&MarkSample { now, sent_at: earlier }),
        6 => controller.on_spurious(&SpuriousSample { now, bytes, sent_at: earlier, lost_at: now }),
        _ => controller.set_datagram_size(bytes % 65_536),
    }
}

fn tell_of_loss(controller: &mut dyn Controller, numbers: Numbers) {
    let Numbers { now, bytes, time, .. } = numbers;
    let sent_at = Instant::from_nanos(time);
    controller.on_packet_lost(&LostPacket {
        now,
        number: time,
        bytes,
        sent_at,
        tx_in_flight: time / 3,
        lost: time,
        total_delivered: bytes as u64,
        app_limited: time.is_multiple_of(2),
    });
    let persistent = if time.is_multiple_of(5) { Persistence::Persistent } else { Persistence::Passing };
    let cause = if time.is_multiple_of(7) { Cause::Interruption } else { Cause::Congestion };
    controller.on_lost(&LossSample {
        now,
        bytes,
        largest_sent_at: sent_at,
        persistent,
        cause,
        in_flight: bytes,
    });
}

fn delivery(Numbers { bytes, time, .. }: Numbers) -> Option<RateSample> {
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
