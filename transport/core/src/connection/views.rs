//! Snapshots of the paths for the scheduler.

use crate::connection::Role;
use crate::connection::send::Sender;
use crate::path::lifecycle::LifecycleState;
use crate::path::path::Path;
use crate::time::Instant;
use crate::wire::overhead::lower_headers;
use hvq_scheduler::{PathId, PathState, PathView, PerMille, Rtt};
use smallvec::SmallVec;
use std::time::Duration;

impl Sender<'_> {
    /// Every open path that may carry 1-RTT packets, as a policy may know it.
    pub(in crate::connection) fn views(&self, now: Instant) -> SmallVec<[PathView; 2]> {
        let paths = &self.paths;
        let mut views = SmallVec::new();
        for path in paths.open() {
            if paths.remote_ids.current(path.id).is_none() || path.route.validation.is_put_off(now) {
                continue;
            }
            let view = self.view(path, now);
            match self.proof(path) {
                Proof::Needless => views.push(view),
                Proof::Awaited => views.push(PathView { send_allowance: 0, ..view }),
                Proof::AwaitedBeside => {}
            }
        }
        self.prefer_heard(&mut views);
        self.config.queue_bound.apply(&mut views, |id| paths.get(id).and_then(Path::shown_rate));
        let ack_delay = self.peer.max_ack_delay(self.lifecycle);
        let beside = |id| paths.get(id).map(|path| Beside::of(path, ack_delay, now)).unwrap_or_default();
        correct(&mut views, beside);
        views
    }

    /// Shows the paths that were heard as if they answered while no path does: at least the peer's direction works
    /// there.
    fn prefer_heard(&self, views: &mut [PathView]) {
        if views.iter().any(|view| view.state != PathState::Silent) {
            return;
        }
        for view in views {
            if let Some(path) = self.paths.get(view.id).filter(|path| path.liveness.is_heard()) {
                view.state = path.scheduling_state_if_heard();
            }
        }
    }

    /// Returns the proof that a server awaits, which still validates a path that its client has opened, if another was
    /// validated.
    fn proof(&self, path: &Path) -> Proof {
        let proven = |other: &&Path| other.id != path.id && other.route.validation.is_validated();
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# After receiving packets from the client on a new path, if the server decides to use the new path,
        //# the server MUST validate the peer's address before sending any data
        let awaits = self.role == Role::Server
            && self.paths.lifecycles.state(path.id) == LifecycleState::Validating
            && !path.route.validation.is_validated();
        let mut others = self.paths.open().filter(proven).peekable();
        if !awaits || others.peek().is_none() {
            Proof::Needless
        } else if others.any(|other| !other.liveness.is_silent()) {
            Proof::AwaitedBeside
        } else {
            Proof::Awaited
        }
    }

    fn view(&self, path: &Path, now: Instant) -> PathView {
        let in_flight = path.sent.in_flight();
        let rtt = path.rtt();
        // What is left of the handshake is in flight, too.
        let beside = if path.id == PathId::ZERO { self.handshake.in_flight() } else { 0 };
        let room = path.route.room(in_flight + beside, now);
        let queue = path.shown_queue(now);
        PathView {
            state: path.scheduling_state(),
            send_allowance: room,
            next_send: path.next_send(room, now),
            window: path.route.window(),
            in_flight,
            delay: path.hints.delay.unwrap_or_else(|| self.paths.delay(path.id)),
            rate: queue.rate,
            backlog: queue.backlog,
            others: path.queued_by_others(),
            rtt: Rtt {
                latest: rtt.latest(),
                smoothed: rtt.smoothed(),
                variance: rtt.variance(),
                minimum: rtt.min().unwrap_or_default(),
            },
            loss: path.hints.loss.unwrap_or_else(|| loss(path)),
            datagram_size: path.route.datagram_size,
            overhead: self.sizes().overhead(path.id),
            lower_headers: lower_headers(path.route.tuple.remote.ip()),
            hints: path.believed_hints(),
            ..PathView::new(path.id)
        }
    }

    /// Path 0, for data before the handshake is complete.
    pub(in crate::connection) fn zero_rtt_views(&self, now: Instant) -> SmallVec<[PathView; 2]> {
        let first = self.paths.get(crate::PathId::ZERO);
        first.map(|path| self.view(path, now)).into_iter().collect()
    }
}

/// The proof that a server awaits before it uses a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Proof {
    /// Nothing.
    Needless,
    /// The client's address, before data goes there. Acknowledgements do, for no other path answers.
    Awaited,
    /// The client's address; a path that answers carries everything meanwhile.
    AwaitedBeside,
}

fn loss(path: &Path) -> PerMille {
    let counters = path.counters();
    // A path that is cut off now and then is silent meanwhile. Were its losses counted as its share, it would be avoided for long.
    let lost = path.lost_to_congestion();
    PerMille::of(lost, counters.packets_acknowledged + lost)
}

/// The delay that a radio may add, which stays however long the path is idle.
const RADIO: Duration = Duration::from_millis(50);

/// The time for which a path is idle, and the queue of others there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Beside {
    /// The time since the path was last used.
    idle: Duration,
    /// The time that the queue of others takes.
    others: Duration,
    /// The time beyond an empty round trip for which an overdue packet has been on its way.
    late: Duration,
}

impl Beside {
    fn of(path: &Path, ack_delay: Duration, now: Instant) -> Self {
        Self {
            idle: now.since(path.active_at()),
            others: path.delay_of_others(now),
            late: path.lateness(ack_delay, now),
        }
    }
}

/// Adds to the delay of paths without a promised rate what queues there beyond the path's own backlog.
///
/// On the widest paths that is all that was added of late, by radio or queue: their rate is an estimate from below, for they
/// were idle, or their window limited them, and a radio's changes. While the path is idle its queue drains as the time passes:
/// were it not for that, one that was avoided for a long queue would be avoided for ever, for nothing would show that the
/// queue is gone. On others it is the queue of others: their own would be counted twice.
/// On all of them it is at least what an overdue packet has been on its way for, beyond an empty round trip and the path's own
/// packets.
fn correct(views: &mut [PathView], beside: impl Fn(PathId) -> Beside) {
    if views.len() < 2 {
        return;
    }
    let greatest = views.iter().map(rate).max();
    for view in views.iter_mut().filter(|view| view.hints.rate.is_none()) {
        let Beside { idle, others, late } = beside(view.id);
        let in_flight = view.rate.map_or(Duration::ZERO, |rate| rate.transmission_time(view.in_flight));
        let late = late.saturating_sub(in_flight);
        if Some(rate(view)) != greatest {
            view.delay += others.max(late);
            continue;
        }
        let added = view.rtt.smoothed.saturating_sub(view.rtt.minimum);
        let left = added.saturating_sub(idle).max(added.min(RADIO)).max(late);
        let own = view.rate.map_or(Duration::ZERO, |rate| rate.transmission_time(view.backlog));
        view.delay += left.saturating_sub(own);
        view.rtt.smoothed = view.rtt.minimum + left;
    }
}

/// The rate of a path in bits per second, where an unknown one may be any.
fn rate(view: &PathView) -> u64 {
    view.rate.map_or(u64::MAX, |rate| rate.bits_per_second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Algorithm;
    use crate::path::amplification::Amplification;
    use crate::path::mtu::DatagramSizing;
    use crate::path::path::PathCounters;
    use crate::path::route::{FourTuple, Route};
    use crate::recovery::sent_packet::Lost;
    use crate::recovery::sent_packet::{PacketClass, SentPacket};
    use crate::space::received::AckPolicy;
    use hvq_scheduler::{Bandwidth, Hints};

    fn measured(id: u32, hinted: Option<Bandwidth>) -> PathView {
        let millis = Duration::from_millis;
        let rtt = Rtt { smoothed: millis(70), minimum: millis(40), ..Rtt::ZERO };
        let hints = Hints { rate: hinted, ..Hints::NONE };
        PathView {
            rate: Some(Bandwidth::from_mbit(3)),
            delay: millis(20),
            rtt,
            hints,
            ..PathView::new(PathId(id))
        }
    }

    #[test]
    fn what_queues_on_the_widest_path_counts_as_its_delay_beyond_its_own_backlog() {
        let guaranteed = measured(0, Some(Bandwidth::from_mbit(3)));
        let wide = PathView { rate: Some(Bandwidth::from_mbit(8)), ..measured(1, None) };
        // 10 ms at 8 Mbit/s.
        for (backlog, delay) in [(0, 50), (10_000, 40), (40_000, 20)] {
            let mut views = [guaranteed, PathView { backlog, ..wide }];
            correct(&mut views, |_| Beside::default());
            assert_eq!(views[0], guaranteed);
            assert_eq!((views[1].rate, views[1].delay), (wide.rate, Duration::from_millis(delay)));
        }
    }

    #[test]
    fn a_queue_that_nobody_adds_to_is_forgotten_as_it_drains() {
        let stuck = PathView {
            rtt: Rtt { smoothed: Duration::from_millis(2240), ..measured(1, None).rtt },
            rate: None,
            ..measured(1, None)
        };
        for (idle, delay) in [(0, 2220), (1000, 1220), (2190, 70), (60_000, 70)] {
            let mut views = [measured(0, Some(Bandwidth::from_mbit(2))), stuck];
            correct(&mut views, |_| Beside { idle: Duration::from_millis(idle), ..Beside::default() });
            assert_eq!(views[1].delay, Duration::from_millis(delay), "after {idle} ms");
        }
    }

    #[test]
    fn an_only_path_and_a_narrow_one_are_shown_as_they_were_measured() {
        let narrow = measured(0, None);
        let mut alone = [narrow];
        correct(&mut alone, |_| Beside::default());
        assert_eq!(alone, [narrow]);
        let mut views = [narrow, PathView { rate: Some(Bandwidth::from_mbit(50)), ..measured(1, None) }];
        correct(&mut views, |_| Beside::default());
        assert_eq!(views[0], narrow);
    }

    #[test]
    fn the_queue_of_others_counts_as_delay_of_a_narrow_path_whose_rate_nobody_promised() {
        let beside = Beside { others: Duration::from_millis(90), ..Beside::default() };
        for (hinted, delay) in [(None, 110), (Some(Bandwidth::from_mbit(3)), 20)] {
            let narrow = measured(0, hinted);
            let mut views = [narrow, PathView { rate: Some(Bandwidth::from_mbit(50)), ..measured(1, None) }];
            correct(&mut views, |_| beside);
            assert_eq!(views[0], PathView { delay: Duration::from_millis(delay), ..narrow });
        }
    }

    #[test]
    fn an_overdue_packet_shows_a_queue_before_it_arrives() {
        // 3750 bytes in flight take 10 ms at 3 Mbit/s.
        let late = Beside { late: Duration::from_millis(500), ..Beside::default() };
        let narrow = PathView { in_flight: 3750, ..measured(0, None) };
        let wide = PathView { rate: None, ..measured(1, None) };
        let mut views = [narrow, wide];
        correct(&mut views, |_| late);
        assert_eq!(views.map(|view| view.delay), [510, 520].map(Duration::from_millis));
        let mut views = [narrow, wide];
        correct(&mut views, |_| Beside { late: Duration::from_millis(10), ..late });
        assert_eq!(views[0], narrow, "its own packets account for it");
    }

    #[test]
    fn packets_lost_in_an_interruption_are_no_share_of_a_path() {
        let address = ([192, 0, 2, 1], 443).into();
        let tuple = FourTuple { local: address, remote: address };
        let sizing = DatagramSizing::default();
        let congestion = Algorithm::NewReno.into();
        let route = Route::new(tuple, congestion, Amplification::Validated, sizing, Instant::ZERO);
        let mut path = Path::new(PathId(1), route, AckPolicy::default());
        let packet = |number| SentPacket::new(number, Instant::ZERO, 1200, PacketClass::AckEliciting);
        path.set_counters(PathCounters {
            packets_acknowledged: 7,
            packets_lost: 3,
            ..PathCounters::default()
        });
        assert_eq!(loss(&path), PerMille::of(3, 10));
        path.interruptions_mut().on_acknowledged(&[packet(2)], None, None, None);
        path.interruptions_mut().on_lost(&Lost { packets: vec![packet(0), packet(1)], ..Lost::default() });
        assert_eq!(loss(&path), PerMille::of(1, 8));
    }
}
