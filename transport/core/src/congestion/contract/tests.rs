use super::*;
use crate::Bandwidth;
use crate::congestion::new_reno::NewReno;
use crate::congestion::{Algorithm, Controller, Sample, Sending};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn every_controller_keeps_the_contract() {
    // attacks.md C14, C15.
    for algorithm in Algorithm::ALL.into_iter().chain([Algorithm::PlainCubic]) {
        for seed in 1..=4 {
            println!("{algorithm}, seed {seed}");
            check(&algorithm, seed);
        }
    }
}

#[test]
fn no_controller_fails_by_extreme_events() {
    // attacks.md C14, C15.
    for algorithm in Algorithm::ALL.into_iter().chain([Algorithm::PlainCubic]) {
        for seed in 0..50 {
            extremes::check(&algorithm, seed);
        }
    }
}

/// The clause that a controller breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    Nameless,
    LargeAtFirst,
    SmallWithLargeDatagrams,
    NothingPaced,
    DeafToLosses,
    RewardsLosses,
    RewardsMarks,
    IgnoresPersistence,
    GrowsUnused,
    GrowsWhileIdle,
    TakesNothingBack,
    Moody,
    Overflows,
}

const FAULTS: [Fault; 13] = [
    Fault::Nameless,
    Fault::LargeAtFirst,
    Fault::SmallWithLargeDatagrams,
    Fault::NothingPaced,
    Fault::DeafToLosses,
    Fault::RewardsLosses,
    Fault::RewardsMarks,
    Fault::IgnoresPersistence,
    Fault::GrowsUnused,
    Fault::GrowsWhileIdle,
    Fault::TakesNothingBack,
    Fault::Moody,
    Fault::Overflows,
];

/// The number of controllers made, which no controller may depend on.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// NewReno with a fault.
#[derive(Debug)]
struct Faulty {
    sound: NewReno,
    fault: Fault,
    more: usize,
    acknowledged_at: Option<Instant>,
}

impl Faulty {
    fn new(fault: Fault, datagram_size: usize) -> Self {
        let more = match fault {
            Fault::LargeAtFirst => 1_000_000,
            Fault::Moody => MADE.fetch_add(1, Ordering::Relaxed) % 2 * datagram_size,
            _ => 0,
        };
        Self { sound: NewReno::new(datagram_size), fault, more, acknowledged_at: None }
    }
}

impl Controller for Faulty {
    fn on_sent(&mut self, sending: &Sending) {
        let before = self.acknowledged_at.unwrap_or(sending.now);
        if self.fault == Fault::GrowsWhileIdle && sending.now.since(before) > Duration::from_secs(5) {
            self.more += 1_000_000;
        }
    }

    fn on_acknowledged(&mut self, sample: &Sample) {
        self.acknowledged_at = Some(sample.now);
        let app_limited = sample.app_limited && self.fault != Fault::GrowsUnused;
        self.sound.on_acknowledged(&Sample { app_limited, ..*sample });
        if self.fault == Fault::Overflows {
            self.more = sample.bytes.checked_mul(1_000_000).expect("no acknowledgement is so large") % 2;
        }
    }

    fn on_lost(&mut self, sample: &LossSample) {
        match self.fault {
            Fault::DeafToLosses if sample.persistent == Persistence::Passing => {}
            Fault::RewardsLosses => self.more = self.sound.window(),
            Fault::IgnoresPersistence => {
                self.sound.on_lost(&LossSample { persistent: Persistence::Passing, ..*sample });
            }
            _ => self.sound.on_lost(sample),
        }
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        self.sound.on_ecn_ce(sample);
        if self.fault == Fault::RewardsMarks {
            self.more += 100_000;
        }
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        if self.fault != Fault::TakesNothingBack {
            self.sound.on_spurious(sample);
        }
    }

    fn window(&self) -> usize {
        self.sound.window() + self.more
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        (self.fault == Fault::NothingPaced).then(Bandwidth::default)
    }

    fn name(&self) -> &'static str {
        if self.fault == Fault::Nameless { "" } else { "faulty" }
    }

    fn in_slow_start(&self) -> bool {
        self.sound.in_slow_start()
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        if self.fault != Fault::SmallWithLargeDatagrams {
            self.sound.set_datagram_size(datagram_size);
        }
    }
}

#[test]
fn a_controller_that_breaks_the_contract_is_found_out() {
    for fault in FAULTS {
        let factory = move |size: usize| -> Box<dyn Controller> { Box::new(Faulty::new(fault, size)) };
        let found = std::panic::catch_unwind(|| check(&factory, 1));
        assert!(found.is_err(), "{fault:?} passed");
    }
}
