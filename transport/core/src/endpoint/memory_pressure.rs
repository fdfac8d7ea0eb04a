//! Memory pressure: while packets are dropped because memory is short, those connections give way in which data lies that their
//! applications do not read. Whoever reads gets on, however slowly, and is never closed for what it was permitted to receive.

use crate::endpoint::{ConnectionHandle, Endpoint};
use crate::time::{Deadline, Instant, TimerReason};
use std::cmp::Reverse;
use std::time::Duration;

/// The time for which data may lie unread while memory is short.
const PATIENCE: Duration = Duration::from_secs(10);
/// The part of all memory that is free once enough have given way, as a divisor.
const RELIEF: usize = 8;

/// The reviews of what connections hold, while memory is short.
#[derive(Debug, Default)]
pub struct MemoryPressure {
    /// Packets that had been dropped at the last review.
    dropped: u64,
    /// The next review, while there is pressure.
    review_at: Option<Instant>,
}

/// The work of a review.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Review {
    /// There is none.
    None,
    /// The first, which remembers who holds what.
    First,
    /// Data that was there at the last review, and is still, has had its time.
    Next,
}

impl MemoryPressure {
    /// The time of the next review.
    pub fn deadline(&self) -> Option<Deadline> {
        self.review_at.map(|at| Deadline::new(at, TimerReason::MemoryPressure))
    }

    /// Takes account of the packets that were `dropped` so far.
    #[inline]
    fn begin(&mut self, dropped: u64, now: Instant) -> Review {
        let is_new = dropped != self.dropped;
        match self.review_at {
            None if !is_new => return Review::None,
            Some(at) if now < at => return Review::None,
            _ => {}
        }
        let review = if self.review_at.is_none() { Review::First } else { Review::Next };
        self.dropped = dropped;
        // Without a drop since the last review the pressure is over.
        self.review_at = is_new.then_some(now + PATIENCE);
        if is_new { review } else { Review::None }
    }
}

impl Endpoint {
    /// Has connections give way if memory was short for a while.
    #[inline]
    pub(super) fn relieve_memory(&mut self, now: Instant) {
        match self.pressure.begin(self.memory.dropped(), now) {
            Review::None => {}
            Review::First => drop(self.backlogs()),
            Review::Next => self.close_the_worst(now),
        }
    }

    /// The bytes that lie unread since the last review, by connection, most first.
    fn backlogs(&mut self) -> Vec<(Reverse<usize>, ConnectionHandle)> {
        let all = self.connections.iter_mut();
        let mut backlogs: Vec<_> =
            all.map(|(handle, connection)| (Reverse(connection.review_backlog()), *handle)).collect();
        backlogs.sort_unstable();
        backlogs
    }

    fn close_the_worst(&mut self, now: Instant) {
        let backlogs = self.backlogs();
        if !self.memory.is_short() {
            return;
        }
        // Those that hold less than half of what each might have do not fill the memory.
        let (least, enough) = (self.memory.fair_share() / 2, self.memory.limit() / RELIEF);
        let mut freed = 0;
        for (Reverse(bytes), handle) in backlogs {
            if freed >= enough || bytes <= least {
                return;
            }
            if let Some(connection) = self.connections.get_mut(&handle) {
                connection.give_up_memory(now);
                self.schedule.touch(handle);
                freed += bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn reviews_follow_each_other_while_packets_are_dropped() {
        let mut pressure = MemoryPressure::default();
        let next = |pressure: &MemoryPressure| pressure.deadline().map(|deadline| deadline.at);
        assert_eq!((pressure.begin(0, at(5)), next(&pressure)), (Review::None, None), "nothing was dropped");
        assert_eq!((pressure.begin(1, at(6)), next(&pressure)), (Review::First, Some(at(16))));
        assert_eq!((pressure.begin(7, at(15)), next(&pressure)), (Review::None, Some(at(16))));
        assert_eq!((pressure.begin(8, at(16)), next(&pressure)), (Review::Next, Some(at(26))));
        assert_eq!((pressure.begin(8, at(26)), next(&pressure)), (Review::None, None), "it is over");
        assert_eq!((pressure.begin(8, at(27)), next(&pressure)), (Review::None, None));
        assert_eq!((pressure.begin(9, at(28)), next(&pressure)), (Review::First, Some(at(38))));
    }
}
