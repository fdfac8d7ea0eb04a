//! Re-injection that the receiver's buffer drives (XLINK, Zheng et al., SIGCOMM 2021).

use std::time::Duration;

use crate::min_rtt::{MinRtt, acknowledge_on_its_own};
use crate::{Content, History, Item, PathSet, PathView, Placement, Scheduler, proven, usable};

/// Play time left below which everything is re-injected, and above which nothing is (the paper's two thresholds).
const SHORT: Duration = Duration::from_millis(100);
const AMPLE: Duration = Duration::from_millis(500);

/// XLINK: data on the fastest path with room; a copy on the others if the receiver runs short.
///
/// The deadline of a message stands for the play time that the receiver reports as left. Below 100 ms a copy goes on
/// every path with room at once, above 500 ms none does, and in between one does if the path could miss the deadline
/// (its round-trip time and four deviations are longer). Data that a silent path holds is re-injected by the same rule;
/// without a deadline always. The paper re-injects what is unacknowledged when the send queue is empty; here the copy
/// leaves with the original.
///
/// [`Xlink::ALWAYS`] is the paper's re-injection without control by the receiver's buffer (§5.1): whatever ends the send queue
/// is copied to every path that has room for all of it, since nothing else wants that room.
#[derive(Clone, Copy, Debug, Default)]
pub struct Xlink {
    control: Control,
}

/// The control of re-injection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Control {
    /// The receiver's play time.
    #[default]
    PlayTime,
    /// None: whatever ends the send queue is re-injected.
    None,
}

impl Xlink {
    /// The policy with re-injection that nothing controls.
    pub const ALWAYS: Self = Self { control: Control::None };
}

impl Scheduler for Xlink {
    fn name(&self) -> &'static str {
        "xlink"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let usable = usable(paths);
        if let Content::Acknowledgement { of } = item.content {
            return acknowledge_on_its_own(item, of, paths, usable);
        }
        if let History::Unacknowledged { on, .. } = item.history {
            return copy(item, paths, proven(paths, usable), on);
        }
        let placement = MinRtt.place(item, paths);
        let Placement::On { path, .. } = placement else { return placement };
        if self.control == Control::None {
            return with_copies(item, paths, usable, path).unwrap_or(placement);
        }
        let chosen = paths.iter().find(|listed| listed.id == path);
        if !chosen.is_some_and(|chosen| runs_short(item, chosen)) {
            return placement;
        }
        Placement::OnEach(usable.iter().filter(|&index| paths[index].can_send()).collect())
    }
}

/// A copy of what path `on` holds, on the fastest of the others with room.
fn copy(item: &Item, paths: &[PathView], set: PathSet, on: crate::PathId) -> Placement {
    let others: PathSet = set.iter().filter(|&index| paths[index].id != on).collect();
    let set = if others.is_empty() { set } else { others };
    let ready = set.iter().map(|index| &paths[index]).filter(|path| path.can_send());
    match ready.min_by_key(|path| (path.rtt.smoothed, path.id)) {
        Some(path) => Placement::On { path: path.id, bytes: item.bytes },
        None => Placement::Wait,
    }
}

/// `item` on path `first` and on each other with room for all that waits, if there is one: nothing else comes to want that room.
fn with_copies(item: &Item, paths: &[PathView], usable: PathSet, first: crate::PathId) -> Option<Placement> {
    let is_data = matches!(item.content, Content::Stream { .. } | Content::Datagram);
    let takes = |path: &PathView| {
        path.id == first || path.send_allowance >= item.pending.max(item.bytes).max(path.datagram_size)
    };
    let set: PathSet = usable.iter().filter(|&index| takes(&paths[index])).collect();
    (is_data && set.len() > 1).then_some(Placement::OnEach(set))
}

/// Returns true if the receiver's buffer asks for a copy of the data that goes on `path`.
fn runs_short(item: &Item, path: &PathView) -> bool {
    let Some(left) = item.message.and_then(|message| message.deadline) else { return false };
    let slow = path.rtt.smoothed.saturating_add(path.rtt.variance.saturating_mul(4));
    left < SHORT || (left < AMPLE && slow > left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, PathId, Rtt};

    fn path(id: u32, rtt: u64, send_allowance: usize) -> PathView {
        let rtt = Rtt { smoothed: Duration::from_millis(rtt), ..Rtt::ZERO };
        PathView { send_allowance, rtt, ..PathView::new(PathId(id)) }
    }

    fn due_in(milliseconds: u64) -> Item {
        let deadline = Some(Duration::from_millis(milliseconds));
        let message = Some(Message { remaining: 4000, deadline });
        Item { message, ..Item::new(Content::Stream { id: 0 }, 1000) }
    }

    #[test]
    fn copies_follow_the_play_time_left() {
        let paths = [path(0, 300, 9000), path(1, 400, 9000)];
        let both = Placement::OnEach([0, 1].into_iter().collect());
        let one = Placement::On { path: PathId(0), bytes: 1000 };
        assert_eq!(Xlink::default().place(&due_in(99), &paths), both);
        assert_eq!(Xlink::default().place(&due_in(299), &paths), both);
        assert_eq!(Xlink::default().place(&due_in(300), &paths), one);
        assert_eq!(Xlink::default().place(&due_in(600), &paths), one);
        assert_eq!(Xlink::default().place(&Item::new(Content::Stream { id: 0 }, 1000), &paths), one);
    }

    #[test]
    fn what_a_silent_path_holds_goes_elsewhere() {
        let history = History::Unacknowledged { on: PathId(1), age: Duration::from_millis(90) };
        let item = Item { history, ..Item::new(Content::Stream { id: 0 }, 1000) };
        let paths = [path(0, 40, 9000), path(1, 5, 9000)];
        assert_eq!(Xlink::default().place(&item, &paths), Placement::On { path: PathId(0), bytes: 1000 });
        assert_eq!(Xlink::default().place(&item, &[path(0, 40, 0), path(1, 5, 9000)]), Placement::Wait);
    }

    #[test]
    fn without_control_the_end_of_the_send_queue_is_copied_where_nothing_else_wants_the_room() {
        let paths = [path(0, 40, 9000), path(1, 5, 9000)];
        let both = Placement::OnEach([0, 1].into_iter().collect());
        let behind = |pending| Item { pending, ..Item::new(Content::Stream { id: 0 }, 1000) };
        let mut policy = Xlink::ALWAYS;
        assert_eq!(policy.place(&behind(9000), &paths), both);
        assert_eq!(policy.place(&behind(9001), &paths), Placement::On { path: PathId(1), bytes: 1000 });
        assert_eq!(policy.place(&due_in(600), &paths), both);
        let control = Item::new(Content::Control, 100);
        assert_eq!(policy.place(&control, &paths), Placement::On { path: PathId(1), bytes: 100 });
    }
}
