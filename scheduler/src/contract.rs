//! The contract test suite: what every policy must keep, checked on drawn networks and extreme values.
//!
//! A policy of one's own is tested like those of this crate:
//!
//! ```
//! hvq_scheduler::contract::check(&|| Box::new(hvq_scheduler::MinRtt), 42);
//! ```

use std::time::Duration;

use crate::{
    Bandwidth, Content, Hints, History, Item, Message, Metering, Observation, PathId, PathSet, PathState,
    PathView, PerMille, Placement, Priority, Role, Rtt, Scheduler, Sharing, usable,
};

/// Frames that one call of [`check`] offers.
const FRAMES: usize = 400;

/// Drives two fresh instances of a policy through one network drawn from `seed`, and panics with the clause of the
/// [contract](Scheduler) that an answer breaks.
pub fn check(fresh: &dyn Fn() -> Box<dyn Scheduler>, seed: u64) {
    let mut draw = Draw(seed);
    let (mut policy, mut twin) = (fresh(), fresh());
    assert!(!policy.name().is_empty(), "a policy has a name");
    let mut now = Duration::ZERO;
    let mut paths = draw.paths();
    for _ in 0..FRAMES {
        now = now.saturating_add(draw.duration() / 1000);
        if draw.one_in(8) {
            paths = draw.paths();
        }
        let item = draw.item(now);
        let placement = policy.place(&item, &paths);
        check_answer(placement, &item, &paths);
        assert_eq!(placement, twin.place(&item, &paths), "equal histories give equal answers");
        for observation in draw.observations(&item, &paths) {
            policy.observe(&observation);
            twin.observe(&observation);
        }
        check_progress(&mut *policy, &item, &paths);
        check_progress(&mut *twin, &item, &paths);
    }
}

/// Panics unless `placement` is an answer that the contract permits.
pub fn check_answer(placement: Placement, item: &Item, paths: &[PathView]) {
    let usable = usable(paths);
    match placement {
        Placement::On { path, bytes } => {
            let index = paths.iter().position(|listed| listed.id == path);
            assert!(index.is_some(), "{path} is not a listed path");
            assert!(index.is_some_and(|index| usable.contains(index)), "{path} is not usable, others are");
            assert!(bytes > 0 && bytes <= item.bytes, "{bytes} of {} bytes placed", item.bytes);
            assert!(bytes == item.bytes || item.content.is_divisible(), "{:?} is placed whole", item.content);
        }
        Placement::OnEach(set) => {
            assert!(!set.is_empty(), "a set of paths is not empty");
            assert!(!set.intersection(usable).is_empty(), "{set:?} holds no path that is usable: {usable:?}");
            let is_validated =
                |index: usize| paths.get(index).is_some_and(|path| path.state != PathState::Unvalidated);
            let beside = set.without(usable);
            assert!(beside.iter().all(is_validated), "{set:?} holds paths that are not validated");
        }
        Placement::Wait => {}
        Placement::WaitAtMost(time) => assert!(!time.is_zero(), "a wait takes time"),
    }
}

/// Panics if `policy` waits although every path is idle and has room.
fn check_progress(policy: &mut dyn Scheduler, item: &Item, paths: &[PathView]) {
    let send_allowance = item.bytes.max(1 << 20);
    let idle = |path: &PathView| PathView {
        send_allowance,
        next_send: Duration::ZERO,
        window: send_allowance,
        in_flight: 0,
        backlog: 0,
        others: path.others.map(|_| 0),
        ..*path
    };
    let mut all = [PathView::new(PathId::ZERO); PathSet::CAPACITY];
    for (slot, path) in all.iter_mut().zip(paths) {
        *slot = idle(path);
    }
    let paths = all.get(..paths.len()).unwrap_or(&all);
    let placement = policy.place(item, paths);
    check_answer(placement, item, paths);
    let places = matches!(placement, Placement::On { .. } | Placement::OnEach(_));
    assert!(places, "{placement:?} although every path is idle: {item:?} {paths:?}");
}

/// Draws from a seed (SplitMix64), ordinary values and extreme ones.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn duration(&mut self) -> Duration {
        match self.below(20) {
            0 => Duration::MAX,
            1..=4 => Duration::ZERO,
            _ => Duration::from_micros(self.below(300_000)),
        }
    }

    fn bytes(&mut self) -> usize {
        match self.below(20) {
            0 => usize::MAX,
            1..=5 => 0,
            _ => self.below(100_000) as usize,
        }
    }

    fn rate(&mut self) -> Option<Bandwidth> {
        match self.below(10) {
            0..=1 => None,
            2 => Some(Bandwidth::default()),
            3 => Some(Bandwidth::from_bits_per_second(u64::MAX)),
            _ => Some(Bandwidth::from_bits_per_second(self.below(1_000_000_000))),
        }
    }

    fn path(&mut self, id: u32) -> PathView {
        use PathState::{Available, Backup, Silent, Unvalidated};
        let state = [Available, Available, Backup, Unvalidated, Silent][self.below(5) as usize];
        let rtt = Rtt {
            latest: self.duration(),
            smoothed: self.duration(),
            variance: self.duration(),
            minimum: self.duration(),
        };
        let hints = Hints {
            rate: self.rate(),
            rate_back: self.rate(),
            delay: Some(self.duration()),
            loss: Some(PerMille::new(self.below(1001) as u16)),
            price_per_byte: self.one_in(4).then(|| self.next()),
            shared: [Sharing::Unknown, Sharing::Shared, Sharing::Endpoint, Sharing::Dedicated]
                [self.below(4) as usize],
            metering: [Metering::Unknown, Metering::Unmetered, Metering::Metered][self.below(3) as usize],
        };
        PathView {
            id: PathId(id),
            state,
            send_allowance: self.bytes(),
            next_send: self.duration(),
            window: self.bytes(),
            in_flight: self.bytes(),
            delay: self.duration(),
            rate: self.rate(),
            backlog: self.bytes(),
            others: self.one_in(2).then(|| self.bytes()),
            rtt,
            loss: PerMille::new(self.below(1001) as u16),
            datagram_size: self.bytes(),
            overhead: 21 + self.below(21) as usize,
            lower_headers: [28, 48][self.below(2) as usize],
            hints,
        }
    }

    fn paths(&mut self) -> Vec<PathView> {
        let count = if self.one_in(20) { PathSet::CAPACITY as u64 } else { 1 + self.below(5) };
        let step = 1 + self.below(1 << 25) as u32;
        let mut paths: Vec<_> = (0..count as u32).map(|number| self.path(number * step)).collect();
        let turn = self.below(count) as usize;
        paths.rotate_left(turn);
        paths
    }

    fn any_id(&mut self) -> PathId {
        PathId(self.below(6) as u32)
    }

    fn item(&mut self, now: Duration) -> Item {
        let content = match self.below(8) {
            0 => Content::Acknowledgement { of: self.any_id() },
            1 => Content::Handshake,
            2 => Content::Control,
            3 => Content::Datagram,
            _ => Content::Stream { id: self.below(24) },
        };
        let history = match self.below(6) {
            0 => History::Lost { on: self.any_id() },
            1 => History::Unacknowledged { on: self.any_id(), age: self.duration() },
            _ => History::Fresh,
        };
        let message = self
            .one_in(2)
            .then(|| Message { remaining: self.bytes(), deadline: self.one_in(2).then(|| self.duration()) });
        let priority = Priority { urgency: self.below(10) as u8, incremental: self.one_in(2) };
        let head_of_line_delay = self.duration();
        let role = if self.one_in(2) { Role::Client } else { Role::Server };
        let (pending, credit) = (self.bytes(), self.bytes() as u64);
        let item = Item::new(content, self.bytes().max(1));
        Item { priority, message, pending, credit, role, head_of_line_delay, history, now, ..item }
    }

    fn observations(&mut self, item: &Item, paths: &[PathView]) -> Vec<Observation> {
        let path = paths[self.below(paths.len() as u64) as usize].id;
        let (content, bytes, delay) = (item.content, item.bytes, self.duration());
        let all = [
            Observation::Placed { path, content, bytes },
            Observation::Acknowledged { path, content, bytes, delay },
            Observation::Lost { path, content, bytes, delay },
            Observation::PathGone { path },
        ];
        all.into_iter().filter(|_| self.one_in(3)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Policy;

    proptest! {
        #[test]
        fn every_policy_keeps_the_contract(seed: u64) {
            for name in Policy::NAMES.into_iter().chain(["single:3", "best-pkt-size:250", "obj-size:6000", "xlink:always", "hvc:core"]) {
                let policy: Policy = name.parse().expect("a listed name parses");
                check(&|| policy.scheduler(), seed);
            }
        }
    }

    /// Answers with whatever it was given.
    #[derive(Debug)]
    struct Stubborn(Placement);

    impl Scheduler for Stubborn {
        fn name(&self) -> &'static str {
            "stubborn"
        }

        fn place(&mut self, _: &Item, _: &[PathView]) -> Placement {
            self.0
        }
    }

    #[test]
    fn a_policy_that_breaks_the_contract_is_found_out() {
        let answers = [
            Placement::Wait,
            Placement::WaitAtMost(Duration::ZERO),
            Placement::OnEach(PathSet::EMPTY),
            Placement::On { path: PathId(u32::MAX), bytes: 1 },
            Placement::On { path: PathId::ZERO, bytes: 0 },
            Placement::On { path: PathId::ZERO, bytes: usize::MAX },
        ];
        for answer in answers {
            let found = std::panic::catch_unwind(|| check(&|| Box::new(Stubborn(answer)), 1));
            assert!(found.is_err(), "{answer:?} passed");
        }
    }
}
