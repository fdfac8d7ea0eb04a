//! Counters of a connection and its paths, as the application may read them.

use crate::PathId;
use crate::connection::Connection;
use crate::datagram::DatagramStats;
use crate::path::path::Path;
use crate::path::path::PathCounters;
use crate::path::paths::Paths;
use crate::path::route::FourTuple;
use crate::time::Instant;
use hvq_scheduler::{Bandwidth, PathState};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// Closed paths whose counters are kept.
const MOST_CLOSED: usize = 16;

/// Frames of one kind on one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameCounter {
    /// The path.
    pub path: PathId,
    /// The frame's name in RFC 9000, RFC 9221 or RFC 10069.
    pub kind: &'static str,
    /// Frames sent.
    pub sent: u64,
    /// Bytes of the frames sent.
    pub sent_bytes: u64,
    /// Frames received.
    pub received: u64,
}

/// A snapshot of one path.
#[derive(Clone, PartialEq, Debug)]
pub struct PathStats {
    /// The path.
    pub id: PathId,
    /// Its addresses.
    pub tuple: FourTuple,
    /// The state of the path, as the scheduler sees it.
    pub state: PathState,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The smallest round-trip time of the return path in use.
    pub min_rtt: Duration,
    /// The estimated one-way delay to the peer.
    pub delay: Duration,
    /// The congestion window in bytes.
    pub window: usize,
    /// Bytes in flight.
    pub in_flight: usize,
    /// The bottleneck rate: hinted, or estimated.
    pub rate: Option<Bandwidth>,
    /// The size of datagrams sent, in bytes.
    pub datagram_size: usize,
    /// The congestion controller.
    pub controller: &'static str,
    /// Counters since the path was opened.
    pub counters: PathCounters,
}

/// A snapshot of a connection.
#[derive(Clone, PartialEq, Debug)]
pub struct ConnectionStats {
    /// Open paths.
    pub paths: Vec<PathStats>,
    /// Frames by path and kind, the latest sixteen closed paths included.
    pub frames: Vec<FrameCounter>,
    /// The counters of datagrams (RFC 9221).
    pub datagrams: DatagramStats,
    /// Packets ignored.
    pub dropped: u64,
}

/// The connection's counters beside the paths' own.
#[derive(Debug, Default)]
pub(super) struct Counters {
    frames: Vec<FrameCounter>,
    /// Closed paths with counters, the oldest first.
    closed: VecDeque<PathId>,
    /// The counters used last: frames come in rows of one kind, or of acknowledgements and data by turns.
    latest: [u32; 2],
    /// Packets ignored.
    pub dropped: u64,
}

impl Counters {
    /// The counters of frames, by path and kind.
    pub(super) fn frames(&self) -> &[FrameCounter] {
        &self.frames
    }

    /// A frame was written.
    pub(super) fn count_sent(&mut self, path: PathId, kind: &'static str, bytes: usize) {
        let counter = self.counter(path, kind);
        counter.sent += 1;
        counter.sent_bytes += bytes as u64;
    }

    /// A frame arrived.
    pub(super) fn count_received(&mut self, path: PathId, kind: &'static str) {
        self.counter(path, kind).received += 1;
    }

    /// Path `id` is over. A peer that opens and abandons paths for ever leaves no more than the latest.
    pub(super) fn close_path(&mut self, id: PathId) {
        self.closed.push_back(id);
        if self.closed.len() > MOST_CLOSED
            && let Some(oldest) = self.closed.pop_front()
        {
            self.frames.retain(|counter| counter.path != oldest);
            self.latest = [0; 2];
        }
    }

    #[inline]
    fn counter(&mut self, path: PathId, kind: &'static str) -> &mut FrameCounter {
        // The same name is nearly always at the same address, too.
        let is_it = |counter: &FrameCounter| counter.path == path && std::ptr::eq(counter.kind, kind);
        let [last, before] = self.latest;
        if !self.frames.get(last as usize).is_some_and(is_it) {
            let is_before = self.frames.get(before as usize).is_some_and(is_it);
            let found = if is_before { before } else { self.position(path, kind) as u32 };
            self.latest = [found, last];
        }
        &mut self.frames[self.latest[0] as usize]
    }

    fn position(&mut self, path: PathId, kind: &'static str) -> usize {
        // Names are compared by address first: that is quicker, and one kind has nearly always one.
        let is_same = |counter: &FrameCounter| counter.path == path && std::ptr::eq(counter.kind, kind);
        let is_it = |counter: &FrameCounter| counter.path == path && counter.kind == kind;
        let found = self.frames.iter().position(is_same).or_else(|| self.frames.iter().position(is_it));
        found.unwrap_or_else(|| {
            // A connection meets a handful of kinds, most of them in its first moments.
            self.frames.reserve_exact(1);
            self.frames.push(FrameCounter { path, kind, sent: 0, sent_bytes: 0, received: 0 });
            self.frames.len() - 1
        })
    }
}

/// A connection's knowledge of a channel that one of its paths uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelEstimate {
    /// The one-way delay, once it was measured: half of the shortest round trip there and back on the same path, or what
    /// follows from those over several return paths, which is right but for an offset.
    pub delay: Option<Duration>,
    /// Bytes of the path that are believed to be queued.
    pub backlog: usize,
    /// The time at which the peer last acknowledged something on the path.
    pub heard_at: Instant,
    /// The silence of the path, if the peer answers on another one: then the channel is to blame, not the peer.
    pub silence: Option<Silence>,
}

/// A path that does not answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    /// The time at which it counted as silent.
    pub since: Instant,
    /// The time at which it was last asked.
    pub asked_at: Instant,
}

impl Connection {
    /// A snapshot of all counters and estimates.
    pub fn stats(&self) -> ConnectionStats {
        let paths = self.paths.open().map(|path| path_stats_of(&self.paths, path)).collect();
        ConnectionStats {
            paths,
            frames: self.observer.frames().to_vec(),
            datagrams: self.datagrams.stats(),
            dropped: self.observer.dropped(),
        }
    }

    /// A snapshot of path `id`, if it is open.
    pub fn path_stats(&self, id: PathId) -> Option<PathStats> {
        self.paths.get(id).map(|path| path_stats_of(&self.paths, path))
    }

    /// Returns the knowledge of their channel that the paths from `local` have.
    pub(crate) fn paths_from(
        &self,
        local: SocketAddr,
        now: Instant,
    ) -> impl Iterator<Item = ChannelEstimate> + '_ {
        let from = self.paths.open().filter(move |path| path.route.tuple.local == local);
        from.map(move |path| ChannelEstimate {
            delay: delay_of(&self.paths, path),
            backlog: path.own_backlog(now),
            heard_at: path.liveness.acknowledged_at(),
            silence: silence_of(&self.paths, path),
        })
    }
}

fn silence_of(paths: &Paths, path: &Path) -> Option<Silence> {
    let since = path.liveness.silent_since().filter(|_| !paths.are_silent_everywhere())?;
    Some(Silence { since, asked_at: path.liveness.asked_at() })
}

fn delay_of(paths: &Paths, path: &Path) -> Option<Duration> {
    let there_and_back = path.rtts.min_for(path.id).map(|rtt| rtt / 2);
    there_and_back.or_else(|| path.rtts.is_sampled().then(|| paths.delay(path.id)))
}

fn path_stats_of(paths: &Paths, path: &Path) -> PathStats {
    let rtt = path.rtt();
    PathStats {
        id: path.id,
        tuple: path.route.tuple,
        state: path.scheduling_state(),
        rtt: rtt.smoothed(),
        min_rtt: rtt.min().unwrap_or_default(),
        delay: path.hints.delay.unwrap_or_else(|| paths.delay(path.id)),
        window: path.route.window(),
        in_flight: path.sent.in_flight(),
        rate: path.rate(),
        datagram_size: path.route.datagram_size,
        controller: path.route.controller.name(),
        counters: *path.counters(),
    }
}
