//! Shortest transfer time first (Hurtig et al., IEEE/ACM Transactions on Networking 2019).

use std::time::Duration;

use crate::min_rtt::acknowledge_on_its_own;
use crate::usable::whole_on;
use crate::{Content, Item, PathId, PathView, Placement, Scheduler, usable};

/// STTF: each frame on the path on which it arrives first, counting the wait for a window; it waits for that path if
/// need be. STMS (Shi et al., USENIX ATC 2018) aims at the same arrival in order, by sending later data early on the
/// slow path; here the head of the queue is all that is asked about, so both names mean this policy.
///
/// The transfer time is half a round trip and, without room, the time until there is some. The paper goes through the whole
/// send queue: what stands behind others that are to take a path counts with them there, so that only as much waits for the
/// quick path as crosses it before the slow one delivers, and the rest leaves. Only the head can leave here, so it waits if all
/// that stands behind it in its stream, and all that was told to wait at the same moment, does so too. Acknowledgements
/// return on the path they acknowledge.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sttf {
    /// The path that was waited for, the moment of it, and the bytes that wait.
    waiting: Option<(PathId, Duration, usize)>,
}

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
        let time = |path: &PathView| transfer_time(path, self.queue(item, path));
        let Some(first) = all.min_by_key(|path| (time(path), !path.can_send(), path.id)) else {
            return Placement::Wait;
        };
        if !first.can_send() {
            self.waiting = Some((first.id, item.now, self.queue(item, first)));
        }
        whole_on(first, item)
    }
}

impl Sttf {
    /// Bytes that wait for `path` with `item`, it and its stream's included.
    fn queue(&self, item: &Item, path: &PathView) -> usize {
        let before = self.waiting.filter(|(id, at, _)| *id == path.id && *at == item.now);
        before.map_or(0, |(_, _, bytes)| bytes).saturating_add(item.pending.max(item.bytes))
    }
}

/// From now until the last of `queue` bytes arrives that leave as soon as `path` has room; with room, until the first does.
fn transfer_time(path: &PathView, queue: usize) -> Duration {
    let wait = match (path.can_send(), path.next_send) {
        (true, _) => return path.rtt.smoothed / 2,
        // Nobody knows when: an acknowledgement is a round trip away at most.
        (false, Duration::ZERO) => path.rtt.smoothed,
        (false, known) => known,
    };
    let behind = queue.saturating_sub(path.datagram_size);
    let sent = match path.rate {
        Some(rate) => rate.transmission_time(behind),
        // As far as is known a window leaves in a round trip.
        None => {
            let windows = (behind as u128).saturating_mul(path.rtt.smoothed.as_nanos());
            let window = path.window.max(path.datagram_size).max(1) as u128;
            Duration::from_nanos(u64::try_from(windows / window).unwrap_or(u64::MAX))
        }
    };
    wait.saturating_add(sent).saturating_add(path.rtt.smoothed / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bandwidth, Rtt};

    fn path(id: u32, rtt: u64, send_allowance: usize, next_send: u64) -> PathView {
        let rtt = Rtt { smoothed: Duration::from_millis(rtt), ..Rtt::ZERO };
        let next_send = Duration::from_millis(next_send);
        PathView { send_allowance, rtt, next_send, ..PathView::new(PathId(id)) }
    }

    fn on(path: u32) -> Placement {
        Placement::On { path: PathId(path), bytes: 1000 }
    }

    #[test]
    fn the_wait_for_a_fast_path_is_weighed_against_a_slow_one() {
        let item = Item::new(Content::Stream { id: 0 }, 1000);
        let slow = path(0, 40, 9000, 0);
        let place = |quick| Sttf::default().place(&item, &[slow, quick]);
        assert_eq!(place(path(1, 5, 9000, 0)), on(1));
        assert_eq!(place(path(1, 5, 0, 17)), Placement::Wait);
        assert_eq!(place(path(1, 5, 0, 18)), on(0));
        assert_eq!(place(path(1, 5, 0, 0)), Placement::Wait);
    }

    #[test]
    fn no_more_waits_for_the_fast_path_than_crosses_it_before_the_slow_one_delivers() {
        let slow = path(0, 40, 9000, 0);
        // 4.8 ms for each 1,200 bytes: room in 6 ms, so 2 more cross within 20 ms.
        let quick = PathView { rate: Some(Bandwidth::from_mbit(2)), ..path(1, 5, 0, 6) };
        let behind = |pending| Item { pending, ..Item::new(Content::Stream { id: 0 }, 1000) };
        let place = |pending| Sttf::default().place(&behind(pending), &[slow, quick]);
        assert_eq!((place(3600), place(4800)), (Placement::Wait, on(0)));
        // Streams that wait at the same moment stand behind one another.
        let mut policy = Sttf::default();
        let mut ask = |now| {
            let now = Duration::from_millis(now);
            policy.place(&Item { now, ..behind(2000) }, &[slow, quick])
        };
        let wait = Placement::Wait;
        assert_eq!([ask(1), ask(1), ask(1), ask(2)], [wait, wait, on(0), wait]);
    }
}
