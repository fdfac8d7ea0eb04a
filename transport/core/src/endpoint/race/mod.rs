//! The timing of one connection that is attempted over several candidate paths, after Happy Eyeballs (RFC 8305 §5).
//!
//! The first attempt begins at once, each further one when the latest has made no progress for its connection attempt
//! delay, or has failed. An attempt that stands still afterwards is begun again, at a bounded pace, until the time limit.
//! The first to complete its handshake wins; until the server is known to have completed it too, the race goes on.

mod attempts;
mod contest;
#[cfg(test)]
mod tests;

pub use contest::{CandidatePath, Dial, RaceOptions};
pub(super) use contest::{Contest, Races};

use crate::time::Instant;
use std::time::Duration;

/// The connection attempt delay when nothing is known of a path (RFC 8305 §8: recommended 250 milliseconds).
pub const CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The shortest delay that is derived from what is known of a path (RFC 8305 §8: recommended 100 milliseconds).
pub const MINIMUM_CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(100);
/// The longest (RFC 8305 §8: recommended 2 seconds).
pub const MAXIMUM_CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_secs(2);
/// No attempt begins sooner after another, whatever an application asks for.
///
/// RFC 8305 §5: "a subsequent connection MUST NOT be started within 10 milliseconds of the previous attempt".
pub const LEAST_CONNECTION_ATTEMPT_DELAY: Duration = Duration::from_millis(10);
/// The pace of repetitions doubles up to this period, at which every candidate is tried for as long as the race lasts: a
/// flight of the client a second each.
const SLOWEST_PACE: Duration = Duration::from_secs(1);

/// The delay for a path that answers after `expected`: the time of the first retransmission, which RFC 8305 §5 takes for a
/// measure. With a single sample RFC 9002 §6.2.1 has that at three round trips.
pub(super) fn attempt_delay(expected: Option<Duration>) -> Duration {
    expected.map_or(CONNECTION_ATTEMPT_DELAY, |expected| {
        expected.saturating_mul(3).clamp(MINIMUM_CONNECTION_ATTEMPT_DELAY, MAXIMUM_CONNECTION_ATTEMPT_DELAY)
    })
}

/// Something to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    /// Begin the attempt over this candidate.
    Begin(usize),
    /// The attempt over this candidate stands still: try again there.
    Repeat(usize),
    /// The time is over.
    Stop,
}

/// The reason for which an attempt is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// The server gave an answer that another attempt would get again.
    Final,
    /// Nothing is known: another attempt may do.
    Passing,
}

/// The progress of a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attempt {
    /// Not begun, or over and to be begun when it is due.
    Waiting,
    /// Under way, or complete.
    Running,
    /// Failed for good.
    Failed,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    attempt: Attempt,
    /// The time at which it is looked at again.
    check_at: Option<Instant>,
    /// The time for which it may stand still.
    pace: Duration,
}

const UNTRIED: Entry = Entry { attempt: Attempt::Waiting, check_at: None, pace: CONNECTION_ATTEMPT_DELAY };

/// One connection over several candidate paths, numbered in the order of preference.
#[derive(Debug)]
pub(super) struct ConnectionRace {
    entries: Vec<Entry>,
    /// The candidate whose attempt began last, and when.
    latest: (usize, Instant),
    /// The candidate whose handshake is complete here.
    winner: Option<usize>,
    until: Instant,
}

impl ConnectionRace {
    /// A race over so many candidates that gives up at `until`, none of them begun.
    pub(super) fn new(candidates: usize, until: Instant) -> Self {
        Self { entries: vec![UNTRIED; candidates], latest: (0, Instant::ZERO), winner: None, until }
    }

    /// The candidate whose handshake is complete here, and maybe not at the server.
    pub(super) fn winner(&self) -> Option<usize> {
        self.winner
    }

    /// Returns the time at which everything has to be over.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Returns true if no candidate is left that may still connect.
    pub(super) fn is_lost(&self) -> bool {
        self.entries.iter().all(|entry| entry.attempt == Attempt::Failed)
    }

    /// The attempt over candidate `index` began; others wait for `delay`.
    pub(super) fn on_begun(&mut self, index: usize, delay: Duration, now: Instant) {
        self.latest = (index, now);
        self.run(index, delay.max(LEAST_CONNECTION_ATTEMPT_DELAY), now);
    }

    /// The handshake over candidate `index` is complete here, and the other attempts are over. The server should say so,
    /// too, within `delay`.
    pub(super) fn on_completed(&mut self, index: usize, delay: Duration, now: Instant) {
        self.winner = Some(index);
        self.latest = (index, now);
        for entry in self.entries.iter_mut().filter(|entry| entry.attempt == Attempt::Running) {
            *entry = UNTRIED;
        }
        self.run(index, delay, now);
    }

    /// The attempt over candidate `index` is over.
    pub(super) fn on_failed(&mut self, index: usize, failure: Failure, now: Instant) {
        let next = self.latest.1 + LEAST_CONNECTION_ATTEMPT_DELAY;
        let entry = self.entries.get_mut(index).expect("an attempt is one over a candidate");
        let is_final = failure == Failure::Final || now >= self.until;
        entry.attempt = if is_final { Attempt::Failed } else { Attempt::Waiting };
        entry.check_at = (!is_final).then(|| now + entry.pace);
        entry.pace = slower(entry.pace);
        // RFC 8305 §5: the next attempt need not wait for one that failed.
        let mut others = self.entries.iter_mut();
        if let Some(next_one) = others.find(|one| one.attempt == Attempt::Waiting && one.check_at.is_none()) {
            next_one.check_at = Some(next.max(now));
        }
    }

    /// Returns the time at which something is due.
    pub(super) fn deadline(&self) -> Instant {
        self.entries.iter().filter_map(|entry| entry.check_at).fold(self.until, Instant::min)
    }

    /// Takes the next thing that is due at `now`. `progress` tells when the attempt over a candidate last heard of the
    /// server, so that it got further.
    pub(super) fn next(&mut self, now: Instant, progress: impl Fn(usize) -> Instant) -> Option<Action> {
        if now >= self.until {
            return Some(Action::Stop);
        }
        while let Some(index) = self.due(now) {
            let waiting = self.first_waiting();
            let entry = self.entries.get_mut(index)?;
            if entry.attempt != Attempt::Running {
                entry.check_at = None;
                return Some(Action::Begin(index));
            }
            let heard = progress(index);
            if heard + entry.pace > now {
                entry.check_at = Some(heard + entry.pace);
                continue;
            }
            entry.pace = slower(entry.pace);
            entry.check_at = Some(now + entry.pace);
            return Some(match waiting.filter(|_| index == self.latest.0) {
                Some(next) => Action::Begin(next),
                None => Action::Repeat(index),
            });
        }
        None
    }

    fn due(&self, now: Instant) -> Option<usize> {
        self.entries.iter().position(|entry| entry.check_at.is_some_and(|at| at <= now))
    }

    /// The preferred candidate among those that were not tried.
    fn first_waiting(&self) -> Option<usize> {
        self.entries.iter().position(|entry| entry.attempt == Attempt::Waiting && entry.check_at.is_none())
    }

    fn run(&mut self, index: usize, pace: Duration, now: Instant) {
        if let Some(entry) = self.entries.get_mut(index) {
            *entry = Entry { attempt: Attempt::Running, check_at: Some(now + pace), pace };
        }
    }
}

/// The next period after `pace`.
fn slower(pace: Duration) -> Duration {
    (pace * 2).min(SLOWEST_PACE).max(pace)
}
