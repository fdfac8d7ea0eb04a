//! What a policy expected when it chose between two paths: to be held against what came.

use std::time::Duration;

use crate::PathId;

/// When an item would be there over each of two paths, as a policy expected when it chose between them.
///
/// What the receiver must have first is left out, so that either time can be held against the channel alone (as NSDI 2023,
/// Fig. 11, does with rewards).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expectation {
    /// The path of high bandwidth.
    pub bulk: Arrival,
    /// The path on which a byte has a price.
    pub scarce: Arrival,
}

/// When an item would be there over one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The path.
    pub path: PathId,
    /// From the choice until the last byte is there.
    pub after: Duration,
}

impl Expectation {
    /// What the scarce path was expected to save, in nanoseconds: negative if it was expected to be later.
    pub fn reward(&self) -> i64 {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        nanos(self.bulk.after).saturating_sub(nanos(self.scarce.after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(bulk: Duration, scarce: Duration) -> Expectation {
        let arrival = |path, after| Arrival { path: PathId(path), after };
        Expectation { bulk: arrival(0, bulk), scarce: arrival(1, scarce) }
    }

    #[test]
    fn the_reward_is_what_the_scarce_path_saves() {
        let millis = Duration::from_millis;
        assert_eq!(expectation(millis(20), millis(8)).reward(), 12_000_000);
        assert_eq!(expectation(millis(8), millis(20)).reward(), -12_000_000);
        assert_eq!(expectation(Duration::MAX, Duration::ZERO).reward(), i64::MAX);
    }
}
