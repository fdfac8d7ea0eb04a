//! One path only: the all-eMBB and all-URLLC baselines.

use crate::usable::{named, whole_on};
use crate::{Item, PathId, PathView, Placement, Scheduler, usable};

/// Everything on one path: the named one, else the usable one of smallest id.
///
/// While the named path is not usable the smallest id stands in for it, so that a connection outlives it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Single {
    on: Option<PathId>,
}

impl Single {
    /// On `path` for as long as it is usable.
    pub const fn on(path: PathId) -> Self {
        Self { on: Some(path) }
    }
}

impl Scheduler for Single {
    fn name(&self) -> &'static str {
        "single"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        if let [only] = paths {
            return whole_on(only, item);
        }
        let usable = usable(paths);
        let first = || usable.iter().map(|index| &paths[index]).min_by_key(|path| path.id);
        let chosen = self.on.and_then(|id| named(paths, usable, id)).or_else(first);
        chosen.map_or(Placement::Wait, |path| whole_on(path, item))
    }

    fn repeats(&mut self, _item: &Item, _path: &PathView) -> usize {
        usize::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, PathState};

    #[test]
    fn everything_stays_on_the_named_path_until_it_falls_silent() {
        let path = |id, send_allowance| PathView { send_allowance, ..PathView::new(PathId(id)) };
        let item = Item::new(Content::Datagram, 100);
        let on = |id| Placement::On { path: PathId(id), bytes: 100 };
        let mut policy = Single::on(PathId(1));
        assert_eq!(policy.place(&item, &[path(0, 9000), path(1, 9000)]), on(1));
        assert_eq!(policy.place(&item, &[path(0, 9000), path(1, 0)]), Placement::Wait);
        let silent = PathView { state: PathState::Silent, ..path(1, 9000) };
        assert_eq!(policy.place(&item, &[path(0, 9000), silent]), on(0));
        assert_eq!(Single::default().place(&item, &[path(2, 9000), path(0, 9000)]), on(0));
    }

    #[test]
    fn acknowledgements_of_every_path_go_on_the_single_one() {
        let path = |id| PathView::new(PathId(id));
        let item = Item::new(Content::Acknowledgement { of: PathId(1) }, 30);
        let placement = Single::default().place(&item, &[path(0), path(1)]);
        assert_eq!(placement, Placement::On { path: PathId(0), bytes: 30 });
    }
}
