//! The phases of the controller.

use crate::time::Instant;

/// The phase of the controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Phase {
    /// The rate doubles until utility falls (§4.1).
    Starting {
        /// The utility of the rate before.
        before: Option<f64>,
    },
    /// The queue that doubling the rate left, or a radio that became slower, empties. The paper has no such phase; but no utility
    /// rewards a rate for emptying a queue, so that it would stay for seconds.
    Draining {
        /// The time at which it is given up: the path may have become longer.
        until: Instant,
        /// Bytes in flight with which it ends.
        flight: usize,
    },
    /// Two pairs of trials run, one above the rate and one below it each.
    Trying {
        /// The results of the pairs.
        pairs: [Pair; PAIRS],
        /// Trials yet to begin.
        left: usize,
    },
    /// The rate goes up from interval to interval without trials, while the delays are a radio's and nothing is lost:
    /// utility then grows with the rate for certain. The authors' sender (PCC-Uspace) likewise goes on without trials after
    /// a decision.
    Climbing {
        /// The rate of the interval before, in bits per second.
        before: f64,
    },
}

/// Pairs of trials before the rate changes: only if all agree on the direction, as in the authors' sender (PCC-Uspace). The
/// second has the trials of the first the other way round, so that trends fall on both alike and two lossy intervals in a row
/// decide nothing.
pub(super) const PAIRS: usize = 2;

/// The utilities of two trials.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Pair {
    pub above: Option<f64>,
    pub below: Option<f64>,
}

impl Pair {
    /// Returns the difference of utility between the trials above and below the rate.
    pub(super) fn difference(self) -> Option<f64> {
        Some(self.above? - self.below?)
    }
}
