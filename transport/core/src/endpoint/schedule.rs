//! The order in which connections are polled: those that were touched, in turn, and those whose deadline passed.

use crate::endpoint::ConnectionHandle;
use crate::hashing::{KeyedMap, KeyedSet, shrink};
use crate::time::{Deadline, Instant, TimerReason};
use std::collections::{BTreeMap, VecDeque};

/// Outputs that a connection has in a row at most while others wait: what it has to tell and one or two batches. Its memory is in the
/// processor's cache then; that of hundreds that take turns with each output is not.
const TURN: u32 = 4;

/// Ready connections and deadlines. Most endpoints of clients have one connection, for which no map is used.
#[derive(Debug, Default)]
pub struct Schedule {
    /// In the order of their turns, the one whose turn it is first.
    ready: VecDeque<ConnectionHandle>,
    /// Times that the first was named in its turn.
    named: u32,
    /// Those of `ready`, while there are several.
    is_ready: KeyedSet<ConnectionHandle>,
    sleepers: Sleepers,
    /// The first deadline: it is asked for with every event.
    first: Option<Instant>,
}

/// Connections with deadlines.
#[derive(Debug, Default)]
struct Sleepers {
    /// The only one, if it is alone; then the maps are empty.
    alone: Option<(ConnectionHandle, Deadline)>,
    deadlines: BTreeMap<(Instant, ConnectionHandle), TimerReason>,
    sleeping: KeyedMap<ConnectionHandle, Instant>,
}

impl Schedule {
    /// The connection has something to do.
    pub fn touch(&mut self, handle: ConnectionHandle) {
        // Nearly always it is the one that was touched just now.
        let Some(last) = self.ready.back() else { return self.ready.push_back(handle) };
        if *last == handle {
            return;
        }
        if self.ready.len() == 1 {
            self.is_ready.insert(*last);
        }
        if self.is_ready.insert(handle) {
            self.ready.push_back(handle);
        }
    }

    /// The next connection with something to do. It is named [`TURN`] times in a row, unless it sleeps before, and goes to the end
    /// of the row then.
    pub fn next(&mut self) -> Option<ConnectionHandle> {
        if self.named >= TURN {
            self.named = 0;
            let first = self.ready.pop_front();
            self.ready.extend(first);
        }
        self.named += 1;
        self.ready.front().copied()
    }

    /// The connection has nothing to do until `deadline`.
    pub fn sleep(&mut self, handle: ConnectionHandle, deadline: Option<Deadline>) {
        self.leave(handle);
        match deadline {
            Some(deadline) => self.sleepers.put(handle, deadline),
            None => self.sleepers.remove(handle),
        }
        self.first = self.sleepers.first();
    }

    /// Touches every connection whose deadline is not after `now`.
    #[inline]
    pub fn wake(&mut self, now: Instant) {
        if self.first.is_some_and(|first| first <= now) {
            self.wake_due(now);
        }
    }

    fn wake_due(&mut self, now: Instant) {
        while let Some((handle, _)) = self.sleepers.earliest().filter(|(_, due)| due.at <= now) {
            self.cancel(handle);
            self.touch(handle);
        }
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Deadline> {
        self.sleepers.earliest().map(|(_, deadline)| deadline)
    }

    /// Drops all entries of a connection.
    pub fn forget(&mut self, handle: ConnectionHandle) {
        self.cancel(handle);
        self.leave(handle);
        shrink(&mut self.sleepers.sleeping);
    }

    fn leave(&mut self, handle: ConnectionHandle) {
        let is_first = self.ready.front() == Some(&handle);
        if self.ready.len() > 1 && !self.is_ready.remove(&handle) {
            return;
        }
        // Nearly always it is the one whose turn it is.
        if is_first {
            self.ready.pop_front();
            self.named = 0;
        } else {
            self.ready.retain(|other| *other != handle);
        }
        if let (1, Some(last)) = (self.ready.len(), self.ready.back()) {
            self.is_ready.remove(last);
        }
    }

    fn cancel(&mut self, handle: ConnectionHandle) {
        self.sleepers.remove(handle);
        self.first = self.sleepers.first();
    }
}

impl Sleepers {
    /// Gives the connection `deadline`, in place of what it had.
    fn put(&mut self, handle: ConnectionHandle, deadline: Deadline) {
        if self.sleeping.is_empty() {
            match self.alone.filter(|(other, _)| *other != handle) {
                Some((other, of_other)) => {
                    self.alone = None;
                    self.enter(other, of_other);
                }
                None => {
                    if self.alone.is_none_or(|(_, known)| known.at != deadline.at) {
                        self.alone = Some((handle, deadline));
                    }
                    return;
                }
            }
        }
        self.enter(handle, deadline);
    }

    fn enter(&mut self, handle: ConnectionHandle, Deadline { at, reason }: Deadline) {
        if let Some(before) = self.sleeping.insert(handle, at) {
            if before == at {
                return;
            }
            self.deadlines.remove(&(before, handle));
        }
        self.deadlines.insert((at, handle), reason);
    }

    fn remove(&mut self, handle: ConnectionHandle) {
        if self.alone.take_if(|(other, _)| *other == handle).is_some() || self.sleeping.is_empty() {
            return;
        }
        if let Some(at) = self.sleeping.remove(&handle) {
            self.deadlines.remove(&(at, handle));
        }
        // The last one needs no maps.
        if let (1, Some((only, deadline))) = (self.sleeping.len(), self.earliest()) {
            self.sleeping.remove(&only);
            self.deadlines.clear();
            self.alone = Some((only, deadline));
        }
    }

    /// The connection with the earliest deadline.
    fn earliest(&self) -> Option<(ConnectionHandle, Deadline)> {
        let of_several = || {
            let (&(at, handle), &reason) = self.deadlines.first_key_value()?;
            Some((handle, Deadline::new(at, reason)))
        };
        self.alone.or_else(of_several)
    }

    fn first(&self) -> Option<Instant> {
        self.earliest().map(|(_, deadline)| deadline.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
        let mut turn = || (0..TURN).map(|_| schedule.next()).collect::<Vec<_>>();
        for handle in [a, b, a] {
            assert_eq!(turn(), [Some(handle); TURN as usize]);
        }
        assert_eq!(schedule.next(), Some(b));
        schedule.sleep(b, at(10));
        assert_eq!(schedule.next(), Some(a), "who sleeps leaves the rest of its turn to the next");
        schedule.sleep(a, at(20));
        schedule.sleep(a, at(5));
        assert_eq!(schedule.next(), None);
        assert_eq!(schedule.deadline().map(|d| d.at.as_nanos()), Some(5));
        schedule.wake(Instant::from_nanos(7));
        schedule.touch(b);
        assert_eq!(schedule.next(), Some(a));
        schedule.forget(a);
        assert_eq!((schedule.next(), schedule.next()), (Some(b), Some(b)));
        schedule.forget(b);
        assert_eq!((schedule.next(), schedule.deadline()), (None, None));
    }

    proptest! {
        #[test]
        fn one_connection_and_several_are_kept_alike(steps in proptest::collection::vec((0u64..3, 0u64..6), 0..60)) {
            // Those of the model are never alone: the last of them sleeps for ever.
            let (mut schedule, mut model) = (Schedule::default(), Schedule::default());
            let others = [ConnectionHandle(8), ConnectionHandle(9)];
            let far = |schedule: &mut Schedule| {
                others.map(|other| schedule.sleep(other, Some(Deadline::new(Instant::FAR_FUTURE, TimerReason::Idle))))
            };
            far(&mut model);
            for (index, (handle, what)) in steps.into_iter().enumerate() {
                let (handle, now) = (ConnectionHandle(handle), Instant::from_nanos(index as u64));
                for schedule in [&mut schedule, &mut model] {
                    match what {
                        0 | 1 => schedule.touch(handle),
                        2 => schedule.sleep(handle, None),
                        3 => schedule.forget(handle),
                        _ => schedule.sleep(handle, at(index as u64 + what * 3 % 7)),
                    }
                    schedule.wake(now);
                }
                let earliest = model.deadline().filter(|deadline| deadline.at != Instant::FAR_FUTURE);
                prop_assert_eq!(schedule.deadline(), earliest);
                prop_assert_eq!(&schedule.ready, &model.ready);
                prop_assert_eq!(schedule.next(), model.next());
                let held = if schedule.ready.len() > 1 { schedule.ready.len() } else { 0 };
                prop_assert_eq!(schedule.is_ready.len(), held);
            }
        }
    }
}
