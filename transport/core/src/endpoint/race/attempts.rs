//! The attempts of a race as connections of an endpoint. The application knows one handle, under which the connection is
//! kept that won, or may win; it learns nothing of the others.

use super::contest::Lead;
use super::{Action, CandidatePath, Contest, Dial, Failure, RaceOptions, attempt_delay};
use crate::PathId;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::{Connection, Event, FourTuple, Resumption};
use crate::endpoint::{ClientConfig, ConnectError, ConnectionHandle, Endpoint, NetworkPath, Output, Start};
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
        let delay = self.delay_of(first, options, now);
        let start = Start { config, tuple: first.way.tuple, server_name, resumption: Resumption::Latest };
        let mut connection = self.new_client(&start, now)?;
        configure(&mut connection, first);
        let handle = self.insert_client(connection, &start, now);
        let mut contest = Contest::new(handle, config, dial, until);
        contest.on_begun(0, handle, delay, now);
        self.races.put_back(contest);
        Ok(handle)
    }

    /// Returns the time that the others wait for the attempt over `candidate`.
    fn delay_of(&self, candidate: &CandidatePath, options: RaceOptions, now: Instant) -> Duration {
        let NetworkPath { tuple, hints } = candidate.way;
        let way = NetworkPath { tuple, hints: self.believed(tuple.local, hints) };
        let known = || self.channels.view(PathId::ZERO, &way, &self.connections, now);
        let expected = || {
            let view = known()?;
            let bytes = Flights::USUAL.sent + Flights::USUAL.received + view.backlog;
            let transmission = view.rate.map_or(Duration::ZERO, |rate| rate.transmission_time(bytes));
            Some(view.delay.saturating_mul(2).saturating_add(transmission))
        };
        options.delay().unwrap_or_else(|| attempt_delay(expected()))
    }

    /// Does what is due in races.
    pub(in crate::endpoint) fn run_races(&mut self, now: Instant) {
        while let Some(mut contest) = self.races.take_due(now) {
            self.run_race(&mut contest, now);
            self.races.put_back(contest);
        }
    }

    fn run_race(&mut self, contest: &mut Contest, now: Instant) {
        while let Some(action) = contest.next(&self.connections, now) {
            let lead = self.connections.get(&contest.handle);
            let is_complete = contest.race.winner().is_some()
                && lead.is_some_and(|lead| lead.progress().is_completed_by_peer());
            match action {
                Action::Stop => return self.stop_race(contest, now),
                // HANDSHAKE_DONE is still to come, but the connection stands.
                _ if is_complete => return self.end_race(contest, now),
                Action::Begin(index) => self.begin_attempt(contest, index, now),
                Action::Repeat(index) => self.repeat_attempt(contest, index, now),
            }
        }
    }

    fn begin_attempt(&mut self, contest: &mut Contest, index: usize, now: Instant) {
        let candidate = contest.candidate(index).path.clone();
        let delay = self.delay_of(&candidate, contest.options, now);
        let start = Start {
            config: &contest.config,
            tuple: candidate.way.tuple,
            server_name: &contest.server_name,
            // 0-RTT of two attempts would be processed twice, and a ticket is for one of them (RFC 8446 §8, §C.4).
            resumption: Resumption::Withheld,
        };
        let Ok(mut connection) = self.new_client(&start, now) else {
            return contest.race.on_failed(index, Failure::Final, now);
        };
        configure(&mut connection, &candidate);
        connection.limit_handshake(contest.race.until());
        let handle = self.insert_client(connection, &start, now);
        self.races.hide(handle, contest.handle);
        contest.on_begun(index, handle, delay, now);
    }

    /// The attempt over candidate `index` stands still: its flight is sent again. After a while another begins in its place,
    /// because the server may have given it up, or answer it where somebody sent a copy of it from (attacks.md K23).
    fn repeat_attempt(&mut self, contest: &mut Contest, index: usize, now: Instant) {
        let attempt = contest.candidate(index).attempt;
        let found = attempt.and_then(|handle| Some((handle, self.connections.get_mut(&handle)?)));
        let (handle, connection) = found.expect("an attempt under way is a connection of the endpoint");
        let stood = now.since(connection.progress().progressed_at());
        let patience = if connection.has_authenticated() { STALE } else { UNANSWERED };
        let is_stale = stood >= patience.max(connection.progress().handshake_rtt() * 3);
        if !is_stale || contest.race.winner() == Some(index) {
            connection.repeat_flight();
            return self.schedule.touch(handle);
        }
        if handle == contest.handle {
            // The application knows it, so that it stays until another wins.
            contest.lead = Lead::Failed(ConnectionError::HandshakeTimeout);
        } else {
            connection.close(0, b"", now);
            self.schedule.touch(handle);
        }
        self.begin_attempt(contest, index, now);
    }

    /// Passes an event on to the application, if it concerns it.
    pub(in crate::endpoint) fn tell_of_race(
        &mut self,
        handle: ConnectionHandle,
        event: Event,
        now: Instant,
    ) -> Option<Output> {
        let (handle, event) = match self.races.race_of(handle) {
            Some(race) => self.on_hidden_event(race, handle, event, now)?,
            None => match self.races.take(handle) {
                Some(mut contest) => {
                    let told = self.on_lead_event(&mut contest, event, now);
                    self.races.put_back(contest);
                    (handle, told?)
                }
                None => (handle, event),
            },
        };
        self.note(handle, &event, now);
        Some(Output::Event(handle, event))
    }

    /// News of connections that are gone.
    pub(in crate::endpoint) fn next_race_news(&mut self, now: Instant) -> Option<Output> {
        let (handle, event) = self.races.news.pop_front()?;
        self.note(handle, &event, now);
        Some(Output::Event(handle, event))
    }

    /// An event of the connection that the application knows. Returns what it is told.
    fn on_lead_event(&mut self, contest: &mut Contest, event: Event, now: Instant) -> Option<Event> {
        match &event {
            Event::Connected => match contest.index_of(contest.handle) {
                Some(index) => self.complete_race(contest, index, now),
                None => self.on_late_lead(contest, now)?,
            },
            Event::Confirmed => self.end_race(contest, now),
            Event::Closed(error) => return self.on_lead_closed(contest, error, now).then_some(event),
            Event::Forgotten => {
                if let Lead::Failed(error) = &contest.lead {
                    contest.lead = Lead::Gone(error.clone());
                    return None;
                }
                self.end_race(contest, now);
            }
            _ => {}
        }
        Some(event)
    }

    /// The first attempt answered after another had been begun over the same path. `None` if it is none of the candidates'.
    fn on_late_lead(&mut self, contest: &mut Contest, now: Instant) -> Option<()> {
        let tuple = self.connections.get(&contest.handle)?.path_stats(PathId::ZERO)?.tuple;
        let index = contest.index_over(tuple)?;
        let lead = contest.handle;
        let twin = contest.candidate(index).begin(lead);
        contest.lead = Lead::Alive;
        self.close_attempts(twin.into_iter().collect(), now);
        self.complete_race(contest, index, now);
        Some(())
    }

    /// The connection that the application knows ended. Returns true if the application is told: nothing else is under way.
    fn on_lead_closed(&mut self, contest: &mut Contest, error: &ConnectionError, now: Instant) -> bool {
        let is_over = contest.race.winner().is_some()
            || matches!(error, ConnectionError::LocallyClosed { .. })
            || now >= contest.race.until();
        if !is_over {
            if let Some(index) = contest.index_of(contest.handle) {
                contest.on_closed(index, error, now);
            }
            if !contest.race.is_lost() {
                contest.lead = Lead::Failed(error.clone());
                return false;
            }
        }
        self.end_race(contest, now);
        true
    }

    /// An event of the connection `handle`, which the application does not know. Returns what it is told of the other.
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
                return None;
            }
            Event::NewToken(_) => self.note(handle, &event, now),
            _ => {}
        }
        // After the race is over, attempts that lost go on to close.
        let mut contest = self.races.take(race)?;
        // An attempt that another took the place of goes on to close, too.
        let told = contest.index_of(handle).and_then(|index| match &event {
            Event::Closed(error) => {
                self.on_attempt_closed(&mut contest, index, error, now);
                None
            }
            Event::Connected => self.on_attempt_connected(&mut contest, index, now),
            _ => None,
        });
        self.races.put_back(contest);
        Some((race, told?))
    }

    fn on_attempt_closed(
        &mut self,
        contest: &mut Contest,
        index: usize,
        error: &ConnectionError,
        now: Instant,
    ) {
        contest.on_closed(index, error, now);
        if contest.race.is_lost() {
            self.stop_race(contest, now);
        }
    }

    /// Another attempt than the one that the application knows is complete: it takes the other's place. Returns what the
    /// application is told.
    fn on_attempt_connected(&mut self, contest: &mut Contest, index: usize, now: Instant) -> Option<Event> {
        let race = contest.handle;
        let handle = contest.candidate(index).attempt.expect("it was under way until it was complete");
        // A lead that failed stays until the race is over.
        let pair = self.connections.get_disjoint_mut([&race, &handle]);
        let [lead, attempt] = pair.map(|one| one.expect("both are connections of the endpoint"));
        let was_told = contest.race.winner().is_some();
        if was_told && lead.progress().is_completed_by_peer() {
            self.end_race(contest, now);
            return None;
        }
        if !lead.progress().is_replaceable(contest.options.replay()) {
            if is_stalled(lead, attempt.progress().born(), now) {
                lead.give_up_handshake();
                self.schedule.touch(race);
                self.end_race(contest, now);
            } else {
                contest.race.on_failed(index, Failure::Passing, now);
                contest.candidate(index).end();
                self.close_attempts(vec![handle], now);
            }
            return None;
        }
        // The connections change places.
        std::mem::swap(lead, attempt);
        let (winner, previous) = (lead, attempt);
        if let Some(local) = first_local(previous).filter(|_| !previous.has_authenticated()) {
            self.channels.on_unanswered(local, now);
        }
        winner.succeed(previous, now);
        if was_told {
            winner.announce_succession(previous);
        }
        previous.close(0, b"", now);
        let is_gone = previous.lifecycle() == Lifecycle::Closed;
        self.router.exchange(race, handle);
        self.schedule.forget(handle);
        self.schedule.touch(race);
        self.schedule.touch(handle);
        if is_gone {
            self.note(handle, &Event::Forgotten, now);
            self.races.forget(handle);
        }
        contest.on_taken_over(index);
        self.complete_race(contest, index, now);
        (!was_told).then_some(Event::Connected)
    }

    /// The handshake of the connection that the application knows, over candidate `index`, is complete here.
    fn complete_race(&mut self, contest: &mut Contest, index: usize, now: Instant) {
        let winner = self.connections.get(&contest.handle);
        let (rtt, born) = (
            winner.map(|winner| winner.progress().handshake_rtt()),
            winner.map_or(now, |winner| winner.progress().born()),
        );
        let others = contest.take_others();
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

    /// Ends the race: the connection that the application knows is on its own.
    fn end_race(&mut self, contest: &mut Contest, now: Instant) {
        self.close_attempts(contest.take_others(), now);
        contest.lead = Lead::Released;
        if contest.race.winner().is_none() {
            self.races.on_lost(contest.handle, std::mem::take(&mut contest.failures));
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
    fn stop_race(&mut self, contest: &mut Contest, now: Instant) {
        let (handle, lead) = (contest.handle, contest.lead.clone());
        self.end_race(contest, now);
        let lifecycle = self.connections.get(&handle).map(|lead| lead.lifecycle());
        match lead {
            Lead::Gone(error) => {
                self.races.news.push_back((handle, Event::Closed(error)));
                self.races.news.push_back((handle, Event::Forgotten));
            }
            // It still closes, and is forgotten in time.
            Lead::Failed(error) if lifecycle.is_some_and(|lifecycle| !lifecycle.is_open()) => {
                self.races.news.push_back((handle, Event::Closed(error)));
            }
            Lead::Alive | Lead::Failed(_) | Lead::Released => {}
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

/// Returns true if nothing comes of `lead`, whose place nothing can take although another attempt, begun at `born`, is complete:
/// what the server sent was read, or what it may have read must not be sent again. A lead whose server goes on to speak
/// stays; of one that stands still the application learns now rather than after the idle timeout.
fn is_stalled(lead: &Connection, born: Instant, now: Instant) -> bool {
    let patience = STALE.max(lead.progress().handshake_rtt() * 3);
    match lead.progress().has_arrivals() {
        true => lead.progress().stands_still_since(now - patience),
        false => lead.progress().stands_still_since(born),
    }
}

/// Tells path 0 of a connection that is about to begin what is known of it.
fn configure(connection: &mut Connection, candidate: &CandidatePath) {
    let hints = candidate.way.hints;
    let told = [
        (hints != Hints::NONE).then(|| connection.set_hints(PathId::ZERO, hints)),
        candidate.congestion.clone().map(|congestion| connection.set_congestion(PathId::ZERO, congestion)),
        Some(connection.set_dscp(PathId::ZERO, candidate.dscp)),
    ];
    debug_assert!(told.into_iter().flatten().all(|told| told.is_ok()), "path 0 is open from the start");
}

/// The local address of path 0.
fn first_local(connection: &Connection) -> Option<SocketAddr> {
    connection.path_stats(PathId::ZERO).map(|path| path.tuple.local)
}

/// An attempt that the server knew and has not spoken to for so long is begun anew.
const STALE: Duration = Duration::from_secs(1);
/// The same for an attempt that was never answered: longer than any round trip that is worth waiting for.
const UNANSWERED: Duration = Duration::from_secs(3);
