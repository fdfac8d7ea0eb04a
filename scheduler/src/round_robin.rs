//! Turns: a baseline that treats unequal paths as equal.

use crate::min_rtt::acknowledge_on_its_own;
use crate::{Content, Item, PathId, PathView, Placement, Scheduler, usable};

/// Each frame on the next usable path that has room, in ascending order of path id.
///
/// Acknowledgements return on the path they acknowledge and take no turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    previous: Option<PathId>,
}

impl Scheduler for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let usable = usable(paths);
        if let Content::Acknowledgement { of } = item.content {
            return acknowledge_on_its_own(item, of, paths, usable);
        }
        let ready =
            usable.iter().map(|index| &paths[index]).filter(|path| path.can_send()).map(|path| path.id);
        // Ids after the previous one come first, then the list starts over.
        let next = ready.min_by_key(|&id| (Some(id) <= self.previous, id));
        match next {
            Some(path) => {
                self.previous = next;
                Placement::On { path, bytes: item.bytes }
            }
            None => Placement::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_take_turns_and_one_without_room_is_passed_over() {
        let path = |id, send_allowance| PathView { send_allowance, ..PathView::new(PathId(id)) };
        let item = Item::new(Content::Datagram, 100);
        let mut policy = RoundRobin::default();
        let mut turn = |allowances: [usize; 3]| match policy
            .place(&item, &[path(4, allowances[0]), path(0, allowances[1]), path(2, allowances[2])])
        {
            Placement::On { path, .. } => Some(path.0),
            _ => None,
        };
        let all = [9000; 3];
        assert_eq!([turn(all), turn(all), turn(all), turn(all)], [Some(0), Some(2), Some(4), Some(0)]);
        assert_eq!(turn([9000, 9000, 0]), Some(4));
        assert_eq!(turn([0; 3]), None);
        assert_eq!(turn(all), Some(0));
    }
}
