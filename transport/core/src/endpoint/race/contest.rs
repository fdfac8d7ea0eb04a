//! Races of an endpoint, and which connection belongs to which.

use super::{Action, ConnectionRace, Failure};
use crate::congestion::Congestion;
use crate::connection::{Connection, Dscp, Event, FourTuple, Replay};
use crate::endpoint::{ClientConfig, ConnectionHandle, HandleMap, NetworkPath};
use crate::error::ConnectionError;
use crate::hashing::{KeyedMap, shrink};
use crate::time::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Races that nobody won, of which the failures are remembered.
const MOST_LOST: usize = 16;

/// A path on which a connection may begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CandidatePath {
    /// Its addresses, and what is known of its channel.
    pub way: NetworkPath,
    /// Its congestion control, if not that of the configuration.
    pub congestion: Option<Congestion>,
    /// The Differentiated Services codepoint of what is sent on it.
    pub dscp: Dscp,
}

impl CandidatePath {
    /// The path over `way`, with the default codepoint and the controller of the configuration.
    pub fn new(way: NetworkPath) -> Self {
        Self { way, congestion: None, dscp: Dscp::DEFAULT }
    }
}

/// The race of connection attempts (RFC 8305).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RaceOptions {
    delay: Option<Duration>,
    replay: Replay,
}

impl RaceOptions {
    /// With the connection attempt delay `delay`, of which 10 milliseconds are the least. Default: three times the round trip
    /// that is known of a path, between 100 milliseconds and 2 seconds, or 250 milliseconds (RFC 8305 §5, §8).
    pub fn with_delay(self, delay: Duration) -> Self {
        Self { delay: Some(delay), ..self }
    }

    /// With `replay`: tells whether data may be sent again over another path that the server may have processed already.
    /// Default: it may not.
    pub fn with_replay(self, replay: Replay) -> Self {
        Self { replay, ..self }
    }

    /// The connection attempt delay that the application asks for.
    pub(super) fn delay(&self) -> Option<Duration> {
        self.delay
    }

    /// Tells whether data may be sent twice.
    pub(super) fn replay(&self) -> Replay {
        self.replay
    }
}

/// A connection to start over the first of several paths that answers.
#[derive(Clone, Copy, Debug)]
pub struct Dial<'a> {
    /// The name that the server's certificate must be for: a host name or an IP address.
    pub server_name: &'a str,
    /// The paths, the preferred first.
    pub candidates: &'a [CandidatePath],
    /// The options of the race.
    pub options: RaceOptions,
}

/// The connection under the handle that the application knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::endpoint) enum Lead {
    /// It is under way, or complete.
    Alive,
    /// It ended so while others were under way. The application was not told.
    Failed(ConnectionError),
    /// It ended so and has nothing to do any more.
    Gone(ConnectionError),
    /// The race is over: the connection is on its own.
    Released,
}

/// A candidate of a race.
#[derive(Debug)]
pub(super) struct Entrant {
    pub(super) path: CandidatePath,
    /// The attempt over it that is under way.
    pub(super) attempt: Option<ConnectionHandle>,
}

impl Entrant {
    /// `attempt` is under way over it. Returns the one that was.
    pub(super) fn begin(&mut self, attempt: ConnectionHandle) -> Option<ConnectionHandle> {
        self.attempt.replace(attempt)
    }

    /// The attempt over it is over.
    pub(super) fn end(&mut self) {
        self.attempt = None;
    }
}

/// One race of an endpoint.
#[derive(Debug)]
pub(in crate::endpoint) struct Contest {
    /// The handle that the application knows.
    pub(super) handle: ConnectionHandle,
    pub(super) race: ConnectionRace,
    pub(super) config: ClientConfig,
    pub(super) server_name: Box<str>,
    /// One for each that `race` knows by its index.
    candidates: Vec<Entrant>,
    pub(super) options: RaceOptions,
    pub(super) lead: Lead,
    /// The reasons for which attempts failed, by the addresses of each; the latest of those over the same.
    pub(super) failures: Vec<(FourTuple, ConnectionError)>,
}

impl Contest {
    /// The race that `dial` asks for, with `config` and until `until`, in which the connection `handle` leads.
    pub(super) fn new(
        handle: ConnectionHandle,
        config: &ClientConfig,
        dial: Dial<'_>,
        until: Instant,
    ) -> Self {
        let candidates = dial.candidates.iter().map(|path| Entrant { path: path.clone(), attempt: None });
        let mut contest = Self {
            handle,
            race: ConnectionRace::new(dial.candidates.len(), until),
            config: config.clone(),
            server_name: dial.server_name.into(),
            candidates: candidates.collect(),
            options: dial.options,
            lead: Lead::Alive,
            failures: Vec::new(),
        };
        // RFC 9000 §8.1.3: a token is for one connection; those of the endpoint are taken one by one.
        contest.config.token = None;
        contest
    }

    /// The candidate that the race knows by `index`.
    pub(super) fn candidate(&mut self, index: usize) -> &mut Entrant {
        self.candidates.get_mut(index).expect("the race is over these candidates")
    }

    /// The index of the candidate that `handle` attempts.
    pub(super) fn index_of(&self, handle: ConnectionHandle) -> Option<usize> {
        self.candidates.iter().position(|candidate| candidate.attempt == Some(handle))
    }

    /// The index of the candidate over `tuple`.
    pub(super) fn index_over(&self, tuple: FourTuple) -> Option<usize> {
        self.candidates.iter().position(|candidate| candidate.path.way.tuple == tuple)
    }

    /// The attempt over candidate `index` began; others wait for `delay`.
    pub(super) fn on_begun(
        &mut self,
        index: usize,
        attempt: ConnectionHandle,
        delay: Duration,
        now: Instant,
    ) {
        self.candidate(index).begin(attempt);
        self.race.on_begun(index, delay, now);
    }

    /// The attempt over candidate `index` is over, because of `error`.
    pub(super) fn on_closed(&mut self, index: usize, error: &ConnectionError, now: Instant) {
        self.race.on_failed(index, failure(error), now);
        let candidate = self.candidate(index);
        candidate.end();
        let tuple = candidate.path.way.tuple;
        self.failures.retain(|(failed, _)| *failed != tuple);
        self.failures.push((tuple, error.clone()));
    }

    /// The connection that attempted candidate `index` has got the handle of the race, and the other gives its own away.
    pub(super) fn on_taken_over(&mut self, index: usize) {
        let handle = self.handle;
        let own = self.candidates.iter_mut().filter(|candidate| candidate.attempt == Some(handle));
        own.for_each(Entrant::end);
        self.candidate(index).begin(handle);
        self.lead = Lead::Alive;
    }

    /// Takes the attempts away, but that of the connection that the application knows.
    pub(super) fn take_others(&mut self) -> Vec<ConnectionHandle> {
        let handle = self.handle;
        let others = self.candidates.iter_mut().filter(|candidate| candidate.attempt != Some(handle));
        others.filter_map(|candidate| candidate.attempt.take()).collect()
    }

    /// Takes the next thing that is due at `now`, in which `connections` are the endpoint's.
    pub(super) fn next(&mut self, connections: &HandleMap<Box<Connection>>, now: Instant) -> Option<Action> {
        let winner = self.race.winner();
        let progress = |index: usize| {
            let attempt = self.candidates.get(index).and_then(|candidate| candidate.attempt);
            let connection = attempt.and_then(|attempt| connections.get(&attempt)).map(Box::as_ref);
            // A server that repeats itself has not got the last flight of the winner. One that sends data works on it.
            let counts =
                |connection: &&Connection| winner != Some(index) || connection.progress().has_arrivals();
            connection
                .filter(counts)
                .map_or(Instant::ZERO, |connection| connection.progress().progressed_at())
        };
        self.race.next(now, progress)
    }
}

/// Tells whether another attempt over the same path may succeed where one ended with `error`.
fn failure(error: &ConnectionError) -> Failure {
    match error {
        ConnectionError::IdleTimeout
        | ConnectionError::HandshakeTimeout
        | ConnectionError::StatelessReset
        | ConnectionError::LocallyClosed { .. } => Failure::Passing,
        ConnectionError::Transport(_)
        | ConnectionError::PeerTransport(_)
        | ConnectionError::PeerApplication { .. }
        | ConnectionError::VersionMismatch => Failure::Final,
    }
}

/// All races of an endpoint, by the handle that the application knows.
#[derive(Debug, Default)]
pub(in crate::endpoint) struct Races {
    contests: KeyedMap<ConnectionHandle, Contest>,
    /// The race of each connection that the application does not know.
    hidden: KeyedMap<ConnectionHandle, ConnectionHandle>,
    /// The earliest deadline.
    first: Option<Instant>,
    /// The events for the application about connections that are gone.
    pub(super) news: VecDeque<(ConnectionHandle, Event)>,
    /// The failures of races that nobody won, until the application has learned of the end.
    pub(super) lost: VecDeque<(ConnectionHandle, Vec<(FourTuple, ConnectionError)>)>,
}

impl Races {
    /// Returns true if no connection is or was an attempt of a race.
    #[inline]
    pub(in crate::endpoint) fn is_empty(&self) -> bool {
        self.contests.is_empty() && self.hidden.is_empty() && self.news.is_empty()
    }

    /// Returns the time at which something is due.
    pub(in crate::endpoint) fn deadline(&self) -> Option<Instant> {
        self.first
    }

    /// The race that the connection `handle`, which the application does not know, belongs or belonged to.
    pub(in crate::endpoint) fn race_of(&self, handle: ConnectionHandle) -> Option<ConnectionHandle> {
        self.hidden.get(&handle).copied()
    }

    /// Takes the race under `handle`, which [`Races::put_back`] takes again; `None` if it is no race, or over.
    pub(super) fn take(&mut self, handle: ConnectionHandle) -> Option<Contest> {
        self.contests.remove(&handle)
    }

    /// Takes a race that something is due of.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Contest> {
        self.first.filter(|first| *first <= now)?;
        let due = self.contests.iter().filter(|(_, contest)| contest.race.deadline() <= now);
        let handle = due.map(|(handle, _)| *handle).min()?;
        self.take(handle)
    }

    /// Keeps `contest`, unless it is over.
    pub(super) fn put_back(&mut self, contest: Contest) {
        if contest.lead == Lead::Released {
            shrink(&mut self.contests);
        } else {
            self.contests.insert(contest.handle, contest);
        }
        self.first = self.contests.values().map(|contest| contest.race.deadline()).min();
    }

    /// Nobody won the race under `race`.
    pub(super) fn on_lost(&mut self, race: ConnectionHandle, failures: Vec<(FourTuple, ConnectionError)>) {
        // An application that does not ask leaves them behind.
        self.lost.truncate(MOST_LOST - 1);
        self.lost.push_front((race, failures));
    }

    /// The connection `handle` belongs to the race `race`.
    pub(super) fn hide(&mut self, handle: ConnectionHandle, race: ConnectionHandle) {
        self.hidden.insert(handle, race);
    }

    /// The connection `handle` is gone.
    pub(super) fn forget(&mut self, handle: ConnectionHandle) {
        self.hidden.remove(&handle);
        shrink(&mut self.hidden);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failures_of_the_latest_races_that_nobody_won_are_remembered() {
        let mut races = Races::default();
        let handles: Vec<_> = (0..20).map(ConnectionHandle).collect();
        handles.iter().for_each(|handle| races.on_lost(*handle, Vec::new()));
        let known: Vec<_> = races.lost.iter().rev().map(|(handle, _)| *handle).collect();
        assert_eq!(known, handles[20 - MOST_LOST..]);
    }
}
