//! The round-trip time of the model, kept per return path (draft, "BBR.min_rtt: Estimated Minimum Round-Trip Time").
//!
//! The draft knows one minimum. Here acknowledgements of one data path return over several, whose delays differ by more
//! than any queue: a single minimum would be that of the fastest return path for ten seconds after its last use, and too
//! little would be in flight for the others. Each return path has the filters of the draft. Three things follow:
//!
//! - what may be in flight is reckoned with the longest of the minima in use lately, so that no return path starves;
//! - what fills the pipe without a queue is reckoned with their mean, weighted by what each acknowledged lately, for the
//!   mean volume in flight is the rate times the mean time to the acknowledgement;
//! - the clock of ProbeRTT is one for all: it restarts when a minimum of a return path is undercut that was known when a
//!   queue was last empty. The first samples over another return path neither restart nor trigger it.

use super::Report;
use crate::PathId;
use crate::time::Instant;
use smallvec::SmallVec;
use std::time::Duration;

/// A minimum counts for this long (draft, BBR.MinRTTFilterLen).
const FILTER: Duration = Duration::from_secs(10);

/// The least time between two probes (draft, BBR.ProbeRTTInterval).
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// A return path with a sample this much older than the newest is no longer in use.
const LATELY: Duration = Duration::from_secs(2);

/// Return paths remembered; the one without samples for the longest time gives way.
const MOST_RETURN_PATHS: usize = 8;

/// Tells whether the queue should be emptied to measure the round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Probe {
    Due,
    NotDue,
}

/// The certainty of the minimum of a return path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Certainty {
    /// There was no empty queue since its first sample, as far as is known.
    Provisional,
    Settled,
}

#[derive(Clone, Copy, Debug)]
struct ReturnPath {
    over: PathId,
    min: Duration,
    min_at: Instant,
    /// The minimum that the clock of ProbeRTT watches (draft, BBR.probe_rtt_min_delay).
    watched: Duration,
    watched_at: Instant,
    sampled_at: Instant,
    /// The share of what was acknowledged lately.
    weight: f64,
    certainty: Certainty,
}

/// The minima of the return paths of one data path.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundTrips {
    paths: SmallVec<[ReturnPath; 3]>,
    /// The time at which a queue was last known empty (draft, BBR.probe_rtt_min_stamp).
    refreshed_at: Instant,
    /// The change of the mean because of changes of the mix, in nanoseconds.
    shift: f64,
}

impl RoundTrips {
    /// Takes an acknowledgement (draft, UpdateMinRTT).
    pub(super) fn on_acknowledged(&mut self, report: &Report) -> Probe {
        let now = report.now;
        let expired = !self.paths.is_empty() && now > self.refreshed_at + PROBE_INTERVAL;
        if let Some(rtt) = report.rtt {
            let index = self.position(report.over, rtt, now);
            let (before, certainty) = (self.weighted(), self.paths[index].certainty);
            if self.paths[index].sample(rtt, now) == Lower::ThanSettled || expired {
                self.refreshed_at = self.refreshed_at.max(now);
            }
            if expired {
                self.paths[index].certainty = certainty;
            }
            if certainty == Certainty::Provisional {
                // The queue was part of the minimum: the mix is another than it seemed.
                self.shift += self.weighted() - before;
            }
        }
        self.weigh(report);
        if expired { Probe::Due } else { Probe::NotDue }
    }

    /// The queue was empty from `since` to `now` (draft, CheckProbeRTTDone).
    pub(super) fn on_queue_empty(&mut self, since: Instant, now: Instant) {
        self.refreshed_at = now;
        for path in self.paths.iter_mut().filter(|path| path.sampled_at >= since) {
            path.watched_at = now;
            path.certainty = Certainty::Settled;
        }
    }

    /// The smallest round-trip time with return path `over`.
    pub(super) fn min_over(&self, over: PathId) -> Option<Duration> {
        self.paths.iter().find(|path| path.over == over).map(|path| path.min)
    }

    /// The longest of the minima of return paths in use lately: enough for each of them.
    pub(super) fn longest(&self) -> Option<Duration> {
        let newest = self.paths.iter().map(|path| path.sampled_at).max()?;
        let lately = self.paths.iter().filter(|path| newest.since(path.sampled_at) <= LATELY);
        lately.map(|path| path.min).max()
    }

    /// The mean of the minima, weighted by what each return path acknowledged lately.
    pub(super) fn mean(&self) -> Option<Duration> {
        let total: f64 = self.paths.iter().map(|path| path.weight).sum();
        if self.paths.is_empty() {
            return None;
        }
        if total <= f64::EPSILON {
            return self.longest();
        }
        Some(Duration::from_nanos((self.weighted() / total) as u64))
    }

    /// Returns the change of the mean so far because the mix of return paths changed, in nanoseconds.
    pub(super) fn shift(&self) -> i64 {
        self.shift as i64
    }

    fn weighted(&self) -> f64 {
        self.paths.iter().map(|path| path.weight * path.min.as_nanos() as f64).sum()
    }

    /// Moves the weights towards the return path of `report`: half of a window's worth of data moves them all the way.
    fn weigh(&mut self, report: &Report) {
        let Some(index) = self.paths.iter().position(|path| path.over == report.over) else { return };
        let sole = self.paths.len() == 1;
        let before = self.weighted();
        let delivery = &report.delivery;
        let share = 2.0 * delivery.newly_acknowledged as f64 / delivery.tx_in_flight.max(1) as f64;
        let share = if sole { 1.0 } else { share.min(1.0) };
        for path in &mut self.paths {
            path.weight *= 1.0 - share;
        }
        self.paths[index].weight += share;
        if !sole {
            self.shift += self.weighted() - before;
        }
    }

    fn position(&mut self, over: PathId, rtt: Duration, now: Instant) -> usize {
        if let Some(index) = self.paths.iter().position(|path| path.over == over) {
            return index;
        }
        if self.paths.len() >= MOST_RETURN_PATHS {
            let oldest = self.paths.iter().enumerate().min_by_key(|(_, path)| path.sampled_at);
            let oldest = oldest.map_or(0, |(index, _)| index);
            self.paths.remove(oldest);
        }
        let certainty = if self.paths.is_empty() {
            self.refreshed_at = now;
            Certainty::Settled
        } else {
            Certainty::Provisional
        };
        self.paths.push(ReturnPath {
            over,
            min: rtt,
            min_at: now,
            watched: rtt,
            watched_at: now,
            sampled_at: now,
            weight: 0.0,
            certainty,
        });
        self.paths.len() - 1
    }
}

/// The minimum that a sample undercuts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lower {
    ThanSettled,
    ThanNothing,
}

impl ReturnPath {
    /// Takes a sample into both filters of the draft.
    fn sample(&mut self, rtt: Duration, now: Instant) -> Lower {
        self.sampled_at = self.sampled_at.max(now);
        let mut lower = Lower::ThanNothing;
        if rtt < self.watched {
            (self.watched, self.watched_at) = (rtt, now);
            if self.certainty == Certainty::Settled {
                lower = Lower::ThanSettled;
            }
        } else if now > self.watched_at + PROBE_INTERVAL {
            (self.watched, self.watched_at) = (rtt, now);
            self.certainty = Certainty::Provisional;
        }
        if self.watched < self.min || now > self.min_at + FILTER {
            (self.min, self.min_at) = (self.watched, self.watched_at);
        }
        lower
    }
}

#[cfg(test)]
mod tests;
