//! Relief of narrow paths that a peer fills because it cannot be told that they are narrow.
//!
//! A peer that takes part in no exchange of hints (docs/spec/path-hints.md) often places data by the smallest round trip, and
//! its congestion controller finds the rate of a narrow, quick path by filling the queue there. What arrives last, arrives late.
//! The receiver knows what its channel was promised to carry, and sees the queue: packets that follow each other as closely
//! as the channel can bring them waited for each other. Once they did for longer than the way over another path takes, the peer
//! is advised to spare the path (PATH_STATUS_BACKUP, RFC 10069 §3.3); this end goes on to use it. The advice is withdrawn when
//! the other paths bring no more than four times what the narrow one could: then the peer has little to send, or these are hardly wider.

use crate::Bandwidth;
use crate::PathId;
use crate::path::path::Path;
use crate::path::paths::Paths;
use crate::time::Instant;
use smallvec::SmallVec;
use std::time::Duration;

/// The queue that a path may have in any case.
const QUEUE: Duration = Duration::from_millis(10);
/// The least time for which a path is spared. It grows with the round trips of the others.
const INTERVAL: Duration = Duration::from_millis(100);
/// The longest queue that is waited for, where sparing a path turned out to be of no use.
const LONGEST_QUEUE: Duration = Duration::from_secs(1);
/// Gaps by which a packet that waited may follow the one before later than the channel needs: timers and radios are no clockwork.
const SLACK: Duration = Duration::from_millis(1);

/// A path is narrow beside others that are promised to bring so many times its rate, and that do.
const WIDER: u64 = 4;

/// The paths on which a rate is promised to what arrives, as far as packets arrived there.
#[derive(Debug, Default)]
pub(crate) struct Reliefs {
    narrow: SmallVec<[Narrow; 1]>,
}

/// A packet that arrived, and the paths that there are beside its own.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// The path that it came over.
    path: PathId,
    /// Its size in bytes.
    bytes: usize,
    /// The rate that this end's application promises to what arrives there.
    promised: Option<Bandwidth>,
    /// The other paths, if there is one that may be wider.
    others: Option<Others>,
}

/// The paths beside a narrow one.
#[derive(Clone, Copy, Debug)]
struct Others {
    /// The time by which the quickest of them takes longer, one way.
    later_by: Duration,
    /// The longest round trip.
    round_trip: Duration,
}

/// One path of a promised rate.
#[derive(Debug)]
struct Narrow {
    path: PathId,
    promised: Bandwidth,
    /// The last arrival, and since when packets follow each other closely.
    last: Instant,
    since: Instant,
    /// The queue that is waited for.
    patience: Duration,
    spared: Option<Spared>,
}

/// The advice to spare a path, and whether it is of use.
#[derive(Debug)]
struct Spared {
    /// The time at which that is looked at.
    until: Instant,
    interval: Duration,
    /// Bytes that came over other paths since it was last looked at.
    elsewhere: u64,
    /// True once others brought much more than this path could have.
    was_useful: bool,
}

impl Reliefs {
    /// A packet arrived. Returns true if its path is to be spared from now on.
    fn on_arrival(&mut self, arrival: Arrival, now: Instant) -> bool {
        let Arrival { path, bytes, promised, others } = arrival;
        for narrow in &mut self.narrow {
            if let Some(spared) = narrow.spared.as_mut().filter(|_| narrow.path != path) {
                spared.elsewhere = spared.elsewhere.saturating_add(bytes as u64);
            }
        }
        let Some(promised) = promised else { return false };
        let known = self.narrow.iter_mut().find(|narrow| narrow.path == path);
        match known {
            Some(narrow) => narrow.on_arrival(promised, bytes, others, now),
            None => {
                self.narrow.push(Narrow::new(path, promised, bytes, now));
                false
            }
        }
    }

    /// Returns the earliest time at which it is looked at whether a path is still to be spared.
    fn deadline(&self) -> Option<Instant> {
        self.narrow.iter().filter_map(|narrow| narrow.spared.as_ref()).map(|spared| spared.until).min()
    }

    /// Looks at what is due, and returns the paths that need not be spared any more.
    fn review(&mut self, now: Instant) -> SmallVec<[PathId; 1]> {
        self.narrow.iter_mut().filter_map(|narrow| narrow.review(now).then_some(narrow.path)).collect()
    }

    /// Path `path` is over.
    pub(crate) fn forget(&mut self, path: PathId) {
        self.narrow.retain(|narrow| narrow.path != path);
    }
}

impl Narrow {
    fn new(path: PathId, promised: Bandwidth, bytes: usize, now: Instant) -> Self {
        let since = now - promised.transmission_time(bytes);
        Self { path, promised, last: now, since, patience: QUEUE, spared: None }
    }

    /// Returns true if the path is to be spared from now on.
    fn on_arrival(
        &mut self,
        promised: Bandwidth,
        bytes: usize,
        others: Option<Others>,
        now: Instant,
    ) -> bool {
        self.promised = promised;
        let time = promised.transmission_time(bytes);
        // Half as long again: the promise is what the channel carries at least on average.
        if now.since(self.last) > time.saturating_mul(3) / 2 + SLACK {
            self.since = now - time;
        }
        self.last = now;
        let Some(others) = others.filter(|_| self.spared.is_none()) else { return false };
        if now.since(self.since) < self.patience.max(others.later_by) {
            return false;
        }
        let interval = INTERVAL.max(others.round_trip.saturating_mul(2));
        let until = now + interval;
        self.spared = Some(Spared { until, interval, elsewhere: 0, was_useful: false });
        true
    }

    /// Returns true if the path need not be spared any more.
    fn review(&mut self, now: Instant) -> bool {
        let Some(spared) = self.spared.as_mut().filter(|spared| spared.until <= now) else { return false };
        if spared.elsewhere > self.promised.bytes_in(spared.interval).saturating_mul(WIDER) {
            (spared.was_useful, spared.elsewhere, spared.until) = (true, 0, now + spared.interval);
            return false;
        }
        // Either the peer has little more, or the other paths are hardly wider: then this one is worth its queue.
        self.patience =
            if spared.was_useful { QUEUE } else { self.patience.saturating_mul(2).min(LONGEST_QUEUE) };
        self.spared = None;
        self.since = now;
        true
    }
}

impl Paths {
    /// The peer cannot be told that a path is narrow: it is seen whether it fills one.
    pub(crate) fn watch_narrow_paths(&mut self) {
        self.reliefs = Some(Box::default());
    }

    /// A packet of `bytes` arrived on path `id`: the peer may have to be advised to spare it.
    pub(crate) fn on_packet_received(&mut self, id: PathId, bytes: usize, now: Instant) {
        let Some(mut reliefs) = self.reliefs.take() else { return };
        let promised = self.get(id).and_then(|path| path.channel().own().rate_of_arrivals());
        let others = promised.and_then(|rate| self.others(id, rate));
        if reliefs.on_arrival(Arrival { path: id, bytes, promised, others }, now) {
            self.spare(id, true);
        }
        self.reliefs = Some(reliefs);
    }

    /// Returns the time at which [`Self::review_reliefs`] is due.
    pub(crate) fn relief_deadline(&self) -> Option<Instant> {
        self.reliefs.as_ref()?.deadline()
    }

    /// Looks at what is due, and tells the peer of paths that it need not spare any more.
    pub(crate) fn review_reliefs(&mut self, now: Instant) {
        let Some(reliefs) = self.reliefs.as_mut() else { return };
        for id in reliefs.review(now) {
            self.spare(id, false);
        }
    }

    fn spare(&mut self, id: PathId, is_spared: bool) {
        if let Some(path) = self.get_mut(id) {
            path.spare(is_spared);
            self.advise(id);
        }
    }

    /// The paths beside `id`, on which `rate` is promised, if one of them may be wider and answers.
    fn others(&self, id: PathId, rate: Bandwidth) -> Option<Others> {
        let least = rate.bits_per_second().saturating_mul(WIDER);
        let is_wider = |path: &&Path| {
            let promised = path.channel().own().rate_of_arrivals();
            let may_be_wider = promised.is_none_or(|other| other.bits_per_second() >= least);
            path.id != id && !path.liveness.is_silent() && may_be_wider
        };
        let own = self.delay(id);
        let later = self.open().filter(is_wider).map(|path| {
            let measured = path.rtts.fastest().map(|rtt| (self.delay(path.id), rtt.smoothed()));
            let promised = path.hints.delay.map(|delay| (delay, delay * 2));
            let known = measured.or(promised);
            known.map_or((Duration::ZERO, INTERVAL), |(delay, rtt)| (delay.saturating_sub(own), rtt))
        });
        later.fold(None, |others: Option<Others>, (later_by, round_trip)| {
            let before = others.unwrap_or(Others { later_by, round_trip });
            let (later_by, round_trip) = (before.later_by.min(later_by), before.round_trip.max(round_trip));
            Some(Others { later_by, round_trip })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: PathId = PathId(1);
    const WIDE: PathId = PathId::ZERO;
    const OTHERS: Others =
        Others { later_by: Duration::from_millis(20), round_trip: Duration::from_millis(40) };

    const START: Instant = Instant::from_nanos(1_000_000_000);

    fn at(micros: u64) -> Instant {
        START + Duration::from_micros(micros)
    }

    /// A datagram of 1,250 bytes on the narrow path, which takes 5 ms at 2 Mbit/s.
    fn arrives(reliefs: &mut Reliefs, micros: u64) -> bool {
        let promised = Some(Bandwidth::from_mbit(2));
        let arrival = Arrival { path: NARROW, bytes: 1_250, promised, others: Some(OTHERS) };
        reliefs.on_arrival(arrival, at(micros))
    }

    fn arrives_elsewhere(reliefs: &mut Reliefs, bytes: usize, micros: u64) {
        let arrival = Arrival { path: WIDE, bytes, promised: None, others: None };
        assert!(!reliefs.on_arrival(arrival, at(micros)));
    }

    /// A path that the peer was advised to spare at 20 ms.
    fn spared() -> Reliefs {
        let mut reliefs = Reliefs::default();
        assert_eq!(
            (0..4).map(|n| arrives(&mut reliefs, n * 5_000)).collect::<Vec<_>>(),
            [false, false, false, true]
        );
        reliefs
    }

    #[test]
    fn packets_that_waited_for_longer_than_another_path_takes_are_a_reason_to_spare_their_path() {
        let mut reliefs = spared();
        assert!(!arrives(&mut reliefs, 20_000), "it is advised once");
        assert_eq!(reliefs.deadline(), Some(at(115_000)));
    }

    #[test]
    fn packets_with_gaps_between_them_are_none() {
        let mut reliefs = Reliefs::default();
        assert!((0..100).all(|n| !arrives(&mut reliefs, n * 9_000)));
        // Three at a time are 15 ms of queue.
        let bursts = (1..100).flat_map(|n| (0..3).map(move |k| n * 1_000_000 + k * 5_000));
        assert!(bursts.into_iter().all(|micros| !arrives(&mut reliefs, micros)));
    }

    #[test]
    fn packets_follow_each_other_closely_up_to_half_as_long_again_and_a_millisecond() {
        // 7.5 ms and 1 ms.
        for (gap, is_spared) in [(8_500, true), (8_501, false)] {
            let mut reliefs = Reliefs::default();
            assert_eq!((0..10).any(|n| arrives(&mut reliefs, n * gap)), is_spared, "{gap} µs");
        }
    }

    #[test]
    fn a_path_is_spared_no_more_where_others_bring_just_four_times_what_it_could() {
        for (bytes, is_over) in [(100_000, true), (100_001, false)] {
            let mut reliefs = spared();
            arrives_elsewhere(&mut reliefs, bytes, 50_000);
            assert_eq!(!reliefs.review(at(115_000)).is_empty(), is_over, "{bytes} bytes");
        }
    }

    #[test]
    fn a_path_without_a_wider_one_beside_it_or_without_a_promise_is_not_spared() {
        let mut reliefs = Reliefs::default();
        let alone =
            Arrival { path: NARROW, bytes: 1_250, promised: Some(Bandwidth::from_mbit(2)), others: None };
        assert!((0..100).all(|n| !reliefs.on_arrival(alone, at(n * 5_000))));
        let unknown = Arrival { promised: None, others: Some(OTHERS), ..alone };
        let mut reliefs = Reliefs::default();
        assert!((0..100).all(|n| !reliefs.on_arrival(unknown, at(n * 5_000))));
        assert_eq!(reliefs.deadline(), None);
    }

    #[test]
    fn a_path_is_spared_for_as_long_as_others_bring_four_times_what_it_could() {
        let mut reliefs = spared();
        // 25 kB are what it brings in 100 ms.
        arrives_elsewhere(&mut reliefs, 101_000, 50_000);
        assert!(reliefs.review(at(115_000)).is_empty());
        assert_eq!(reliefs.deadline(), Some(at(215_000)));
        arrives_elsewhere(&mut reliefs, 99_000, 150_000);
        assert!(reliefs.review(at(214_999)).is_empty());
        assert_eq!(reliefs.review(at(215_000)).as_slice(), [NARROW]);
        assert_eq!(reliefs.deadline(), None);
    }

    #[test]
    fn a_path_that_was_spared_in_vain_has_a_longer_queue_the_next_time() {
        let mut reliefs = spared();
        let mut queues = Vec::new();
        for _ in 0..9 {
            let start = reliefs.deadline().map_or(0, |at| at.since(START).as_micros() as u64);
            assert_eq!(reliefs.review(at(start)).len(), 1);
            let spared = (0..).find(|n| arrives(&mut reliefs, start + 5_000 * (n + 1)));
            queues.push(5 * (spared.unwrap_or_default() + 1));
        }
        assert_eq!(queues, [20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000]);
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let mut reliefs = spared();
        reliefs.forget(NARROW);
        assert_eq!(reliefs.deadline(), None);
        assert!(reliefs.narrow.is_empty());
    }
}
