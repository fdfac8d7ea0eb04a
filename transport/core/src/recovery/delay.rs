//! Round-trip times by return path, and the one-way delays that follow from them (RFC 10069 §5.3, RFC 9002 §5).
//!
//! A sample is labelled (sent on, acknowledged over): it is the sum of the two one-way delays. Kept apart, a change of
//! the acknowledgement path is neither read as congestion nor as a shorter path.

use crate::PathId;
use crate::recovery::rtt::{INITIAL_RTT, Rtt, adjust};
use crate::time::Instant;
use smallvec::SmallVec;
use std::time::Duration;

/// Return paths remembered per path; the one without samples for the longest time gives way.
const MOST_RETURN_PATHS: usize = 16;

/// A pair with a sample this recent is in use, whatever its round-trip time.
const LATELY: Duration = Duration::from_secs(1);

/// A minimum for one-way delays is renewed after this time, so that it follows a channel that changes.
const EPOCH: Duration = Duration::from_secs(2);

/// The round-trip times of packets sent on one path, by the path that returned the acknowledgement.
#[derive(Clone, Debug, Default)]
pub struct PathRtts {
    pairs: SmallVec<[Pair; 1]>,
    /// The pair with the largest smoothed + 4 variance of those in use lately, by index.
    widest: u8,
    /// The pair with the smallest smoothed round-trip time of those in use lately, by index.
    fastest: u8,
    /// True if a smallest round trip changed, of which one-way delays are derived.
    is_news: bool,
}

#[derive(Clone, Debug)]
struct Pair {
    over: PathId,
    rtt: Rtt,
    sampled_at: Instant,
    recent: RecentMin,
}

impl PathRtts {
    /// Takes a sample of which `ack_delay` (limited, see [`ack_delay`](crate::recovery::rtt::ack_delay)) was the
    /// receiver's, acknowledged over the path `over`.
    pub fn sample(&mut self, over: PathId, rtt: Duration, ack_delay: Duration, now: Instant) {
        let pair = self.pair_mut(over, now);
        pair.rtt.update(rtt, ack_delay);
        pair.sampled_at = pair.sampled_at.max(now);
        let min = pair.rtt.min().unwrap_or(rtt);
        let before = pair.recent.get();
        pair.recent.offer(adjust(rtt, ack_delay, min), now);
        self.is_news |= pair.recent.get() != before;
        self.rank();
    }

    /// Returns true, once, if one-way delays may have changed by samples.
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }

    /// Returns true if there was a sample over any return path.
    pub fn is_sampled(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// The estimate that timers shall use: the largest smoothed + 4 variance among the pairs in use lately, so that
    /// acknowledgements may move between a fast and a slow return path. Without samples the initial values.
    #[inline]
    pub fn for_timers(&self) -> Rtt {
        self.pairs.get(usize::from(self.widest)).map_or_else(Rtt::default, |pair| pair.rtt)
    }

    /// The delay of the time threshold that is safe for every pair in use lately (RFC 9002 §6.1.2).
    #[inline]
    pub fn loss_delay(&self) -> Duration {
        if let [only] = self.pairs.as_slice() {
            return only.rtt.loss_delay();
        }
        self.lately()
            .map(|(_, pair)| pair.rtt.loss_delay())
            .max()
            .unwrap_or_else(|| Rtt::default().loss_delay())
    }

    /// The estimate of the pair with return path `over`.
    pub fn over(&self, over: PathId) -> Option<&Rtt> {
        self.pairs.iter().find(|pair| pair.over == over).map(|pair| &pair.rtt)
    }

    /// The smallest sample returned over `over`: never that of another return path.
    pub fn min_for(&self, over: PathId) -> Option<Duration> {
        self.over(over).and_then(Rtt::min)
    }

    /// The estimate of the return path in use lately that answers fastest, if there was a sample.
    #[inline]
    pub fn fastest(&self) -> Option<&Rtt> {
        self.pairs.get(usize::from(self.fastest)).map(|pair| &pair.rtt)
    }

    /// The return path in use lately with the smallest smoothed round-trip time, and its estimate.
    pub fn best(&self) -> Option<(PathId, Rtt)> {
        self.pairs.get(usize::from(self.fastest)).map(|pair| (pair.over, pair.rtt))
    }

    /// The largest of the smallest round-trip times over the return paths in use lately: what an empty path may take.
    #[inline]
    pub fn longest_base(&self) -> Option<Duration> {
        if let [only] = self.pairs.as_slice() {
            return only.rtt.min();
        }
        self.lately().filter_map(|(_, pair)| pair.rtt.min()).max()
    }

    /// The return path `over` is gone.
    pub fn forget(&mut self, over: PathId) {
        self.pairs.retain(|pair| pair.over != over);
        self.rank();
    }

    /// The path migrated: nothing that was measured holds (RFC 9000 §9.4).
    pub fn reset(&mut self) {
        self.pairs.clear();
    }

    /// Finds out which pairs in use lately have the largest and the smallest estimate, after one has changed.
    fn rank(&mut self) {
        (self.widest, self.fastest) = match self.pairs.as_slice() {
            [] | [_] => (0, 0),
            _ => {
                let widest = self.lately().max_by_key(|(_, pair)| pair.rtt.spread());
                let fastest = self.lately().min_by_key(|(_, pair)| pair.rtt.smoothed());
                (widest.map_or(0, |(index, _)| index), fastest.map_or(0, |(index, _)| index))
            }
        };
    }

    fn pair_mut(&mut self, over: PathId, now: Instant) -> &mut Pair {
        let index = self.pairs.iter().position(|pair| pair.over == over).unwrap_or_else(|| {
            if self.pairs.len() >= MOST_RETURN_PATHS {
                let oldest = self.pairs.iter().enumerate().min_by_key(|(_, pair)| pair.sampled_at);
                let oldest = oldest.map_or(0, |(index, _)| index);
                self.pairs.swap_remove(oldest);
            }
            let rtt = Rtt::default();
            self.pairs.push(Pair { over, rtt, sampled_at: now, recent: RecentMin::default() });
            self.pairs.len() - 1
        });
        &mut self.pairs[index]
    }

    /// Pairs whose last sample is not much older than the newest of all, with their indices.
    fn lately(&self) -> impl Iterator<Item = (u8, &Pair)> {
        let newest = self.pairs.iter().map(|pair| pair.sampled_at).max().unwrap_or(Instant::ZERO);
        (0..)
            .zip(&self.pairs)
            .filter(move |(_, pair)| newest.since(pair.sampled_at) <= LATELY.max(pair.rtt.spread() * 4))
    }

    fn recent_min(&self, over: PathId) -> Option<Duration> {
        self.pairs.iter().find(|pair| pair.over == over).and_then(|pair| pair.recent.get())
    }
}

/// The smallest value of the last one to two epochs.
#[derive(Clone, Copy, Debug, Default)]
struct RecentMin {
    current: Option<Duration>,
    previous: Option<Duration>,
    epoch_started: Instant,
}

impl RecentMin {
    fn offer(&mut self, value: Duration, now: Instant) {
        if now.since(self.epoch_started) >= EPOCH {
            self.previous = self.current.take();
            self.epoch_started = now;
        }
        self.current = Some(self.current.map_or(value, |current| current.min(value)));
    }

    fn get(&self) -> Option<Duration> {
        match (self.current, self.previous) {
            (Some(current), Some(previous)) => Some(current.min(previous)),
            (current, previous) => current.or(previous),
        }
    }
}

/// Estimates the one-way delay from here of each path, in the order of `paths`.
///
/// For any return path x, RTT(a→x) − RTT(b→x) is the difference of the delays of a and b, without synchronised
/// clocks. Paths connected by common return paths are placed relative to each other so; the fastest of them is given
/// half its own round trip. Differences are as right as the round-trip times are; the common offset is a guess. A
/// path without samples gets half the initial round-trip time. Queueing that lasts less than a second or two is not
/// part of the estimate.
pub fn one_way(paths: &[(PathId, &PathRtts)]) -> SmallVec<[(PathId, Duration); 4]> {
    let mut delays = SmallVec::new();
    if let [(id, rtts)] = *paths {
        delays.push((id, one_way_alone(id, rtts)));
        return delays;
    }
    let offsets = offsets(paths);
    for (index, &(id, _)) in paths.iter().enumerate() {
        let (group, offset) = offsets[index];
        let members = || offsets.iter().enumerate().filter(|(_, entry)| entry.0 == group);
        let fastest = members().min_by_key(|(_, entry)| entry.1).map_or(index, |(member, _)| member);
        let above = |offset: i128| {
            Duration::from_nanos(u64::try_from(offset - offsets[fastest].1).unwrap_or(u64::MAX))
        };
        // No path is slower one way than there and back, which bounds the guess for the fastest as well.
        let bounds = members()
            .filter_map(|(member, entry)| Some(shortest(paths[member].1)?.saturating_sub(above(entry.1))));
        let guess = half_round_trip(paths[fastest].0, paths[fastest].1);
        let anchor = bounds.min().map_or(guess, |bound| bound.min(guess));
        delays.push((id, anchor.saturating_add(above(offset))));
    }
    delays
}

/// Estimates the one-way delay of path `id` with nothing to compare with.
pub fn one_way_alone(id: PathId, rtts: &PathRtts) -> Duration {
    let guess = half_round_trip(id, rtts);
    shortest(rtts).map_or(guess, |bound| bound.min(guess))
}

/// For each path its group of paths that share return paths, and its delay relative to the group's first, in ns.
fn offsets(paths: &[(PathId, &PathRtts)]) -> SmallVec<[(usize, i128); 4]> {
    let mut placed: SmallVec<[Option<(usize, i128)>; 4]> = SmallVec::from_elem(None, paths.len());
    for root in 0..paths.len() {
        if placed[root].is_some() {
            continue;
        }
        placed[root] = Some((root, 0));
        let mut queue: SmallVec<[usize; 4]> = SmallVec::from_elem(root, 1);
        while let Some(from) = queue.pop() {
            let Some((group, base)) = placed[from] else { continue };
            for to in 0..paths.len() {
                if placed[to].is_none()
                    && let Some(difference) = difference(paths[to].1, paths[from].1)
                {
                    placed[to] = Some((group, base + difference));
                    queue.push(to);
                }
            }
        }
    }
    placed.iter().enumerate().map(|(index, entry)| entry.unwrap_or((index, 0))).collect()
}

/// The delay of `a` minus the delay of `b` in ns, by the return path with the smallest sum of round-trip times: there
/// queues and acknowledgement delays disturb the least.
fn difference(a: &PathRtts, b: &PathRtts) -> Option<i128> {
    let nanos = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
    let common = a.pairs.iter().filter_map(|pair| Some((pair.recent.get()?, b.recent_min(pair.over)?)));
    common.min_by_key(|(of_a, of_b)| *of_a + *of_b).map(|(of_a, of_b)| nanos(of_a) - nanos(of_b))
}

fn half_round_trip(id: PathId, rtts: &PathRtts) -> Duration {
    rtts.recent_min(id).or_else(|| shortest(rtts)).unwrap_or(INITIAL_RTT) / 2
}

fn shortest(rtts: &PathRtts) -> Option<Duration> {
    rtts.pairs.iter().filter_map(|pair| pair.recent.get()).min()
}

#[cfg(test)]
mod tests;
