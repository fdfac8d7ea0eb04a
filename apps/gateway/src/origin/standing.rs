//! The standing of one origin among several: whether it gets requests, by how it answered before.

use crate::configuration::HealthConfig;
use std::time::Duration;
use tokio::time::Instant;

/// The longest time for which an origin gets nothing because requests to it failed, however often it was ejected in a row.
const LONGEST_REST: Duration = Duration::from_secs(300);

/// The record of one origin: failures of requests eject it for a while (outlier ejection), failures of checks until one succeeds.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Requests that failed since one was answered.
    failures: u32,
    /// Ejections since one was answered.
    ejections: u32,
    /// The time until which it gets nothing.
    rests_until: Option<Instant>,
    /// Checks that failed since one succeeded.
    failed_checks: u32,
}

impl Standing {
    /// Returns true if it gets requests at `now`.
    pub(super) fn is_up(&self, health: &HealthConfig, now: Instant) -> bool {
        !self.is_resting(now) && self.failed_checks < health.failures
    }

    fn is_resting(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }

    /// It answered a request that was sent at `sent`. An answer to one from before it was ejected tells nothing of now.
    pub(super) fn answered(&mut self, sent: Instant, now: Instant) {
        if self.rests_until.is_some_and(|until| sent < until) && self.is_resting(now) {
            return;
        }
        (self.failures, self.ejections, self.rests_until) = (0, 0, None);
    }

    /// It failed a request. `may_eject` says that enough others are left. Returns true if it is ejected: each time in a row for twice as
    /// long.
    pub(super) fn failed(&mut self, health: &HealthConfig, may_eject: bool, now: Instant) -> bool {
        if self.is_resting(now) {
            return false;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures < health.failures || !may_eject {
            return false;
        }
        let rest = health.rest.saturating_mul(1 << self.ejections.min(16)).min(LONGEST_REST.max(health.rest));
        self.rests_until = Some(now + rest);
        self.ejections = self.ejections.saturating_add(1);
        // The first failure after the rest ejects it again.
        self.failures = health.failures - 1;
        true
    }

    /// A check succeeded.
    pub(super) fn passed(&mut self) {
        self.failed_checks = 0;
    }

    /// A check failed; returns true if it is the one by which it gets no requests any more.
    pub(super) fn missed(&mut self, health: &HealthConfig) -> bool {
        self.failed_checks = self.failed_checks.saturating_add(1);
        self.failed_checks == health.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health() -> HealthConfig {
        HealthConfig { failures: 3, rest: Duration::from_secs(10), ..HealthConfig::default() }
    }

    #[test]
    fn failures_in_a_row_eject_and_each_time_for_twice_as_long_up_to_five_minutes() {
        let (health, mut standing, mut now) = (health(), Standing::default(), Instant::now());
        for _ in 0..2 {
            assert!(!standing.failed(&health, true, now) && standing.is_up(&health, now));
        }
        standing.answered(now, now);
        for _ in 0..2 {
            assert!(!standing.failed(&health, true, now), "an answer between them begins anew");
        }
        for rest in [10, 20, 40, 80, 160, 300, 300].map(Duration::from_secs) {
            assert!(standing.failed(&health, true, now) && !standing.is_up(&health, now));
            assert!(!standing.failed(&health, true, now), "what was under way counts no more");
            assert!(!standing.is_up(&health, now + rest - Duration::from_millis(1)));
            now += rest;
            assert!(standing.is_up(&health, now));
        }
        standing.answered(now, now);
        for _ in 0..2 {
            assert!(!standing.failed(&health, true, now));
        }
        assert!(standing.failed(&health, true, now));
        assert!(standing.is_up(&health, now + Duration::from_secs(10)), "ten seconds again");
    }

    #[test]
    fn nothing_is_ejected_where_too_few_are_left_and_late_answers_take_no_ejection_back() {
        let (health, mut standing, now) = (health(), Standing::default(), Instant::now());
        for _ in 0..10 {
            assert!(!standing.failed(&health, false, now));
        }
        assert!(standing.is_up(&health, now));
        assert!(standing.failed(&health, true, now));
        standing.answered(now, now + Duration::from_secs(1));
        assert!(!standing.is_up(&health, now + Duration::from_secs(1)));
    }

    #[test]
    fn checks_take_an_origin_out_until_one_succeeds() {
        let (health, mut standing, now) = (health(), Standing::default(), Instant::now());
        let turns: Vec<bool> = (0..5).map(|_| standing.missed(&health)).collect();
        assert_eq!(turns, [false, false, true, false, false]);
        standing.answered(now, now);
        assert!(!standing.is_up(&health, now), "requests say nothing of checks");
        standing.passed();
        assert!(standing.is_up(&health, now));
    }
}
