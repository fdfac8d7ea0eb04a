//! RTTmin per return path, and the standing queueing delay.

use crate::PathId;
use crate::congestion::Sample;
use crate::congestion::queueing::Reading;
use crate::time::Instant;
use smallvec::SmallVec;
use std::time::Duration;

/// A minimum is forgotten after one to two of these: ten seconds at most, as in §2 of the paper.
const EPOCH: Duration = Duration::from_secs(5);
/// Samples of an epoch at least: a return path that is rarely used would otherwise take the queue of the moment for its
/// base.
const LEAST_SAMPLES: u32 = 50;
/// Return paths remembered; the one without samples for the longest time gives way.
const MOST_RETURN_PATHS: usize = 16;

/// The smallest round-trip time of the last seconds, by return path.
#[derive(Clone, Debug, Default)]
pub(in crate::congestion) struct Bases {
    paths: SmallVec<[Base; 2]>,
}

#[derive(Clone, Copy, Debug)]
struct Base {
    over: PathId,
    current: Duration,
    previous: Duration,
    started: Instant,
    samples: u32,
    sampled_at: Instant,
}

impl Bases {
    /// The parts of `sample`'s round-trip time, if it has one.
    pub(in crate::congestion) fn read(&mut self, sample: &Sample) -> Option<Reading> {
        let (rtt, now, over) = (sample.rtt?, sample.now, sample.acknowledged_over);
        let index = self.paths.iter().position(|path| path.over == over);
        let index = index.unwrap_or_else(|| {
            if self.paths.len() >= MOST_RETURN_PATHS {
                let oldest = self.paths.iter().enumerate().min_by_key(|(_, path)| path.sampled_at);
                let oldest = oldest.map_or(0, |(index, _)| index);
                self.paths.swap_remove(oldest);
            }
            // What was learnt before this controller began counts, too.
            let first = sample.min_rtt.min(rtt);
            let (current, previous) = (first, first);
            self.paths.push(Base { over, current, previous, started: now, samples: 0, sampled_at: now });
            self.paths.len() - 1
        });
        let path = &mut self.paths[index];
        if now.since(path.started) >= EPOCH && path.samples >= LEAST_SAMPLES {
            path.previous = std::mem::replace(&mut path.current, rtt);
            (path.started, path.samples) = (now, 0);
        }
        path.current = path.current.min(rtt);
        path.samples = path.samples.saturating_add(1);
        path.sampled_at = path.sampled_at.max(now);
        let base = path.current.min(path.previous);
        Some(Reading { base, queueing: rtt.saturating_sub(base) })
    }
}
