//! The attempts of a race as connections of an endpoint. The application knows one handle, under which the connection is
//! kept that won, or may win; it learns nothing of the others.

use super::contest::Lead;
use super::{Action, CandidatePath, ConnectionRace, Contest, Dial, Failure, RaceOptions, attempt_delay};
use crate::PathId;
use crate::connection::{Connection, Event, FourTuple, Resumption};
use crate::endpoint::{ClientConfig, ConnectError, ConnectionHandle, Endpoint, Output, Start};
use crate::error::ConnectionError;
use crate::time::Instant;
use hvq_scheduler::{Flights, Hints};
use std::net::SocketAddr;
use std::time::Duration;

impl Endpoint {
    /// Starts a connection to `server_name` over the first of `candidates` that answers (RFC 8305 §5): the attempt over the
    /// first begins at once, the others follow each other after a connection attempt delay in which nothing was heard of the
    /// server. An attempt that fails or stands still, also one whose handshake the server does not confirm, leaves the
    /// connection to the others; `handle` stays. Attempts end after the time that the configuration gives a handshake.
    ///
    /// The application is told of one connection, as with [`Endpoint::connect`]. If it was connected already when another
    /// attempt took over, it learns by [`PathEvent::Migrated`](crate::connection::PathEvent::Migrated) that path 0 is over
    /// another candidate. The candidates that did not win are for
    /// [`Connection::open_path`](crate::connection::Connection::open_path).
    ///
    /// # Errors
    /// There is no candidate, or the first attempt cannot be begun. The endpoint is as it was.
    pub fn connect_racing(
        &mut self,
        config: &ClientConfig,
        dial: Dial<'_>,
        now: Instant,
    ) -> Result<ConnectionHandle, ConnectError> {
        let Dial { server_name, candidates, options } = dial;
        let first = candidates.first().ok_or(ConnectError::NoCandidate)?;
        let until = now + config.transport.handshake_timeout;
        let mut contest = Contest {
            race: ConnectionRace::new(candidates.len(), until),
            config: config.clone(),
            server_name: server_name.into(),
            candidates: candidates.to_vec(),
            attempts: vec![None; candidates.len()],
            options,
            lead: Lead::Alive,
            failures: Vec::new(),
        };
        // RFC 9000 §8.1.3: a token is for one connection; those of this endpoint are taken one by one.
        contest.config.token = None;
        let delay = self.delay_of(first, options, now);
        let resumption = Resumption::Latest;
        let start = Start { config, tuple: first.way.tuple, server_name, resumption };
        let handle = self.start_connection(start, now)?;
        self.configure(handle, first);
        if let Some(attempt) = contest.attempts.first_mut() {
            *attempt = Some(handle);
        }
        contest.race.on_begun(0, delay, now);
        self.races.insert(handle, contest);
        Ok(handle)
    }

    /// Returns the time that the others wait for the attempt over `candidate`.
    fn delay_of(&self, candidate: &CandidatePath, options: RaceOptions, now: Instant) -> Duration {
        let known = || self.channels.view((0, &candidate.way), &self.connections, now);
        let expected = || {
            let view = known()?;
            let bytes = Flights::USUAL.sent + Flights::USUAL.received + view.backlog;
            let transmission = view.rate.map_or(Duration::ZERO, |rate| rate.transmission_time(bytes));
            Some(view.delay.saturating_mul(2).saturating_add(transmission))
        };
        options.delay.unwrap_or_else(|| attempt_delay(expected()))
    }

    /// Tells path 0 of a connection that was just begun what is known of it.
    fn configure(&mut self, handle: ConnectionHandle, candidate: &CandidatePath) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        let hints = candidate.way.hints;
        let told = [
            (hints != Hints::NONE).then(|| connection.set_hints(PathId::ZERO, hints)),
            candidate
                .congestion
                .clone()
                .map(|congestion| connection.set_congestion(PathId::ZERO, congestion)),
            Some(connection.set_dscp(PathId::ZERO, candidate.dscp)),
        ];
        debug_assert!(told.into_iter().flatten().all(|told| told.is_ok()), "path 0 is open from the start");
    }

    /// Does what is due in races.
    pub(in crate::endpoint) fn run_races(&mut self, now: Instant) {
        while let Some(handle) = self.races.due(now) {
            self.run_race(handle, now);
            self.races.follow();
        }
    }

    fn run_race(&mut self, handle: ConnectionHandle, now: Instant) {
        loop {
            let Some(contest) = self.races.get_mut(handle) else { return };
            let (connections, attempts) = (&self.connections, &contest.attempts);
            let winner = contest.race.winner();
            let progress = |index: usize| {
                let attempt = attempts.get(index).copied().flatten();
                let connection = attempt.and_then(|attempt| connections.get(&attempt)).map(Box::as_ref);
                // A server that repeats itself has not got the last flight of the winner. One that sends data works on it.
                let counts =
                    |connection: &&Connection| winner != Some(index) || connection.progress().has_arrivals();
                connection
                    .filter(counts)
                    .map_or(Instant::ZERO, |connection| connection.progress().progressed_at())
            };
            let Some(action) = contest.race.next(now, progress) else { return };
            let is_complete = contest.race.winner().is_some()
                && connections.get(&handle).is_some_and(|lead| lead.progress().is_completed_by_peer());
            match action {
                Action::Stop => return self.stop_race(handle, now),
                // HANDSHAKE_DONE is still to come, but the connection stands.
                _ if is_complete => return self.end_race(handle, now),
                Action::Begin(index) => self.begin_attempt(handle, index, now),
                Action::Repeat(index) => self.repeat_attempt(handle, index, now),
            }
        }
    }

    fn begin_attempt(&mut self, race: ConnectionHandle, index: usize, now: Instant) {
        let Some(contest) = self.races.get_mut(race) else { return };
        let Some(candidate) = contest.candidates.get(index).cloned() else { return };
        let (config, name) = (contest.config.clone(), contest.server_name.clone());
        let (options, until) = (contest.options, contest.race.until());
        let delay = self.delay_of(&candidate, options, now);
        // 0-RTT of two attempts would be processed twice, and a ticket is for one of them (RFC 8446 §8, §C.4).
        let resumption = Resumption::Withheld;
        let start = Start { config: &config, tuple: candidate.way.tuple, server_name: &name, resumption };
        let begun = self.start_connection(start, now);
        if let Ok(handle) = begun {
            self.configure(handle, &candidate);
            if let Some(connection) = self.connections.get_mut(&handle) {
                connection.limit_handshake(until);
            }
            self.races.hide(handle, race);
        }
        let Some(contest) = self.races.get_mut(race) else { return };
        match begun {
            Ok(handle) => {
                if let Some(attempt) = contest.attempts.get_mut(index) {
                    *attempt = Some(handle);
                }
                contest.race.on_begun(index, delay, now);
            }
            Err(_) => contest.race.on_failed(index, Failure::Final, now),
        }
    }

    /// The attempt over candidate `index` stands still: its flight is sent again. After a while another begins in its place,
    /// because the server may have given it up, or answer it where somebody sent a copy of it from (attacks.md K23).
    fn repeat_attempt(&mut self, race: ConnectionHandle, index: usize, now: Instant) {
        let Some(contest) = self.races.get_mut(race) else { return };
        let Some(handle) = contest.attempts.get(index).copied().flatten() else { return };
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        let stood = now.since(connection.progress().progressed_at());
        let patience = if connection.has_authenticated() { STALE } else { UNANSWERED };
        let is_stale = stood >= patience.max(connection.progress().handshake_rtt() * 3);
        if is_stale && contest.race.winner() != Some(index) {
            if handle == race {
                // The application knows it, so that it stays until another wins.
                contest.lead = Lead::Failed(ConnectionError::HandshakeTimeout);
            } else {
                connection.close(0, b"", now);
                self.schedule.touch(handle);
            }
            return self.begin_attempt(race, index, now);
        }
        connection.repeat_flight();
        self.schedule.touch(handle);
    }

    /// Passes an event on to the application, if it concerns it.
    pub(in crate::endpoint) fn tell_of_race(
        &mut self,
        handle: ConnectionHandle,
        event: Event,
        now: Instant,
    ) -> Option<Output> {
        let told = match self.races.race_of(handle) {
            Some(race) => self.on_hidden_event(race, handle, event, now),
            None => self.on_lead_event(handle, event, now),
        };
        self.races.follow();
        let (handle, event) = told?;
        self.note(handle, &event, now);
        Some(Output::Event(handle, event))
    }

    /// News of connections that are gone.
    pub(in crate::endpoint) fn next_race_news(&mut self, now: Instant) -> Option<Output> {
        let (handle, event) = self.races.news.pop_front()?;
        self.note(handle, &event, now);
        Some(Output::Event(handle, event))
    }

    fn on_lead_event(
        &mut self,
        handle: ConnectionHandle,
        event: Event,
        now: Instant,
    ) -> Option<(ConnectionHandle, Event)> {
        let Some(contest) = self.races.get_mut(handle) else { return Some((handle, event)) };
        match &event {
            Event::Connected => {
                let Some(index) = contest.candidate(handle) else {
                    return self.on_late_lead(handle, event, now);
                };
                self.complete_race(handle, index, now);
            }
            Event::Confirmed => self.end_race(handle, now),
            Event::Closed(error) => return self.on_lead_closed(handle, error.clone(), now),
            Event::Forgotten => {
                if let Lead::Failed(error) = &contest.lead {
                    contest.lead = Lead::Gone(error.clone());
                    return None;
                }
                self.end_race(handle, now);
            }
            _ => {}
        }
        Some((handle, event))
    }

    /// The first attempt answered after another had been begun over the same path.
    fn on_late_lead(
        &mut self,
        handle: ConnectionHandle,
        event: Event,
        now: Instant,
    ) -> Option<(ConnectionHandle, Event)> {
        let tuple = self.connections.get(&handle)?.path_stats(PathId::ZERO)?.tuple;
        let contest = self.races.get_mut(handle)?;
        let same = |candidate: &CandidatePath| candidate.way.tuple == tuple;
        let index = contest.candidates.iter().position(same)?;
        let twin = contest.attempts.get_mut(index)?.replace(handle);
        contest.lead = Lead::Alive;
        self.close_attempts(twin.into_iter().collect(), now);
        self.complete_race(handle, index, now);
        Some((handle, event))
    }

    fn on_lead_closed(
        &mut self,
        handle: ConnectionHandle,
        error: ConnectionError,
        now: Instant,
    ) -> Option<(ConnectionHandle, Event)> {
        let contest = self.races.get_mut(handle)?;
        let is_over = contest.race.winner().is_some()
            || matches!(error, ConnectionError::LocallyClosed { .. })
            || now >= contest.race.until();
        if !is_over {
            if let Some(index) = contest.candidate(handle) {
                contest.race.on_failed(index, failure(&error), now);
                contest.on_failed(index, &error);
                if let Some(attempt) = contest.attempts.get_mut(index) {
                    *attempt = None;
                }
            }
            if !contest.race.is_lost() {
                contest.lead = Lead::Failed(error);
                return None;
            }
        }
        self.end_race(handle, now);
        Some((handle, Event::Closed(error)))
    }

    fn on_hidden_event(
        &mut self,
        race: ConnectionHandle,
        handle: ConnectionHandle,
        event: Event,
        now: Instant,
    ) -> Option<(ConnectionHandle, Event)> {
        match &event {
            Event::Forgotten => {
                self.note(handle, &event, now);
                self.races.forget(handle);
            }
            Event::NewToken(_) => self.note(handle, &event, now),
            Event::Closed(error) => self.on_attempt_closed(race, handle, error, now),
            Event::Connected => return self.on_attempt_connected(race, handle, now),
            _ => {}
        }
        None
    }

    fn on_attempt_closed(
        &mut self,
        race: ConnectionHandle,
        handle: ConnectionHandle,
        error: &ConnectionError,
        now: Instant,
    ) {
        let Some(contest) = self.races.get_mut(race) else { return };
        let Some(index) = contest.candidate(handle) else { return };
        if let Some(attempt) = contest.attempts.get_mut(index) {
            *attempt = None;
        }
        contest.race.on_failed(index, failure(error), now);
        contest.on_failed(index, error);
        if contest.race.is_lost() {
            self.stop_race(race, now);
        }
    }

    /// Another attempt than the one that the application knows is complete: it takes the other's place.
    fn on_attempt_connected(
        &mut self,
        race: ConnectionHandle,
        handle: ConnectionHandle,
        now: Instant,
    ) -> Option<(ConnectionHandle, Event)> {
        let contest = self.races.get_mut(race)?;
        let index = contest.candidate(handle)?;
        let (was_told, replay) = (contest.race.winner().is_some(), contest.options.replay);
        let lead = self.connections.get_mut(&race)?;
        if was_told && lead.progress().is_completed_by_peer() {
            self.end_race(race, now);
            return None;
        }
        if !lead.progress().is_replaceable(replay) {
            self.keep_or_give_up(race, handle, now);
            return None;
        }
        let mut previous = self.take_over(race, handle)?;
        self.note_unanswered(&previous, now);
        let winner = self.connections.get_mut(&race)?;
        winner.succeed(&mut previous, now);
        if was_told {
            winner.announce_succession(&previous);
        }
        self.retire(handle, previous, now);
        let contest = self.races.get_mut(race)?;
        for attempt in contest.attempts.iter_mut().filter(|attempt| **attempt == Some(race)) {
            *attempt = None;
        }
        if let Some(attempt) = contest.attempts.get_mut(index) {
            *attempt = Some(race);
        }
        contest.lead = Lead::Alive;
        self.complete_race(race, index, now);
        (!was_told).then_some((race, Event::Connected))
    }

    /// The attempt `handle` is complete, and nothing can take the place of the lead: what the server
    /// sent was read, or what it may have read must not be sent again. A lead whose server goes on to speak stays; of one that
    /// stands still the application learns now rather than after the idle timeout.
    fn keep_or_give_up(&mut self, race: ConnectionHandle, handle: ConnectionHandle, now: Instant) {
        let born = self.connections.get(&handle).map_or(now, |attempt| attempt.progress().born());
        let Some(lead) = self.connections.get_mut(&race) else { return };
        let patience = STALE.max(lead.progress().handshake_rtt() * 3);
        let is_over = match lead.progress().has_arrivals() {
            true => lead.progress().stands_still_since(now - patience),
            false => lead.progress().stands_still_since(born),
        };
        if is_over {
            lead.give_up_handshake();
            self.schedule.touch(race);
            return self.end_race(race, now);
        }
        let Some(contest) = self.races.get_mut(race) else { return };
        if let Some(index) = contest.candidate(handle) {
            contest.race.on_failed(index, Failure::Passing, now);
        }
        let own = contest.attempts.iter_mut().filter(|attempt| **attempt == Some(handle));
        own.for_each(|attempt| *attempt = None);
        self.close_attempts(vec![handle], now);
    }

    /// Takes note of the channel of `previous`, whose place another took, if it was never answered.
    fn note_unanswered(&mut self, previous: &Connection, now: Instant) {
        if let Some(local) = first_local(previous).filter(|_| !previous.has_authenticated()) {
            self.channels.on_unanswered(local, now);
        }
    }

    /// Puts the connection `handle` in the place of the one under `race`, which is taken out.
    fn take_over(&mut self, race: ConnectionHandle, handle: ConnectionHandle) -> Option<Box<Connection>> {
        let winner = self.connections.remove(&handle)?;
        self.router.exchange(race, handle);
        self.schedule.forget(handle);
        self.schedule.touch(race);
        self.connections.insert(race, winner)
    }

    /// Ends the connection whose place was taken, which has the handle of the one that took it.
    fn retire(&mut self, handle: ConnectionHandle, mut previous: Box<Connection>, now: Instant) {
        previous.close(0, b"", now);
        let is_gone = previous.lifecycle() == crate::connection::lifecycle::Lifecycle::Closed;
        self.connections.insert(handle, previous);
        self.schedule.touch(handle);
        if is_gone {
            self.note(handle, &Event::Forgotten, now);
            self.races.forget(handle);
        }
    }

    /// The handshake of the connection under `race`, over candidate `index`, is complete here.
    fn complete_race(&mut self, race: ConnectionHandle, index: usize, now: Instant) {
        let winner = self.connections.get(&race);
        let (rtt, born) = (
            winner.map(|winner| winner.progress().handshake_rtt()),
            winner.map_or(now, |winner| winner.progress().born()),
        );
        let Some(contest) = self.races.get_mut(race) else { return };
        let others = contest.take_others(race);
        contest.race.on_completed(index, attempt_delay(rtt), now);
        for handle in &others {
            let earlier = self.connections.get(handle).filter(|attempt| attempt.progress().born() < born);
            let unanswered = earlier.filter(|attempt| !attempt.has_authenticated());
            if let Some(local) = unanswered.and_then(|attempt| first_local(attempt)) {
                self.channels.on_unanswered(local, now);
            }
        }
        self.close_attempts(others, now);
    }

    /// Ends the race: the connection under `race` is on its own.
    fn end_race(&mut self, race: ConnectionHandle, now: Instant) {
        let Some(mut contest) = self.races.remove(race) else { return };
        self.close_attempts(contest.take_others(race), now);
        self.note_lost(race, &mut contest);
    }

    /// Takes note of the failures of a race that nobody won.
    fn note_lost(&mut self, race: ConnectionHandle, contest: &mut Contest) {
        if contest.race.winner().is_none() {
            self.races.on_lost(race, std::mem::take(&mut contest.failures));
        }
    }

    /// The reasons for which attempts at the connection `handle` failed before all had, by the addresses of each: of a race that
    /// nobody won, once [`Event::Closed`] has told of it. They are forgotten.
    pub fn take_race_failures(&mut self, handle: ConnectionHandle) -> Vec<(FourTuple, ConnectionError)> {
        let index = self.races.lost.iter().position(|(race, _)| *race == handle);
        index
            .and_then(|index| self.races.lost.remove(index))
            .map(|(_, failures)| failures)
            .unwrap_or_default()
    }

    /// Nothing more is tried: if nothing came of it, the application learns why the first attempt failed.
    fn stop_race(&mut self, race: ConnectionHandle, now: Instant) {
        let Some(mut contest) = self.races.remove(race) else { return };
        self.close_attempts(contest.take_others(race), now);
        self.note_lost(race, &mut contest);
        let lifecycle = self.connections.get(&race).map(|lead| lead.lifecycle());
        match contest.lead {
            Lead::Gone(error) => {
                self.races.news.push_back((race, Event::Closed(error)));
                self.races.news.push_back((race, Event::Forgotten));
            }
            // It still closes, and is forgotten in time.
            Lead::Failed(error) if lifecycle.is_some_and(|lifecycle| !lifecycle.is_open()) => {
                self.races.news.push_back((race, Event::Closed(error)));
            }
            Lead::Alive | Lead::Failed(_) => {}
        }
    }

    fn close_attempts(&mut self, handles: Vec<ConnectionHandle>, now: Instant) {
        for handle in handles {
            if let Some(connection) = self.connections.get_mut(&handle) {
                connection.close(0, b"", now);
                self.schedule.touch(handle);
            }
        }
    }
}

/// The local address of path 0.
fn first_local(connection: &Connection) -> Option<SocketAddr> {
    connection.path_stats(PathId::ZERO).map(|path| path.tuple.local)
}

/// An attempt that the server knew and has not spoken to for so long is begun anew.
const STALE: Duration = Duration::from_secs(1);
/// The same for an attempt that was never answered: longer than any round trip that is worth waiting for.
const UNANSWERED: Duration = Duration::from_secs(3);

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
