//! The default of most multipath stacks: the smallest round-trip time that has room.

use crate::usable::{named, whole_on};
use crate::{Content, Item, PathSet, PathView, Placement, Scheduler, usable};

/// Each frame on the usable path of smallest smoothed round-trip time that has room (MPTCP's default scheduler).
///
/// Acknowledgements return on the path they acknowledge.
#[derive(Clone, Copy, Debug, Default)]
pub struct MinRtt;

impl Scheduler for MinRtt {
    fn name(&self) -> &'static str {
        "min-rtt"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let usable = usable(paths);
        if let Content::Acknowledgement { of } = item.content {
            return acknowledge_on_its_own(item, of, paths, usable);
        }
        match fastest(paths, usable.iter().filter(|&index| paths[index].can_send())) {
            Some(path) => Placement::On { path: path.id, bytes: item.bytes },
            None => Placement::Wait,
        }
    }
}

/// The acknowledgement on the path it acknowledges; on the fastest usable one where that is not usable.
pub(crate) fn acknowledge_on_its_own(
    item: &Item,
    of: crate::PathId,
    paths: &[PathView],
    usable: PathSet,
) -> Placement {
    match named(paths, usable, of).or_else(|| fastest(paths, crate::proven(paths, usable).iter())) {
        Some(path) => Placement::On { path: path.id, bytes: item.bytes },
        None => Placement::Wait,
    }
}

/// The item on the fastest usable path if that has room, acknowledgements on the path they acknowledge. Without room there
/// `spares` is asked, with the fastest, the fastest of those with room and all of them, whether the slower one had better be
/// left alone: what BLEST and ECF ask.
pub(crate) fn fastest_unless(
    item: &Item,
    paths: &[PathView],
    mut spares: impl FnMut(&PathView, &PathView, PathSet) -> bool,
) -> Placement {
    let usable = usable(paths);
    if let Content::Acknowledgement { of } = item.content {
        return acknowledge_on_its_own(item, of, paths, usable);
    }
    let by_rtt = |path: &&PathView| (path.rtt.smoothed, path.id);
    let all = || usable.iter().map(|index| &paths[index]);
    let Some(fast) = all().min_by_key(by_rtt) else { return Placement::Wait };
    if fast.can_send() {
        return whole_on(fast, item);
    }
    match all().filter(|path| path.can_send()).min_by_key(by_rtt) {
        Some(slow) if !spares(fast, slow, usable) => whole_on(slow, item),
        _ => Placement::Wait,
    }
}

/// The path of smallest smoothed round-trip time; the first of equals.
fn fastest(paths: &[PathView], indices: impl Iterator<Item = usize>) -> Option<&PathView> {
    indices.map(|index| &paths[index]).min_by_key(|path| path.rtt.smoothed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{PathId, Rtt};

    fn path(id: u32, rtt: u64, send_allowance: usize) -> PathView {
        let rtt = Rtt { smoothed: Duration::from_millis(rtt), ..Rtt::ZERO };
        PathView { send_allowance, rtt, ..PathView::new(PathId(id)) }
    }

    #[test]
    fn data_takes_the_shortest_round_trip_that_has_room() {
        let item = Item::new(Content::Stream { id: 0 }, 1000);
        let on = |path| Placement::On { path: PathId(path), bytes: 1000 };
        assert_eq!(MinRtt.place(&item, &[path(0, 40, 9000), path(1, 5, 9000)]), on(1));
        assert_eq!(MinRtt.place(&item, &[path(0, 40, 9000), path(1, 5, 0)]), on(0));
        assert_eq!(MinRtt.place(&item, &[path(0, 40, 0), path(1, 5, 0)]), Placement::Wait);
    }

    #[test]
    fn an_acknowledgement_returns_on_its_own_path_even_without_room() {
        let item = Item::new(Content::Acknowledgement { of: PathId(0) }, 30);
        let paths = [path(0, 40, 0), path(1, 5, 9000)];
        assert_eq!(MinRtt.place(&item, &paths), Placement::On { path: PathId(0), bytes: 30 });
        let other = Item::new(Content::Acknowledgement { of: PathId(7) }, 30);
        assert_eq!(MinRtt.place(&other, &paths), Placement::On { path: PathId(1), bytes: 30 });
    }
}
