//! The origins of one host: the one that each request goes to, and those that get none for a while.

use super::standing::Standing;
use super::{Failure, Head, Origin};
use crate::compression::Compression;
use crate::configuration::{HealthConfig, Underscores};
use crate::request::Upload;
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderValue, Method, Response};
use hyper::body::Incoming;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// The origins that a request is tried at, at most.
const MOST_ATTEMPTS: usize = 3;

/// The origins of a host, with at least one.
#[derive(Debug)]
pub(crate) struct Origins {
    members: Vec<Arc<Member>>,
    health: HealthConfig,
    compression: Arc<Compression>,
    /// The place at which the search for the next one begins, so that equals take turns.
    turn: AtomicUsize,
    checks: Mutex<JoinSet<()>>,
}

/// One origin of a host, and how it does.
#[derive(Debug)]
struct Member {
    origin: Origin,
    /// Requests that it has under way.
    load: AtomicUsize,
    ejections: AtomicU64,
    standing: Mutex<Standing>,
}

impl Member {
    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that an origin has under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    member: Arc<Member>,
    number: usize,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.member.load.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The state of one origin, for metrics.
#[derive(Clone, Debug)]
pub(crate) struct OriginState {
    pub(crate) name: String,
    pub(crate) is_up: bool,
    /// Requests under way.
    pub(crate) load: usize,
    /// Times that it was ejected.
    pub(crate) ejections: u64,
}

impl Origins {
    /// Makes the origins of a host, of which there is at least one.
    pub(crate) fn new(origins: Vec<Origin>, health: HealthConfig, compression: Compression) -> Self {
        let member = |origin| Member {
            origin,
            load: AtomicUsize::new(0),
            ejections: AtomicU64::new(0),
            standing: Mutex::default(),
        };
        let members = origins.into_iter().map(|origin| Arc::new(member(origin))).collect();
        let (turn, checks) = (AtomicUsize::new(0), Mutex::default());
        Self { members, health, compression: Arc::new(compression), turn, checks }
    }

    /// The compression of their responses.
    pub(crate) fn compression(&self) -> Arc<Compression> {
        self.compression.clone()
    }

    /// Returns the setting of underscores, which is that of each of them.
    pub(crate) fn underscores(&self) -> Underscores {
        self.members.first().map(|member| member.origin.underscores()).unwrap_or_default()
    }

    /// Returns how many of them a request may be tried at.
    pub(crate) fn attempts(&self) -> usize {
        // One alone is asked again: a connection that it had just given up tells nothing of it.
        self.members.len().clamp(2, MOST_ATTEMPTS)
    }

    /// Returns true if one of them was not tried, and gets requests.
    pub(crate) fn has_others(&self, tried: &[usize]) -> bool {
        let (now, mut members) = (Instant::now(), self.members.iter().enumerate());
        members.any(|(number, member)| !tried.contains(&number) && member.standing().is_up(&self.health, now))
    }

    /// Chooses the one with the fewest requests under way, among those that were not tried and get requests; or else among those that get
    /// requests, or else among all: an answer from one that was given up is better than none.
    pub(crate) fn choose(&self, tried: &[usize]) -> UnderWay {
        let now = Instant::now();
        let is_up: Vec<bool> =
            self.members.iter().map(|member| member.standing().is_up(&self.health, now)).collect();
        let begin = self.turn.fetch_add(1, Ordering::Relaxed);
        let least = |may: &dyn Fn(usize) -> bool| {
            let order = (0..self.members.len()).map(|step| begin.wrapping_add(step) % self.members.len());
            order.filter(|number| may(*number)).min_by_key(|number| {
                // The first of equals, in this order, is taken.
                self.members[*number].load.load(Ordering::Relaxed)
            })
        };
        let number = least(&|number| is_up[number] && !tried.contains(&number))
            .or_else(|| least(&|number| is_up[number]))
            .or_else(|| least(&|_| true))
            .expect("there is at least one origin");
        let member = self.members[number].clone();
        member.load.fetch_add(1, Ordering::Relaxed);
        UnderWay { member, number }
    }

    /// Sends the request to the origin that was chosen for it, and waits for the head of the response.
    pub(crate) async fn send(
        &self,
        under_way: &UnderWay,
        head: Head,
        body: Upload,
    ) -> Result<Response<Incoming>, Failure> {
        let sent = Instant::now();
        let answered = under_way.member.origin.send(head, body).await;
        if answered.is_ok() {
            under_way.member.standing().answered(sent, Instant::now());
        }
        answered
    }

    /// Takes note that an origin failed, by no fault of the client.
    pub(crate) fn failed(&self, under_way: &UnderWay) {
        let (now, member) = (Instant::now(), &under_way.member);
        let up = |other: &&Arc<Member>| other.standing().is_up(&self.health, now);
        let resting = self.members.len() - self.members.iter().filter(up).count();
        let may_eject = resting < self.most_ejected();
        if member.standing().failed(&self.health, may_eject, now) {
            member.ejections.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(origin = %member.origin, "ejected: requests to it fail");
        }
    }

    /// The number of origins that may be ejected at a time: the percentage of the configuration, of several at least one, never all.
    fn most_ejected(&self) -> usize {
        let share = self.members.len() * usize::from(self.health.most) / 100;
        share.max(1).min(self.members.len() - 1)
    }

    /// The states of the origins.
    pub(crate) fn states(&self) -> Vec<OriginState> {
        let now = Instant::now();
        let state = |member: &Arc<Member>| OriginState {
            name: member.origin.to_string(),
            is_up: member.standing().is_up(&self.health, now),
            load: member.load.load(Ordering::Relaxed),
            ejections: member.ejections.load(Ordering::Relaxed),
        };
        self.members.iter().map(state).collect()
    }

    /// Begins the checks that the configuration asks for, which end with this.
    pub(crate) fn check(&self) {
        let Some(path) = &self.health.path else { return };
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        for member in &self.members {
            let (member, path, health) = (member.clone(), path.clone(), self.health.clone());
            checks.spawn(async move {
                loop {
                    let passed = timeout(health.timeout, member.origin.check(&path)).await.unwrap_or(false);
                    if passed {
                        member.standing().passed();
                    } else if member.standing().missed(&health) {
                        member.ejections.fetch_add(1, Ordering::Relaxed);
                        tracing::warn!(origin = %member.origin, "ejected: checks fail");
                    }
                    sleep(health.interval).await;
                }
            });
        }
    }
    /// Ends the checks.
    pub(crate) fn uncheck(&self) {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl UnderWay {
    /// The number of the origin among those of its host.
    pub(crate) fn number(&self) -> usize {
        self.number
    }
}

impl Origin {
    /// Asks for `path`; returns true if the answer is none of an error.
    async fn check(&self, path: &http::uri::PathAndQuery) -> bool {
        let mut fields = HeaderMap::new();
        fields.insert(USER_AGENT, HeaderValue::from_static("hvq-gateway"));
        let authority = self.url.authority.clone();
        let head = Head { method: Method::GET, authority, path: path.clone(), fields, switches: false };
        let answer = self.send(head, Upload::empty()).await;
        answer.is_ok_and(|answer| answer.status().is_success() || answer.status().is_redirection())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{HostHeader, OriginUrl};
    use crate::origin::Habits;
    use std::time::Duration;

    fn origins(number: usize, most: u8) -> Origins {
        let habits = Habits { host_header: HostHeader::Client, underscores: Underscores::Drop };
        let origin = |number| {
            let url: OriginUrl = format!("http://127.0.0.1:{}", number + 1).parse().unwrap();
            Origin::new(url, None, habits, Duration::from_secs(1)).unwrap()
        };
        let health = HealthConfig { failures: 1, most, ..HealthConfig::default() };
        Origins::new((0..number).map(origin).collect(), health, Compression::new(Vec::new()))
    }

    #[tokio::test]
    async fn the_least_loaded_one_is_chosen_and_equals_take_turns() {
        let origins = origins(3, 50);
        let mut held: Vec<UnderWay> = (0..6).map(|_| origins.choose(&[])).collect();
        let loads: Vec<usize> = origins.states().iter().map(|state| state.load).collect();
        assert_eq!(loads, [2, 2, 2]);
        held.retain(|under_way| under_way.number() != 1);
        assert_eq!(origins.choose(&[]).number(), 1, "it has nothing to do");
        drop(held);
        assert!(origins.states().iter().all(|state| state.load == 0));
        let seen: std::collections::BTreeSet<usize> = (0..3).map(|_| origins.choose(&[]).number()).collect();
        assert_eq!(seen.len(), 3);
        assert!((0..9).all(|_| origins.choose(&[0, 2]).number() == 1), "those that were tried come last");
    }

    #[tokio::test]
    async fn no_more_are_ejected_than_the_bound_and_never_all() {
        for (number, most, ejected) in
            [(1, 100, 0), (2, 0, 1), (2, 100, 1), (4, 50, 2), (4, 100, 3), (3, 50, 1)]
        {
            let origins = origins(number, most);
            for tried in 0..number {
                let others: Vec<usize> = (0..number).filter(|other| *other != tried).collect();
                origins.failed(&origins.choose(&others));
            }
            let down = origins.states().iter().filter(|state| !state.is_up).count();
            assert_eq!(down, ejected, "of {number}, at most {most} %");
        }
    }
}
