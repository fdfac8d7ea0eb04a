//! Earliest completion first (Lim, Nahum, Towsley and Gibbens, CoNEXT 2017).

use std::time::Duration;

use crate::min_rtt::fastest_unless;
use crate::{Item, PathView, Placement, Scheduler};

/// Hysteresis of the decision to wait (β of the paper), in hundredths.
const HYSTERESIS: u32 = 25;

/// ECF: the fastest path if it has room; otherwise the fastest with room, unless waiting for the fastest completes what
/// is pending earlier (Algorithm 1 of the paper).
///
/// Bytes stand for the paper's segments, and what waits on the item's stream for the send buffer. Acknowledgements
/// return on the path they acknowledge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ecf {
    patience: Patience,
}

/// The last decision: to send, or to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Patience {
    #[default]
    Sending,
    Waiting,
}

impl Ecf {
    /// Returns true if the item should wait for `fast` although `slow` has room.
    fn waits(&mut self, item: &Item, fast: &PathView, slow: &PathView) -> bool {
        let pending = item.pending.max(item.bytes);
        let deviation = fast.rtt.variance.max(slow.rtt.variance);
        let rounds = |path: &PathView| pending as u128 * 100 / path.window.max(1) as u128;
        let times = |time: Duration, hundredths: u128| time.as_nanos().saturating_mul(hundredths) / 100;
        let on_fast = times(fast.rtt.smoothed, 100 + rounds(fast));
        let held = if self.patience == Patience::Waiting { HYSTERESIS } else { 0 };
        let on_slow = times(slow.rtt.smoothed.saturating_add(deviation), u128::from(100 + held));
        if on_fast >= on_slow {
            self.patience = Patience::Sending;
            return false;
        }
        // Whether the slow path would be busy for longer than waiting costs.
        let busy = times(slow.rtt.smoothed, rounds(slow));
        let worth = busy >= times(fast.rtt.smoothed, 200).saturating_add(deviation.as_nanos());
        if worth {
            self.patience = Patience::Waiting;
        }
        worth
    }
}

impl Scheduler for Ecf {
    fn name(&self) -> &'static str {
        "ecf"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        fastest_unless(item, paths, |fast, slow, _| self.waits(item, fast, slow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, PathId, Rtt};

    fn path(id: u32, rtt: u64, send_allowance: usize) -> PathView {
        let rtt = Rtt { smoothed: Duration::from_millis(rtt), ..Rtt::ZERO };
        PathView { send_allowance, rtt, window: 12_000, ..PathView::new(PathId(id)) }
    }

    fn item(pending: usize) -> Item {
        Item { pending, ..Item::new(Content::Stream { id: 0 }, 1000) }
    }

    #[test]
    fn the_fastest_path_comes_first() {
        let placement = Ecf::default().place(&item(90_000), &[path(0, 40, 9000), path(1, 5, 9000)]);
        assert_eq!(placement, Placement::On { path: PathId(1), bytes: 1000 });
    }

    #[test]
    fn waiting_for_the_fast_path_beats_a_round_on_the_slow_one() {
        let paths = [path(0, 40, 9000), path(1, 5, 0)];
        // 12 KB: (1 + 1) · 5 ms < 40 ms, and the slow path would be busy for 40 ms >= 10 ms.
        assert_eq!(Ecf::default().place(&item(12_000), &paths), Placement::Wait);
        // 1 KB keeps the slow path busy for 3.3 ms only: no reason to wait.
        let sent = Placement::On { path: PathId(0), bytes: 1000 };
        assert_eq!(Ecf::default().place(&item(1000), &paths), sent);
        // 120 KB: eleven rounds of the fast path take longer than one of the slow path.
        assert_eq!(Ecf::default().place(&item(120_000), &paths), sent);
    }

    #[test]
    fn a_decision_to_wait_is_held_on_to() {
        // 84 KB: 8 rounds of 5 ms are the slow path's 40 ms, and less than 1.25 times that.
        let (paths, at_the_edge) = ([path(0, 40, 9000), path(1, 5, 0)], item(84_000));
        let mut policy = Ecf::default();
        assert_ne!(policy.place(&at_the_edge, &paths), Placement::Wait);
        assert_eq!(policy.place(&item(80_000), &paths), Placement::Wait);
        assert_eq!(policy.place(&at_the_edge, &paths), Placement::Wait);
    }
}
