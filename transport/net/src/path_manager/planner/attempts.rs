//! The attempts at each link: their number is bounded, whatever the links do.

use crate::links::{Link, LinkRoute, LinkState};
use hvq_transport::time::Instant;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::time::Duration;

/// The pause after the first failure; it doubles with each further one.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(60);
/// The shortest time between two attempts, however often a link goes and comes.
const SPACING: Duration = Duration::from_millis(500);

/// The history of the links that there are, by the numbers of their interfaces.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    links: BTreeMap<u32, History>,
}

/// The history of a link.
#[derive(Debug, Default)]
struct History {
    /// The addresses that it has while it is up.
    addresses: Vec<IpNet>,
    /// The routes through it while it is up.
    routes: Vec<LinkRoute>,
    /// The time at which it became usable, if it is.
    usable_since: Option<Instant>,
    /// The time before which there is no further attempt.
    not_before: Instant,
    /// The last attempt.
    last: Option<Instant>,
    /// Attempts that failed in a row, and the last error.
    failures: u32,
    error: String,
}

impl Attempts {
    /// Takes note of `links`. An attempt may be made at once at those that came up, have other addresses or got another route:
    /// an interface that comes up has its routes a moment later. Returns those that were known and came up again, or got a route.
    pub(super) fn follow(&mut self, links: &[Link], now: Instant) -> Vec<u32> {
        self.links.retain(|index, _| links.iter().any(|link| link.index == *index));
        let mut revived = Vec::new();
        for link in links {
            let is_known = self.links.contains_key(&link.index);
            let history = self.links.entry(link.index).or_default();
            let is_usable = link.state == LinkState::Up && !link.addresses.is_empty();
            if !is_usable {
                history.usable_since = None;
                history.addresses.clear();
                history.routes.clear();
                continue;
            }
            let is_new = |route: &LinkRoute| !history.routes.contains(route);
            let is_readdressed = history.addresses != link.addresses;
            let is_routed = link.routes.iter().any(is_new);
            if is_readdressed || is_routed {
                if is_known && (is_routed || history.usable_since.is_none()) {
                    revived.push(link.index);
                }
                // A route alone is worth an attempt, but says little: routes may come and go for as long as nothing answers.
                if is_readdressed {
                    history.usable_since = Some(now);
                    history.failures = 0;
                }
                history.not_before = history.last.map_or(now, |last| last + SPACING);
            }
            history.addresses.clone_from(&link.addresses);
            history.routes.clone_from(&link.routes);
        }
        revived
    }

    /// Returns the time of the next attempt at `link`, if it is not now.
    pub(super) fn next(&self, link: u32, now: Instant) -> Option<Instant> {
        self.links.get(&link).map(|history| history.not_before).filter(|at| *at > now)
    }

    /// An attempt at `link` begins.
    pub(super) fn begin(&mut self, link: u32, now: Instant) {
        let history = self.links.entry(link).or_default();
        history.last = Some(now);
        history.not_before = now + SPACING;
    }

    /// The attempt was none: the next one is at `at`.
    pub(super) fn postpone(&mut self, link: u32, at: Instant) {
        self.links.entry(link).or_default().not_before = at;
    }

    /// An attempt at `link` failed.
    pub(super) fn fail(&mut self, link: u32, error: String, now: Instant) {
        // A link that is gone has no further attempts.
        if let Some(history) = self.links.get_mut(&link) {
            let pause = PAUSE.saturating_mul(1 << history.failures.min(16));
            history.not_before = now + pause.min(LONGEST);
            history.failures = history.failures.saturating_add(1);
            history.error = error;
        }
    }

    /// A path over `link` has worked `since` then, which is a while ago. One that did before the last attempt says nothing about
    /// those that fail beside it: to another address of the peer, say.
    pub(super) fn succeed(&mut self, link: u32, since: Instant) {
        if let Some(history) = self.links.get_mut(&link)
            && history.last.is_none_or(|last| since >= last)
        {
            history.failures = 0;
        }
    }

    /// The index of the one of `ways` whose turn it is at `link`: with each failure the next.
    pub(super) fn turn(&self, link: u32, ways: usize) -> usize {
        self.links.get(&link).map_or(0, |history| history.failures as usize) % ways.max(1)
    }

    /// The number of attempts at `link` that failed in a row, and the last error; `None` without any.
    pub(super) fn failures(&self, link: u32) -> Option<(u32, &str)> {
        let history = self.links.get(&link).filter(|history| history.failures > 0)?;
        Some((history.failures, &history.error))
    }

    /// The time at which `link` became usable.
    pub(super) fn usable_since(&self, link: u32) -> Option<Instant> {
        self.links.get(&link)?.usable_since
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_manager::fixture::Shape;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_end_when_the_link_comes_up() {
        let mut attempts = Attempts::default();
        let (up, mut down) = (Shape::new(2, "wlan0").link(), Shape::new(2, "wlan0").link());
        down.state = LinkState::NoCarrier;
        let mut now = at(0);
        attempts.follow(std::slice::from_ref(&up), now);
        for wanted in [1, 2, 4, 8, 16, 32, 60, 60] {
            attempts.begin(2, now);
            attempts.fail(2, "no answer".to_owned(), now);
            let next = attempts.next(2, now).unwrap();
            assert_eq!(next.since(now), Duration::from_secs(wanted));
            now = next;
        }
        attempts.fail(2, "no answer".to_owned(), now);
        assert_eq!(attempts.failures(2), Some((9, "no answer")));
        attempts.follow(&[down], now);
        assert_eq!(attempts.follow(&[up], now + SPACING), [2]);
        assert_eq!((attempts.next(2, now + SPACING), attempts.failures(2)), (None, None));
    }

    #[test]
    fn a_link_that_flaps_is_tried_twice_a_second_at_most() {
        let mut attempts = Attempts::default();
        let (up, mut down) = (Shape::new(2, "wlan0").link(), Shape::new(2, "wlan0").link());
        down.state = LinkState::NoCarrier;
        let mut made = 0;
        for step in 0..1_000 {
            let now = at(step * 10);
            let link = if step % 2 == 0 { &up } else { &down };
            attempts.follow(std::slice::from_ref(link), now);
            if attempts.next(2, now).is_none() {
                attempts.begin(2, now);
                made += 1;
            }
        }
        assert!((15..=20).contains(&made), "{made} attempts in ten seconds");
    }

    #[test]
    fn a_link_whose_route_comes_after_it_is_up_is_asked_again_at_once() {
        let mut attempts = Attempts::default();
        let routed = Shape::new(2, "wlan0").link();
        let up = Link { routes: Vec::new(), ..routed.clone() };
        let down =
            Link { state: LinkState::Down, addresses: Vec::new(), routes: Vec::new(), ..routed.clone() };
        attempts.follow(std::slice::from_ref(&routed), at(0));
        attempts.follow(&[down], at(1_000));
        assert_eq!(attempts.follow(&[up], at(3_000)), [2], "it came up");
        attempts.begin(2, at(3_000));
        attempts.fail(2, "no route".to_owned(), at(3_001));
        assert_eq!(attempts.next(2, at(3_001)), Some(at(4_001)));
        assert_eq!(attempts.follow(std::slice::from_ref(&routed), at(3_020)), [2], "it has a route");
        assert_eq!(attempts.next(2, at(3_020)), Some(at(3_000) + SPACING));
        assert!(attempts.follow(&[routed], at(3_040)).is_empty(), "nothing is new");
    }

    #[test]
    fn routes_that_come_and_go_are_worth_attempts_and_no_end_of_the_pauses() {
        let mut attempts = Attempts::default();
        let routed = Shape::new(2, "wlan0").link();
        let bare = Link { routes: Vec::new(), ..routed.clone() };
        attempts.follow(std::slice::from_ref(&routed), at(0));
        for round in 1..=5 {
            attempts.follow(std::slice::from_ref(&bare), at(round * 1_000));
            assert_eq!(attempts.follow(std::slice::from_ref(&routed), at(round * 1_000 + 1)), [2]);
            assert_eq!(attempts.next(2, at(round * 1_000 + 1)), None, "it may be tried");
            attempts.begin(2, at(round * 1_000 + 1));
            attempts.fail(2, "no answer".to_owned(), at(round * 1_000 + 2));
        }
        assert_eq!(attempts.next(2, at(5_002)), Some(at(5_002 + 16_000)));
    }

    #[test]
    fn a_link_that_is_gone_leaves_nothing_behind() {
        let mut attempts = Attempts::default();
        attempts.follow(&[Shape::new(2, "wlan0").link()], at(0));
        attempts.follow(&[], at(1));
        attempts.fail(2, "late".to_owned(), at(2));
        assert!(attempts.links.is_empty());
    }
}
