//! The effects of movement besides blackouts: a rate that collapses, and a detour after a hand-over.

use std::time::Duration;

use crate::blackout::Interval;
use crate::quantity::{Bandwidth, Probability, nanoseconds};
use crate::rate::{NEVER, RateModel};

/// A stretch of time in which less of the rate is left: a cell's edge, or many users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collapse {
    /// The interval of the collapse.
    pub during: Interval,
    /// The share of the rate that is left, from nothing to all of it.
    pub left: Probability,
}

/// A stretch of time in which packets are under way for longer: after a hand-over, over the network between the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detour {
    /// The interval of the detour.
    pub during: Interval,
    /// The delay that is added, one way.
    pub by: Duration,
}

/// Returns the delay that `detours` add to packets that are sent at `now`.
pub(crate) fn detour(detours: &[Detour], now: Duration) -> Duration {
    detours.iter().filter(|detour| detour.during.contains(now)).map(|detour| detour.by).sum()
}

/// A rate that collapses at times, and one beside it that does not.
#[derive(Clone, Debug)]
pub(crate) struct Changing {
    pub(crate) base: RateModel,
    pub(crate) collapses: Vec<Collapse>,
    pub(crate) extra: Option<Bandwidth>,
}

/// One bit for the arithmetic here: rates times nanoseconds give 10⁻⁹ bits, and nothing is rounded on the way.
const BIT: u128 = 1_000_000_000;
/// The maximum number of rate changes that one packet lives through: one that has not been sent after them never is, so
/// that no loop here is endless.
const MOST_CHANGES: u32 = 1_000_000;

impl Changing {
    /// Returns the time at which the last of `bytes` has been sent if the first begins at `start`; maybe [`NEVER`].
    pub(crate) fn sent_at(&self, start: Duration, bytes: usize) -> Duration {
        let mut work = bytes as u128 * 8 * BIT;
        let mut time = nanoseconds(start);
        for _ in 0..MOST_CHANGES {
            let (rate, until) = self.stretch(time);
            let finish = match rate {
                0 => None,
                rate => u64::try_from(u128::from(time) + work.div_ceil(u128::from(rate))).ok(),
            };
            match (finish, until) {
                _ if work == 0 => return Duration::from_nanos(time),
                (Some(finish), None) => return Duration::from_nanos(finish),
                (Some(finish), Some(until)) if finish <= until => return Duration::from_nanos(finish),
                (_, Some(until)) if until > time => {
                    work -= u128::from(rate) * u128::from(until - time);
                    time = until;
                }
                _ => return NEVER,
            }
        }
        NEVER
    }

    /// The rate in bits per second at `time`, in nanoseconds, and until when it holds; `None` means for ever.
    fn stretch(&self, time: u64) -> (u64, Option<u64>) {
        let (base, until) = self.base.stretch(time);
        let mut left = 1.0;
        let mut next = until;
        for Collapse { during, left: share } in &self.collapses {
            let (from, until) = (nanoseconds(during.from), nanoseconds(during.until));
            if (from..until).contains(&time) {
                left *= share.share();
            }
            let changes = [from, until].into_iter().filter(|change| (time + 1..u64::MAX).contains(change));
            next = changes.chain(next).min();
        }
        let extra = self.extra.map_or(0, Bandwidth::bits_per_second);
        ((base as f64 * left).round() as u64 + extra, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    /// 12 Mbit/s, which are 1500 bytes a millisecond, with `collapses` as from, until and percent.
    fn rate(collapses: &[(u64, u64, u32)], extra: Option<u64>) -> Changing {
        let collapse = |(from, until, percent): &(u64, u64, u32)| Collapse {
            during: Interval { from: ms(*from), until: ms(*until) },
            left: Probability::new(f64::from(*percent) / 100.0).unwrap(),
        };
        Changing {
            base: RateModel::Constant(Bandwidth::from_megabits_per_second(12)),
            collapses: collapses.iter().map(collapse).collect(),
            extra: extra.map(Bandwidth::from_megabits_per_second),
        }
    }

    #[test]
    fn a_collapse_leaves_its_share_of_the_rate_while_it_lasts() {
        let rate = rate(&[(10, 20, 10)], None);
        assert_eq!(rate.sent_at(ms(0), 1500), ms(1));
        assert_eq!(rate.sent_at(ms(10), 150), ms(11));
        // A packet in the middle: half of it before, 5 ms for the other half.
        assert_eq!(rate.sent_at(Duration::from_micros(9_500), 1500), ms(15));
        // 1500 bytes take all of the collapse; the rest is fast again.
        assert_eq!(rate.sent_at(ms(10), 3000), ms(21));
        assert_eq!(rate.sent_at(ms(20), 1500), ms(21));
    }

    #[test]
    fn a_rate_of_nothing_stalls_and_one_for_ever_never_ends() {
        assert_eq!(rate(&[(0, 50, 0)], None).sent_at(ms(0), 1500), ms(51));
        let forever = Changing {
            collapses: vec![Collapse {
                during: Interval { from: ms(0), until: Duration::MAX },
                left: Probability::NEVER,
            }],
            ..rate(&[], None)
        };
        assert_eq!(forever.sent_at(ms(7), 1), NEVER);
        assert_eq!(forever.sent_at(ms(7), 0), ms(7));
    }

    #[test]
    fn what_is_beside_the_rate_does_not_collapse() {
        assert_eq!(rate(&[(0, 100, 0)], Some(2)).sent_at(ms(0), 250), ms(1));
        assert_eq!(rate(&[], Some(4)).sent_at(ms(0), 2000), ms(1));
        // Two at once leave a share of a share.
        assert_eq!(rate(&[(0, 100, 50), (0, 100, 20)], None).sent_at(ms(0), 150), ms(1));
    }

    #[test]
    fn detours_add_up_while_they_last() {
        let detours = [(0, 10, 5), (5, 10, 20)].map(|(from, until, by)| Detour {
            during: Interval { from: ms(from), until: ms(until) },
            by: ms(by),
        });
        assert_eq!([4, 5, 10].map(|at| detour(&detours, ms(at))), [ms(5), ms(25), ms(0)]);
    }
}
