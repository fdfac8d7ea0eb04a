//! Is the pipe full? (Draft, "Exiting Acceleration Based on Bandwidth Plateau".)

use crate::Bandwidth;
use crate::recovery::rate::RateSample;

/// Rounds without growth that make a plateau.
const PLATEAU_ROUNDS: u32 = 3;

/// Growth in percent that is growth.
const GROWTH_PERCENT: u64 = 125;

/// Looks for a plateau of the delivery rate while the flow accelerates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    baseline: Bandwidth,
    rounds: u32,
    ever: bool,
}

impl FullPipe {
    /// Starts to look again from `baseline` (draft, ResetFullBW).
    pub(super) fn look_again(&mut self, baseline: Bandwidth) {
        self.baseline = baseline;
        self.rounds = 0;
    }

    /// A round began with `sample` (draft, CheckFullBWReached). A sample that is no measurement says nothing.
    pub(super) fn on_round(&mut self, sample: &RateSample) {
        let Some(rate) = sample.rate else { return };
        if self.is_full_now() || sample.app_limited {
            return;
        }
        let growth = u128::from(self.baseline.bits_per_second()) * u128::from(GROWTH_PERCENT);
        if u128::from(rate.bits_per_second()) * 100 >= growth {
            self.look_again(rate);
            return;
        }
        self.rounds += 1;
        self.ever |= self.is_full_now();
    }

    /// Returns true if the pipe was found full since it began to look (draft, BBR.full_bw_now).
    pub(super) fn is_full_now(&self) -> bool {
        self.rounds >= PLATEAU_ROUNDS
    }

    /// Returns true if it ever was (draft, BBR.full_bw_reached).
    pub(super) fn was_full(&self) -> bool {
        self.ever
    }

    /// Losses say that the pipe is full.
    pub(super) fn declare_full(&mut self) {
        self.ever = true;
    }

    /// Takes that back: the losses were none.
    pub(super) fn retract(&mut self) {
        self.ever = false;
    }
}
