//! Everything everywhere: the least delay that bytes can buy.

use crate::min_rtt::acknowledge_on_its_own;
use crate::{Content, Item, PathSet, PathView, Placement, Scheduler, usable};

/// A copy of each frame on every usable path that has room.
///
/// Acknowledgements return on the path they acknowledge: a copy tells the peer nothing that the first did not.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant;

impl Scheduler for Redundant {
    fn name(&self) -> &'static str {
        "redundant"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let usable = usable(paths);
        if let Content::Acknowledgement { of } = item.content {
            return acknowledge_on_its_own(item, of, paths, usable);
        }
        let ready: PathSet = usable.iter().filter(|&index| paths[index].can_send()).collect();
        if ready.is_empty() { Placement::Wait } else { Placement::OnEach(ready) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PathId, PathState};

    #[test]
    fn a_copy_goes_on_every_usable_path_that_has_room() {
        let path = |id, send_allowance| PathView { send_allowance, ..PathView::new(PathId(id)) };
        let backup = PathView { state: PathState::Backup, ..path(3, 9000) };
        let item = Item::new(Content::Datagram, 100);
        let placement = Redundant.place(&item, &[path(0, 9000), path(1, 0), path(2, 1), backup]);
        assert_eq!(placement, Placement::OnEach([0, 2].into_iter().collect()));
        assert_eq!(Redundant.place(&item, &[path(0, 0), backup]), Placement::Wait);
    }
}
