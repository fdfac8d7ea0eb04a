//! The state of a simulation: the time, who waits for which, and the network.

use crate::network::Network;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// The place of a timer in the order of deadlines; those of one time ring in the order in which they were set.
pub(crate) type Key = (Duration, u64);

/// The lock, and the instant that stands for the beginning.
#[derive(Debug)]
pub(crate) struct World {
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// The time since the beginning.
    pub(crate) now: Duration,
    pub(crate) network: Network,
    timers: BTreeMap<Key, Waker>,
    /// Timers that were set so far.
    sequence: u64,
    dice: StdRng,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let state = State {
            now: Duration::ZERO,
            network: Network::new(seed),
            timers: BTreeMap::new(),
            sequence: 0,
            dice: StdRng::seed_from_u64(seed),
        };
        Self { started: Instant::now(), state: Mutex::new(state) }
    }

    /// The state. A panic elsewhere does not keep the others from it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time since the beginning.
    pub(crate) fn now(&self) -> Duration {
        self.lock().now
    }

    /// The instant that stands for now.
    pub(crate) fn instant(&self) -> Instant {
        self.started + self.now()
    }

    /// The time since the beginning that `instant` stands for.
    pub(crate) fn time_of(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.started)
    }

    /// Goes on to the next event, and wakes whom it is for; false if there is none.
    pub(crate) fn advance(&self) -> bool {
        let Some(woken) = self.lock().advance() else { return false };
        woken.into_iter().for_each(Waker::wake);
        true
    }
}

impl State {
    /// Has `waker` woken at `at`, and not when `before` says.
    pub(crate) fn set_timer(&mut self, before: Option<Key>, at: Duration, waker: &Waker) -> Key {
        self.clear_timer(before);
        let key = (at, self.sequence);
        self.sequence += 1;
        self.timers.insert(key, waker.clone());
        key
    }

    pub(crate) fn clear_timer(&mut self, key: Option<Key>) {
        if let Some(key) = key {
            self.timers.remove(&key);
        }
    }

    /// Fills `bytes` as the seed says.
    pub(crate) fn fill_random(&mut self, bytes: &mut [u8]) {
        self.dice.fill_bytes(bytes);
    }

    fn advance(&mut self) -> Option<Vec<Waker>> {
        let ring = self.timers.first_key_value().map(|((at, _), _)| *at);
        let next = [ring, self.network.next_deadline()].into_iter().flatten().min()?;
        self.now = self.now.max(next);
        let mut woken = self.network.deliver(self.now);
        while let Some(first) = self.timers.first_entry().filter(|first| first.key().0 <= self.now) {
            woken.push(first.remove());
        }
        Some(woken)
    }
}
