//! Shares in proportion to rates: bandwidth aggregation by striping.

use crate::min_rtt::acknowledge_on_its_own;
use crate::{Content, Item, Observation, PathId, PathView, Placement, Scheduler, usable};

/// Frames in shares proportional to the paths' rates, as striping transports do (pTCP, Hsieh and Sivakumar, MobiCom
/// 2002; R-MTP and mTCP set shares the same way): each goes on the path with room that is furthest behind its share.
///
/// The weight of a path is its rate, or window over round-trip time where that is not known. Acknowledgements return on
/// the path they acknowledge.
#[derive(Clone, Debug, Default)]
pub struct Weighted {
    shares: Vec<Share>,
}

/// The bytes that a path carried, over its weight.
#[derive(Clone, Copy, Debug)]
struct Share {
    path: PathId,
    carried: u64,
}

impl Weighted {
    /// Returns the counter of the bytes that `path` has carried. One that just came counts with as much as the others:
    /// it has no arrears.
    fn carried(&mut self, path: PathId) -> &mut u64 {
        let index = self.shares.iter().position(|share| share.path == path).unwrap_or_else(|| {
            let carried = self.shares.iter().map(|share| share.carried).max().unwrap_or(0);
            self.shares.push(Share { path, carried });
            self.shares.len() - 1
        });
        &mut self.shares[index].carried
    }

    fn add(&mut self, path: &PathView, bytes: usize) {
        let cost = (bytes as u64).saturating_mul(1 << 20) / weight(path);
        let carried = self.carried(path.id);
        *carried = carried.saturating_add(cost);
        if *carried > u64::MAX / 2 {
            self.shares.clear();
        }
    }
}

/// The path's rate in units of 8 kbit/s, at least 1.
fn weight(path: &PathView) -> u64 {
    let estimated = || {
        let micros = u64::try_from(path.rtt.smoothed.as_micros()).unwrap_or(u64::MAX);
        (path.window as u64).saturating_mul(1000).checked_div(micros).unwrap_or(0)
    };
    path.rate.map_or_else(estimated, |rate| rate.bits_per_second() / 8000).max(1)
}

impl Scheduler for Weighted {
    fn name(&self) -> &'static str {
        "weighted"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let usable = usable(paths);
        if let Content::Acknowledgement { of } = item.content {
            return acknowledge_on_its_own(item, of, paths, usable);
        }
        let ready = usable.iter().map(|index| &paths[index]).filter(|path| path.can_send());
        match ready.min_by_key(|path| (*self.carried(path.id), path.id)) {
            Some(path) => {
                self.add(path, item.bytes);
                Placement::On { path: path.id, bytes: item.bytes }
            }
            None => Placement::Wait,
        }
    }

    fn observe(&mut self, observation: &Observation) {
        if let Observation::PathGone { path } = *observation {
            self.shares.retain(|share| share.path != path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bandwidth;

    #[test]
    fn paths_carry_in_proportion_to_their_rates() {
        let path = |id, mbit, send_allowance| {
            let rate = Some(Bandwidth::from_mbit(mbit));
            PathView { send_allowance, rate, ..PathView::new(PathId(id)) }
        };
        let mut policy = Weighted::default();
        let mut counts = [0_u32; 2];
        let mut place = |allowances: [usize; 2], counts: &mut [u32; 2]| {
            let paths = [path(0, 30, allowances[0]), path(1, 10, allowances[1])];
            let item = Item::new(Content::Stream { id: 0 }, 1200);
            let Placement::On { path, .. } = policy.place(&item, &paths) else { return };
            counts[path.0 as usize] += 1;
        };
        for _ in 0..400 {
            place([9000; 2], &mut counts);
        }
        assert!((298..=302).contains(&counts[0]), "{counts:?}");
        // A path without room does not hold up the other.
        place([0, 9000], &mut counts);
        assert_eq!(counts.iter().sum::<u32>(), 401);
    }
}
