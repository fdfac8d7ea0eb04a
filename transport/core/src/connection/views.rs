//! Snapshots of the paths for the scheduler.

use crate::connection::Connection;
use crate::path::path::Path;
use crate::time::Instant;
use hvq_scheduler::{PathView, PerMille, Rtt};
use smallvec::SmallVec;
use std::time::Duration;

impl Connection {
    /// Every open path that may carry 1-RTT packets, as a policy may know it.
    pub(super) fn views(&self, now: Instant) -> SmallVec<[PathView; 4]> {
        let paths = &self.paths;
        let mut views = SmallVec::new();
        for path in paths.open() {
            if paths.remote_ids.current(path.id).is_some() {
                views.push(view(path, paths.delay(path.id), now));
            }
        }
        views
    }

    /// Path 0, for data before the handshake is complete.
    pub(super) fn early_views(&self, now: Instant) -> SmallVec<[PathView; 4]> {
        let first = self.paths.get(crate::PathId::ZERO);
        first.map(|path| view(path, self.paths.delay(path.id), now)).into_iter().collect()
    }
}

fn view(path: &Path, delay: Duration, now: Instant) -> PathView {
    let in_flight = path.sent.in_flight();
    let rtt = path.rtt();
    let room = path.route.room(in_flight, now);
    PathView {
        standing: path.standing(),
        room,
        resumes: resumes(path, room, now),
        window: path.route.window(),
        in_flight,
        delay: path.hints.delay.unwrap_or(delay),
        rate: path.rate(),
        backlog: path.backlog(now),
        rtt: Rtt {
            latest: rtt.latest(),
            smoothed: rtt.smoothed(),
            variance: rtt.variance(),
            minimum: rtt.min().unwrap_or_default(),
        },
        loss: path.hints.loss.unwrap_or_else(|| loss(path)),
        datagram_size: path.route.datagram_size,
        hints: path.hints,
        ..PathView::new(path.id)
    }
}

/// Until a full datagram may go: the pacer's word, or when the oldest packet in flight should be acknowledged.
fn resumes(path: &Path, room: usize, now: Instant) -> Duration {
    if room >= path.route.datagram_size {
        return Duration::ZERO;
    }
    if let Some(at) = path.route.paced_until(path.sent.in_flight(), now) {
        return at.since(now);
    }
    let rtt = path.rtt().smoothed();
    path.sent.oldest_unacked().map_or(Duration::ZERO, |packet| (packet.sent_at + rtt).since(now))
}

fn loss(path: &Path) -> PerMille {
    let counters = &path.counters;
    let resolved = counters.packets_acknowledged + counters.packets_lost;
    PerMille::of(counters.packets_lost, resolved)
}
