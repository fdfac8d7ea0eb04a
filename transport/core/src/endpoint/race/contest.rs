//! Races of an endpoint, and which connection belongs to which.

use super::ConnectionRace;
use crate::congestion::Congestion;
use crate::connection::{Dscp, Event, FourTuple, Replay};
use crate::endpoint::{ClientConfig, ConnectionHandle, NetworkPath};
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
    /// The connection attempt delay, at least 10 milliseconds; `None` takes three times the round trip that is known of a
    /// path, between 100 milliseconds and 2 seconds, or 250 milliseconds (RFC 8305 §5, §8).
    pub delay: Option<Duration>,
    /// Tells whether data may be sent again over another path that the server may have processed already.
    pub replay: Replay,
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
}

/// One race of an endpoint.
#[derive(Debug)]
pub(in crate::endpoint) struct Contest {
    pub(super) race: ConnectionRace,
    pub(super) config: ClientConfig,
    pub(super) server_name: Box<str>,
    pub(super) candidates: Vec<CandidatePath>,
    /// The attempts under way, by candidate.
    pub(super) attempts: Vec<Option<ConnectionHandle>>,
    pub(super) options: RaceOptions,
    pub(super) lead: Lead,
    /// The reasons for which attempts failed, by the addresses of each; the latest of those over the same.
    pub(super) failures: Vec<(FourTuple, ConnectionError)>,
}

impl Contest {
    /// The attempt over candidate `index` failed.
    pub(super) fn on_failed(&mut self, index: usize, error: &ConnectionError) {
        let Some(tuple) = self.candidates.get(index).map(|candidate| candidate.way.tuple) else { return };
        self.failures.retain(|(failed, _)| *failed != tuple);
        self.failures.push((tuple, error.clone()));
    }

    /// The candidate that `handle` attempts.
    pub(super) fn candidate(&self, handle: ConnectionHandle) -> Option<usize> {
        self.attempts.iter().position(|attempt| *attempt == Some(handle))
    }

    /// Takes the attempts away, but that with `handle`.
    pub(super) fn take_others(&mut self, handle: ConnectionHandle) -> Vec<ConnectionHandle> {
        let others = self.attempts.iter_mut().filter(|attempt| **attempt != Some(handle));
        others.filter_map(Option::take).collect()
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

    /// The race under `handle`.
    pub(super) fn get_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Contest> {
        self.contests.get_mut(&handle)
    }

    /// A race that something is due of.
    pub(super) fn due(&self, now: Instant) -> Option<ConnectionHandle> {
        self.first.filter(|first| *first <= now)?;
        let due = self.contests.iter().filter(|(_, contest)| contest.race.deadline() <= now);
        due.map(|(handle, _)| *handle).min()
    }

    /// Keeps a race under `handle`.
    pub(super) fn insert(&mut self, handle: ConnectionHandle, contest: Contest) {
        self.contests.insert(handle, contest);
        self.follow();
    }

    /// Ends the race under `handle`.
    pub(super) fn remove(&mut self, handle: ConnectionHandle) -> Option<Contest> {
        let contest = self.contests.remove(&handle);
        shrink(&mut self.contests);
        self.follow();
        contest
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

    /// Finds the earliest deadline, after anything changed in a race.
    pub(super) fn follow(&mut self) {
        self.first = self.contests.values().map(|contest| contest.race.deadline()).min();
    }
}
