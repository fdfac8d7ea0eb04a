//! Expected arrival times of an item over the two paths between which a policy chose, to be compared with the observed
//! ones.

use std::time::Duration;

use crate::PathId;

/// The expected arrival times of an item over the two paths between which a policy chose.
///
/// Either time can be held against the channel alone, and their difference, as a reward, against what came (NSDI 2023,
/// Fig. 11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expectation {
    /// From the choice until all is there that the receiver must have first: C(n−1) of Algorithm 1.
    pub head_of_line_delay: Duration,
    /// The path of high bandwidth.
    pub bulk: Arrival,
    /// The path on which a byte has a price.
    pub scarce: Arrival,
}

/// The expected arrival of an item over one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The path.
    pub path: PathId,
    /// From the choice until the last byte is there.
    pub after: Duration,
}

impl Expectation {
    /// Returns the time that the scarce path was expected to save, in nanoseconds: negative if it was expected to be
    /// later. It is the reward of Algorithm 1 (NSDI 2023, §3.4), so that nothing is saved where what came before is
    /// awaited on either path.
    pub fn reward(&self) -> i64 {
        let completion = |arrival: Arrival| {
            i64::try_from(arrival.after.max(self.head_of_line_delay).as_nanos()).unwrap_or(i64::MAX)
        };
        completion(self.bulk).saturating_sub(completion(self.scarce))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expectation(bulk: Duration, scarce: Duration) -> Expectation {
        let arrival = |path, after| Arrival { path: PathId(path), after };
        Expectation { head_of_line_delay: Duration::ZERO, bulk: arrival(0, bulk), scarce: arrival(1, scarce) }
    }

    #[test]
    fn the_reward_is_what_the_scarce_path_saves() {
        let millis = Duration::from_millis;
        assert_eq!(expectation(millis(20), millis(8)).reward(), 12_000_000);
        assert_eq!(expectation(millis(8), millis(20)).reward(), -12_000_000);
        assert_eq!(expectation(Duration::MAX, Duration::ZERO).reward(), i64::MAX);
        let behind =
            |head_of_line_delay| Expectation { head_of_line_delay, ..expectation(millis(20), millis(8)) };
        assert_eq!(behind(millis(15)).reward(), 5_000_000);
        assert_eq!(behind(millis(30)).reward(), 0);
    }
}
