//! DChannel's reordering buffer (NSDI 2023, §3.6): packets of the low-latency channel wait for those sent before them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Branch;

/// The time for which a packet waits for those before it. Ideally it would be the delay of the other channel; that
/// varies.
const TIMEOUT: Duration = Duration::from_millis(100);

/// The maximum number of packets that are remembered beyond a gap for which nobody waits; then it is given up.
const MOST_REMEMBERED: usize = 4096;

/// A buffer that puts the packets of a flow in order again: only those that came over the low-latency channel are held,
/// and reordering that others cause is left as it is.
#[derive(Debug)]
pub struct ReorderingBuffer<T> {
    /// The first number that has not arrived and is not given up.
    missing: u64,
    /// Numbers beyond it that arrived and were handed on.
    gone: BTreeSet<u64>,
    /// The packets that wait for the gap before them, with their times of arrival.
    held: BTreeMap<u64, (Duration, T)>,
    timeout: Duration,
}

impl<T> Default for ReorderingBuffer<T> {
    fn default() -> Self {
        Self { missing: 0, gone: BTreeSet::new(), held: BTreeMap::new(), timeout: TIMEOUT }
    }
}

impl<T> ReorderingBuffer<T> {
    /// Packets wait for at most `timeout` from now on; 100 ms unless this is called.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Returns the number of packets that wait.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Takes packet `number`, which came over `branch` at `at`; returns what is handed on now, in order.
    pub fn arrive(&mut self, number: u64, branch: Branch, packet: T, at: Duration) -> Vec<T> {
        if number < self.missing || self.gone.contains(&number) || self.held.contains_key(&number) {
            // A copy, or a packet that was given up.
            return vec![packet];
        }
        if number == self.missing {
            self.missing += 1;
            let mut released = vec![packet];
            self.drain(&mut released);
            return released;
        }
        match branch {
            Branch::LowLatency => {
                self.held.insert(number, (at, packet));
                Vec::new()
            }
            Branch::HighBandwidth => {
                self.gone.insert(number);
                let mut released = vec![packet];
                // Held packets bound their own wait.
                if self.gone.len() > MOST_REMEMBERED && self.held.is_empty() {
                    self.missing = self.gone.first().copied().unwrap_or(self.missing);
                    self.drain(&mut released);
                }
                released
            }
        }
    }

    /// Returns the time at which a packet has waited for long enough.
    pub fn deadline(&self) -> Option<Duration> {
        // The channel is first in, first out: the smallest number has waited the longest.
        self.held.first_key_value().map(|(_, (at, _))| *at + self.timeout)
    }

    /// Hands on what has waited for long enough at `now`, and what follows without a gap.
    pub fn give_up(&mut self, now: Duration) -> Vec<T> {
        let mut released = Vec::new();
        while self.deadline().is_some_and(|deadline| deadline <= now) {
            let Some((number, (_, packet))) = self.held.pop_first() else { break };
            released.push(packet);
            self.missing = number + 1;
            self.gone = self.gone.split_off(&self.missing);
            self.drain(&mut released);
        }
        released
    }

    /// Moves on from `missing` as long as there is no gap.
    fn drain(&mut self, released: &mut Vec<T>) {
        loop {
            if let Some((_, packet)) = self.held.remove(&self.missing) {
                released.push(packet);
            } else if !self.gone.remove(&self.missing) {
                return;
            }
            self.missing += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Branch::{HighBandwidth, LowLatency};

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    #[test]
    fn a_packet_of_the_fast_channel_waits_for_those_before_it() {
        let mut buffer = ReorderingBuffer::default();
        assert!(buffer.arrive(2, LowLatency, "c", ms(3)).is_empty());
        assert_eq!(buffer.arrive(0, HighBandwidth, "a", ms(25)), ["a"]);
        assert_eq!(buffer.arrive(1, HighBandwidth, "b", ms(26)), ["b", "c"]);
        assert_eq!(buffer.deadline(), None);
    }

    #[test]
    fn a_packet_of_the_slow_channel_never_waits() {
        // NSDI 2023, §3.6: the buffer handles the reordering that steering causes and no other.
        let mut buffer = ReorderingBuffer::default();
        assert_eq!(buffer.arrive(1, HighBandwidth, "b", ms(25)), ["b"]);
        assert_eq!(buffer.arrive(0, HighBandwidth, "a", ms(26)), ["a"]);
        assert_eq!(buffer.arrive(2, LowLatency, "c", ms(27)), ["c"]);
    }

    #[test]
    fn after_100_milliseconds_a_gap_is_given_up() {
        let mut buffer = ReorderingBuffer::default();
        assert!(buffer.arrive(1, LowLatency, "b", ms(3)).is_empty());
        assert!(buffer.arrive(2, LowLatency, "c", ms(50)).is_empty());
        assert_eq!(buffer.arrive(4, HighBandwidth, "e", ms(60)), ["e"]);
        assert_eq!(buffer.deadline(), Some(ms(103)));
        assert!(buffer.give_up(ms(102)).is_empty());
        assert_eq!(buffer.give_up(ms(103)), ["b", "c"]);
        assert_eq!(buffer.arrive(0, HighBandwidth, "a", ms(110)), ["a"], "late, but not lost");
        assert_eq!(buffer.arrive(3, LowLatency, "d", ms(120)), ["d"]);
        assert_eq!(buffer.arrive(5, LowLatency, "f", ms(121)), ["f"]);
    }

    #[test]
    fn copies_are_handed_on_once_each() {
        let mut buffer = ReorderingBuffer::default();
        assert!(buffer.arrive(1, LowLatency, "b", ms(3)).is_empty());
        assert_eq!(buffer.arrive(1, LowLatency, "b again", ms(4)), ["b again"]);
        assert_eq!(buffer.arrive(0, HighBandwidth, "a", ms(5)), ["a", "b"]);
        assert_eq!(buffer.arrive(0, HighBandwidth, "a again", ms(6)), ["a again"]);
    }

    #[test]
    fn a_gap_that_nobody_waits_for_does_not_fill_the_memory() {
        let mut buffer = ReorderingBuffer::default();
        for number in 1..3 * MOST_REMEMBERED as u64 {
            assert_eq!(buffer.arrive(number, HighBandwidth, number, ms(number)), [number]);
        }
        assert!(buffer.gone.len() <= MOST_REMEMBERED);
        let next = 3 * MOST_REMEMBERED as u64;
        assert_eq!(buffer.arrive(next, LowLatency, next, ms(next)), [next]);
    }
}
