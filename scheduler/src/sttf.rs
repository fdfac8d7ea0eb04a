//! Shortest transfer time first (Hurtig et al., IEEE/ACM Transactions on Networking 2019).

use std::time::Duration;

use crate::min_rtt::acknowledge_on_its_own;
use crate::usable::whole_on;
use crate::{Content, Item, PathView, Placement, Scheduler, usable};

/// STTF: each frame on the path on which it arrives first, counting the wait for a window; it waits for that path if
/// need be. STMS (Shi et al., USENIX ATC 2018) aims at the same arrival in order, by sending later data early on the
/// slow path; here the head of the queue is all that is asked about, so both names mean this policy.
///
/// The transfer time is half a round trip and, without room, the time until there is some. Acknowledgements return on
/// the path they acknowledge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sttf;

impl Scheduler for Sttf {
    fn name(&self) -> &'static str {
        "sttf"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let usable = usable(paths);
        if let Content::Acknowledgement { of } = item.content {
            return acknowledge_on_its_own(item, of, paths, usable);
        }
        let all = usable.iter().map(|index| &paths[index]);
        let first = all.min_by_key(|path| (transfer_time(path), !path.can_send(), path.id));
        first.map_or(Placement::Wait, |path| whole_on(path, item))
    }
}

/// From now until a packet arrives that leaves as soon as `path` has room.
fn transfer_time(path: &PathView) -> Duration {
    let wait = match (path.can_send(), path.next_send) {
        (true, _) => Duration::ZERO,
        // Nobody knows when: an acknowledgement is a round trip away at most.
        (false, Duration::ZERO) => path.rtt.smoothed,
        (false, known) => known,
    };
    wait.saturating_add(path.rtt.smoothed / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PathId, Rtt};

    #[test]
    fn the_wait_for_a_fast_path_is_weighed_against_a_slow_one() {
        let path = |id, rtt, send_allowance, next_send| {
            let rtt = Rtt { smoothed: Duration::from_millis(rtt), ..Rtt::ZERO };
            PathView {
                send_allowance,
                rtt,
                next_send: Duration::from_millis(next_send),
                ..PathView::new(PathId(id))
            }
        };
        let item = Item::new(Content::Stream { id: 0 }, 1000);
        let slow = path(0, 40, 9000, 0);
        let on = |path| Placement::On { path: PathId(path), bytes: 1000 };
        assert_eq!(Sttf.place(&item, &[slow, path(1, 5, 9000, 0)]), on(1));
        assert_eq!(Sttf.place(&item, &[slow, path(1, 5, 0, 17)]), Placement::Wait);
        assert_eq!(Sttf.place(&item, &[slow, path(1, 5, 0, 18)]), on(0));
        assert_eq!(Sttf.place(&item, &[slow, path(1, 5, 0, 0)]), Placement::Wait);
    }
}
