//! The paths that a policy may name: the one reading of [`PathState`] that all policies share.

use crate::{Content, Item, PathSet, PathState, PathView, Placement};

/// The paths that may carry something now: the available ones, the backups if none is available, and those under
/// validation; the silent ones only if that leaves nothing.
///
/// If every validated path is a backup, the peer has given no guidance, and all of them may be used (RFC 10069
/// §3.3). The result is empty only if `paths` is.
pub fn usable(paths: &[PathView]) -> PathSet {
    let [mut available, mut backup, mut unvalidated, mut silent] = [PathSet::EMPTY; 4];
    for (index, path) in paths.iter().enumerate() {
        let set = match path.state {
            PathState::Available => &mut available,
            PathState::Backup => &mut backup,
            PathState::Unvalidated => &mut unvalidated,
            PathState::Silent => &mut silent,
        };
        set.insert(index);
    }
    let validated = if available.is_empty() { backup } else { available };
    let speaking = validated.union(unvalidated);
    if speaking.is_empty() { silent } else { speaking }
}

/// Returns the paths of `set` known to reach the peer; `set` itself if there is none.
///
/// They carry what must not be lost to a path that leads nowhere: acknowledgements, control and repeated data.
pub fn proven(paths: &[PathView], set: PathSet) -> PathSet {
    let validated: PathSet =
        set.iter().filter(|&index| paths[index].state != PathState::Unvalidated).collect();
    if validated.is_empty() { set } else { validated }
}

/// The whole item on `path`, or the wait for it: acknowledgements are not congestion controlled (RFC 9002 §7).
pub(crate) fn whole_on(path: &PathView, item: &Item) -> Placement {
    if path.can_send() || matches!(item.content, Content::Acknowledgement { .. }) {
        Placement::On { path: path.id, bytes: item.bytes }
    } else {
        Placement::Wait
    }
}

/// The path called `id`, if it is in `set`.
pub(crate) fn named(paths: &[PathView], set: PathSet, id: crate::PathId) -> Option<&PathView> {
    set.iter().map(|index| &paths[index]).find(|path| path.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathId;

    fn paths(states: &[PathState]) -> Vec<PathView> {
        let numbered = states.iter().zip(0..);
        numbered.map(|(&state, id)| PathView { state, ..PathView::new(PathId(id)) }).collect()
    }

    fn usable_among(states: &[PathState]) -> Vec<usize> {
        usable(&paths(states)).iter().collect()
    }

    use PathState::{Available, Backup, Silent, Unvalidated};

    #[test]
    fn a_backup_serves_only_when_no_path_is_available() {
        assert_eq!(usable_among(&[Backup, Available, Silent]), [1]);
        assert_eq!(usable_among(&[Backup, Silent, Silent]), [0]);
        assert_eq!(usable_among(&[Backup, Backup]), [0, 1]);
    }

    #[test]
    fn a_silent_path_serves_only_when_nothing_else_is_left() {
        assert_eq!(usable_among(&[Silent, Unvalidated]), [1]);
        assert_eq!(usable_among(&[Silent, Silent]), [0, 1]);
    }

    #[test]
    fn a_path_under_validation_is_usable_but_not_proven() {
        let listed = paths(&[Available, Unvalidated, Backup]);
        assert_eq!(usable(&listed).iter().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(proven(&listed, usable(&listed)).iter().collect::<Vec<_>>(), [0]);
        let fresh = paths(&[Unvalidated]);
        assert_eq!(proven(&fresh, usable(&fresh)).len(), 1);
    }
}
