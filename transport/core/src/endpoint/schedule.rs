//! The order in which connections are polled: those that were touched, in turn, and those whose deadline passed.

use crate::endpoint::ConnectionHandle;
use crate::hashing::{KeyedMap, KeyedSet, shrink};
use crate::time::{Deadline, Instant, TimerReason};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// Ready connections and deadlines.
#[derive(Debug, Default)]
pub struct Schedule {
    ready: VecDeque<ConnectionHandle>,
    is_ready: KeyedSet<ConnectionHandle>,
    deadlines: BTreeMap<(Instant, ConnectionHandle), TimerReason>,
    sleeping: KeyedMap<ConnectionHandle, Instant>,
    /// The first of `deadlines`: it is asked for with every event.
    first: Option<Instant>,
}

impl Schedule {
    /// The connection has something to do.
    pub fn touch(&mut self, handle: ConnectionHandle) {
        // Nearly always it is the one that was touched just now.
        if self.ready.back() != Some(&handle) && self.is_ready.insert(handle) {
            self.ready.push_back(handle);
        }
    }

    /// The next connection with something to do, which goes to the end of the row and leaves it when it sleeps.
    pub fn next(&mut self) -> Option<ConnectionHandle> {
        if self.ready.len() > 1
            && let Some(first) = self.ready.pop_front()
        {
            self.ready.push_back(first);
        }
        self.ready.back().copied()
    }

    /// The connection has nothing to do until `deadline`.
    pub fn sleep(&mut self, handle: ConnectionHandle, deadline: Option<Deadline>) {
        self.leave(handle);
        let Some(Deadline { at, reason }) = deadline else { return self.cancel(handle) };
        match self.sleeping.entry(handle) {
            Entry::Occupied(known) if *known.get() == at => return,
            Entry::Occupied(mut known) => {
                let before = std::mem::replace(known.get_mut(), at);
                self.deadlines.remove(&(before, handle));
            }
            Entry::Vacant(place) => {
                place.insert(at);
            }
        }
        self.deadlines.insert((at, handle), reason);
        self.first = self.deadlines.first_key_value().map(|(&(at, _), _)| at);
    }

    /// Touches every connection whose deadline is not after `now`.
    #[inline]
    pub fn wake(&mut self, now: Instant) {
        if self.first.is_some_and(|first| first <= now) {
            self.wake_due(now);
        }
    }

    fn wake_due(&mut self, now: Instant) {
        while let Some((&(at, handle), _)) = self.deadlines.first_key_value() {
            if at > now {
                return;
            }
            self.cancel(handle);
            self.touch(handle);
        }
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Deadline> {
        self.deadlines.first_key_value().map(|(&(at, _), &reason)| Deadline::new(at, reason))
    }

    /// Drops all entries of a connection.
    pub fn forget(&mut self, handle: ConnectionHandle) {
        self.cancel(handle);
        self.leave(handle);
        shrink(&mut self.sleeping);
    }

    fn leave(&mut self, handle: ConnectionHandle) {
        if !self.is_ready.remove(&handle) {
            return;
        }
        // Nearly always it is the one that was next just now.
        if self.ready.back() == Some(&handle) {
            self.ready.pop_back();
        } else {
            self.ready.retain(|other| *other != handle);
        }
    }

    fn cancel(&mut self, handle: ConnectionHandle) {
        if let Some(at) = self.sleeping.remove(&handle) {
            self.deadlines.remove(&(at, handle));
            self.first = self.deadlines.first_key_value().map(|(&(at, _), _)| at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Option<Deadline> {
        Some(Deadline::new(Instant::from_nanos(nanos), TimerReason::Idle))
    }

    #[test]
    fn touched_connections_take_turns_and_deadlines_wake_sleepers() {
        let (a, b) = (ConnectionHandle(1), ConnectionHandle(2));
        let mut schedule = Schedule::default();
        schedule.touch(a);
        schedule.touch(b);
        schedule.touch(a);
        assert_eq!((schedule.next(), schedule.next(), schedule.next()), (Some(a), Some(b), Some(a)));
        schedule.sleep(a, at(20));
        schedule.sleep(b, at(10));
        schedule.sleep(a, at(5));
        assert_eq!(schedule.next(), None);
        assert_eq!(schedule.deadline().map(|d| d.at.as_nanos()), Some(5));
        schedule.wake(Instant::from_nanos(7));
        schedule.touch(b);
        assert_eq!((schedule.next(), schedule.next()), (Some(a), Some(b)));
        schedule.forget(a);
        assert_eq!((schedule.next(), schedule.next()), (Some(b), Some(b)));
        schedule.forget(b);
        assert_eq!((schedule.next(), schedule.deadline()), (None, None));
    }
}
