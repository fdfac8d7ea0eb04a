//! The roles of two paths: the high-bandwidth channel and the low-latency one.

use std::cmp::Reverse;

use crate::{PathSet, PathView};

/// The two channels that the papers speak of, by index; one path has both parts where there is no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Roles {
    /// The high-bandwidth channel, HBC: eMBB.
    pub(crate) high_bandwidth: usize,
    /// The low-latency channel, LLC: URLLC.
    pub(crate) low_latency: usize,
}

impl Roles {
    /// The parts of the paths in `set`; `None` if it is empty.
    ///
    /// The low-latency channel has the shortest delay; the smaller id breaks ties. The high-bandwidth channel has the
    /// greatest rate among the others, and an unknown rate counts as great. Delay comes first because it is known after
    /// one round trip, while the rate of a path that carried little looks small.
    pub(crate) fn of(paths: &[PathView], set: PathSet) -> Option<Self> {
        let low_latency = set.iter().min_by_key(|&index| (paths[index].delay, paths[index].id))?;
        let others = set.iter().filter(|&index| index != low_latency);
        let high_bandwidth = others.max_by_key(|&index| {
            let path = &paths[index];
            let rate = path.rate.map_or(u64::MAX, crate::Bandwidth::bits_per_second);
            (rate, Reverse(path.id))
        });
        Some(Self { high_bandwidth: high_bandwidth.unwrap_or(low_latency), low_latency })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Bandwidth, PathId};

    fn path(id: u32, mbit: Option<u64>, delay: u64) -> PathView {
        let delay = Duration::from_millis(delay);
        PathView { delay, rate: mbit.map(Bandwidth::from_mbit), ..PathView::new(PathId(id)) }
    }

    fn parts(paths: &[PathView]) -> (usize, usize) {
        let roles = Roles::of(paths, (0..paths.len()).collect()).expect("there are paths");
        (roles.high_bandwidth, roles.low_latency)
    }

    #[test]
    fn bandwidth_and_delay_tell_the_channels_apart() {
        assert_eq!(parts(&[path(0, Some(60), 25), path(1, Some(2), 3)]), (0, 1));
        assert_eq!(parts(&[path(0, Some(2), 3), path(1, None, 25)]), (1, 0));
        assert_eq!(parts(&[path(0, Some(1), 25), path(1, Some(2), 3)]), (0, 1));
        assert_eq!(parts(&[path(0, Some(2), 9), path(1, Some(100), 25), path(2, Some(5), 3)]), (1, 2));
        assert_eq!(parts(&[path(0, Some(2), 3), path(1, Some(100), 25), path(2, None, 30)]), (2, 0));
    }

    #[test]
    fn a_path_alone_has_both_parts() {
        assert_eq!(parts(&[path(0, None, 3)]), (0, 0));
        assert_eq!(Roles::of(&[], PathSet::EMPTY), None);
    }
}
