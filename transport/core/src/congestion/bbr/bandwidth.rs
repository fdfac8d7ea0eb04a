//! The data rate part of the model (draft, "Data Rate Network Path Model Parameters").

use super::BETA;
use crate::Bandwidth;
use crate::recovery::rate::RateSample;

/// Estimates of the bandwidth on the long and on the short term.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bandwidths {
    /// The largest samples of the previous and of the current cycle (draft, BBR.max_bw_filter).
    cycles: [Bandwidth; 2],
    /// The largest sample of the last round (draft, BBR.bw_latest).
    latest: Bandwidth,
    /// The bandwidth that is safe by recent losses, `None` for no bound (draft, BBR.bw_shortterm).
    short_term: Option<Bandwidth>,
}

impl Bandwidths {
    /// The largest sample of this and the previous cycle (draft, BBR.max_bw).
    pub(super) fn max(&self) -> Bandwidth {
        self.cycles[0].max(self.cycles[1])
    }

    /// The rate to send at (draft, BoundBWForModel).
    pub(super) fn bounded(&self) -> Bandwidth {
        self.short_term.map_or(self.max(), |bound| bound.min(self.max()))
    }

    /// Returns the bandwidth that is safe by recent losses; `None` for no bound.
    pub(super) fn short_term(&self) -> Option<Bandwidth> {
        self.short_term
    }

    /// Takes a sample (draft, UpdateMaxBw): one that the application limited tells only if it is the largest.
    pub(super) fn on_sample(&mut self, sample: &RateSample) {
        let Some(rate) = sample.rate else { return };
        self.latest = self.latest.max(rate);
        if !sample.app_limited || rate >= self.max() {
            self.cycles[1] = self.cycles[1].max(rate);
        }
    }

    /// A cycle of ProbeBW is over (draft, AdvanceMaxBwFilter). One without samples is not counted.
    pub(super) fn advance(&mut self) {
        if self.cycles[1] > Bandwidth::default() {
            self.cycles = [self.cycles[1], Bandwidth::default()];
        }
    }

    /// A round with losses is over (draft, AdaptLowerBoundsFromCongestion).
    pub(super) fn on_congestion(&mut self) {
        let bound = self.short_term.unwrap_or(self.max());
        self.short_term = Some(self.latest.max(scaled(bound, BETA)));
    }

    /// The next round begins with `sample` (draft, AdvanceLatestDeliverySignals).
    pub(super) fn start_round(&mut self, sample: &RateSample) {
        self.latest = sample.rate.unwrap_or_default();
    }

    /// Forgets the last round (draft, ResetCongestionSignals).
    pub(super) fn forget_latest(&mut self) {
        self.latest = Bandwidth::default();
    }

    /// Forgets what losses said (draft, ResetShortTermModel).
    pub(super) fn forget_short_term(&mut self) {
        self.short_term = None;
    }

    /// The losses were none: at least `saved` is safe (draft, HandleSpuriousLossDetection).
    pub(super) fn restore(&mut self, saved: Option<Bandwidth>) {
        self.short_term = self.short_term.zip(saved).map(|(bound, saved)| bound.max(saved));
    }
}

/// `rate` times `factor`.
pub(super) fn scaled(rate: Bandwidth, factor: f64) -> Bandwidth {
    Bandwidth::from_bits_per_second((rate.bits_per_second() as f64 * factor) as u64)
}
