//! The data volume part of the model (draft, "Data Volume Network Path Model Parameters").
//!
//! A bound on what may be in flight holds for the return path it was found with: over one that takes 22 ms longer, as
//! much as the path carries in 22 ms is in flight besides, and none of it waits in a queue. Bounds therefore remember
//! the mix of return paths, and move with it.

use super::BETA;
use crate::Bandwidth;
use std::time::Duration;

/// The regime on which a volume of data in flight depends besides the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regime {
    /// The bandwidth.
    pub(super) rate: Bandwidth,
    /// The delay with which acknowledgements return later than at the start, in nanoseconds.
    pub(super) shift: i64,
}

/// A bound in bytes that was found in some regime.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    bytes: u64,
    shift: i64,
}

impl Bound {
    /// `bytes` in the regime of now.
    pub(super) fn new(bytes: u64, regime: Regime) -> Self {
        Self { bytes, shift: regime.shift }
    }

    /// The bound in another regime, in bytes.
    pub(super) fn at(self, regime: Regime) -> u64 {
        let longer = regime.shift.saturating_sub(self.shift);
        let bytes = regime.rate.bytes_in(Duration::from_nanos(longer.unsigned_abs()));
        if longer >= 0 { self.bytes.saturating_add(bytes) } else { self.bytes.saturating_sub(bytes) }
    }
}

/// Bounds of what may be in flight; `None` is no bound.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Volumes {
    /// The largest volume that a probe found without excessive loss (draft, BBR.inflight_longterm).
    pub(super) long_term: Option<Bound>,
    /// The volume that is safe by recent losses (draft, BBR.inflight_shortterm).
    pub(super) short_term: Option<Bound>,
    /// The largest volume delivered within a round trip in the last round (draft, BBR.inflight_latest).
    pub(super) latest: u64,
}

impl Volumes {
    /// A round with losses is over, with `window` bytes in flight at most (draft, AdaptLowerBoundsFromCongestion).
    pub(super) fn on_congestion(&mut self, window: u64, regime: Regime) {
        let bound = self.short_term.map_or(window, |bound| bound.at(regime));
        let bound = self.latest.max((bound as f64 * BETA) as u64);
        self.short_term = Some(Bound::new(bound, regime));
    }

    /// The losses were none: at least what `saved` says is safe (draft, HandleSpuriousLossDetection).
    pub(super) fn restore(&mut self, saved: &Self, regime: Regime) {
        self.long_term = larger(self.long_term, saved.long_term, regime);
        self.short_term = larger(self.short_term, saved.short_term, regime);
    }
}

fn larger(bound: Option<Bound>, saved: Option<Bound>, regime: Regime) -> Option<Bound> {
    let (bound, saved) = bound.zip(saved)?;
    Some(if saved.at(regime) > bound.at(regime) { saved } else { bound })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_moves_with_the_return_path_and_comes_back() {
        let rate = Bandwidth::from_mbit(8);
        let [fast, slow] = [0, 20_000_000].map(|shift| Regime { rate, shift });
        let bound = Bound::new(50_000, fast);
        assert_eq!((bound.at(fast), bound.at(slow)), (50_000, 70_000));
        assert_eq!(Bound::new(70_000, slow).at(fast), 50_000);
        assert_eq!(Bound::new(5_000, slow).at(fast), 0);
    }

    #[test]
    fn no_bound_is_larger_than_any() {
        let regime = Regime { rate: Bandwidth::from_mbit(8), shift: 0 };
        let bounded = Volumes { long_term: Some(Bound::new(1, regime)), ..Volumes::default() };
        let mut volumes = bounded;
        volumes.restore(&Volumes::default(), regime);
        assert!(volumes.long_term.is_none());
        volumes.restore(&bounded, regime);
        assert!(volumes.long_term.is_none());
    }
}
