//! A channel: an uplink and a downlink that belong to one device.

use std::time::Duration;

use crate::link::{Admission, Departure, Link};
use crate::spec::ChannelSpec;
use crate::trace::TraceError;

/// The direction of a packet, as seen from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the device (the client) to the network.
    Up,
    /// From the network to the device.
    Down,
}

/// Two links under one clock. A device that sends keeps its receiver awake (see [`crate::Drx`]).
#[derive(Debug)]
pub struct Channel<T> {
    up: Link<T>,
    down: Link<T>,
}

impl<T: Clone> Channel<T> {
    /// A channel as `spec` says, with dice from `seed`. Loads the traces it names; fails if one cannot be used.
    pub fn new(spec: &ChannelSpec, seed: u64) -> Result<Self, TraceError> {
        Ok(Self {
            up: Link::new(&spec.up, Direction::Up, seed)?,
            down: Link::new(&spec.down, Direction::Down, seed)?,
        })
    }

    /// Hands in a packet; see [`Link::enqueue`].
    pub fn enqueue(&mut self, direction: Direction, now: Duration, packet: T, size: usize) -> Admission {
        if direction == Direction::Up {
            self.down.keep_awake(now);
        }
        self.link_mut(direction).enqueue(now, packet, size)
    }

    /// Returns the time at which the next packet leaves, either way; `None` if none will.
    pub fn next_deadline(&self) -> Option<Duration> {
        [self.up.next_deadline(), self.down.next_deadline()].into_iter().flatten().min()
    }

    /// Hands out the next packet that has left by `now`, in order of departure over both links.
    pub fn dequeue(&mut self, now: Duration) -> Option<(Direction, Departure<T>)> {
        loop {
            let first = match (self.up.next_deadline(), self.down.next_deadline()) {
                (Some(up), Some(down)) if down < up => Direction::Down,
                (None, Some(_)) => Direction::Down,
                _ => Direction::Up,
            };
            let at = self.link(first).next_deadline().filter(|at| *at <= now)?;
            // Only what leaves at that very moment, so that the other link gets its turn; a blackout may swallow it.
            if let Some(departure) = self.link_mut(first).dequeue(at) {
                return Some((first, departure));
            }
        }
    }

    /// Lets nothing through, either way, from `now` on and until `until` (`Duration::MAX` for good).
    pub fn cut(&mut self, now: Duration, until: Duration) {
        self.up.cut(now, until);
        self.down.cut(now, until);
    }

    /// Ends what [`Channel::cut`] began.
    pub fn restore(&mut self, now: Duration) {
        self.up.restore(now);
        self.down.restore(now);
    }

    /// The link of one direction.
    pub fn link(&self, direction: Direction) -> &Link<T> {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    /// The link of one direction, to change it.
    pub fn link_mut(&mut self, direction: Direction) -> &mut Link<T> {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn channel(text: &str) -> Channel<&'static str> {
        Channel::new(&text.parse().unwrap(), 1).unwrap()
    }

    #[test]
    fn both_directions_are_handed_out_in_order_of_departure() {
        let mut channel = channel("up.delay=20ms,down.delay=10ms");
        channel.enqueue(Direction::Up, ms(0), "first up", 100);
        channel.enqueue(Direction::Down, ms(5), "first down", 100);
        channel.enqueue(Direction::Down, ms(15), "second down", 100);
        assert_eq!(channel.next_deadline(), Some(ms(15)));
        let left: Vec<_> = std::iter::from_fn(|| channel.dequeue(ms(100)))
            .map(|(direction, departure)| (direction, departure.packet, departure.at))
            .collect();
        assert_eq!(
            left,
            [
                (Direction::Down, "first down", ms(15)),
                (Direction::Up, "first up", ms(20)),
                (Direction::Down, "second down", ms(25)),
            ]
        );
    }

    #[test]
    fn what_the_device_sends_keeps_its_receiver_awake() {
        let mut quiet = channel("drx=30ms/40ms");
        quiet.enqueue(Direction::Down, ms(60), "answer", 100);
        assert_eq!(quiet.next_deadline(), Some(ms(70)));
        let mut active = channel("drx=30ms/40ms");
        active.enqueue(Direction::Up, ms(50), "request", 100);
        assert!(active.dequeue(ms(50)).is_some());
        active.enqueue(Direction::Down, ms(60), "answer", 100);
        assert_eq!(active.next_deadline(), Some(ms(60)));
    }

    #[test]
    fn a_cut_channel_is_silent_both_ways_until_it_is_restored() {
        let mut channel = channel("rtt=20ms");
        channel.enqueue(Direction::Up, ms(0), "lost on the way", 100);
        channel.cut(ms(5), Duration::MAX);
        channel.enqueue(Direction::Down, ms(6), "lost at once", 100);
        assert!(channel.dequeue(ms(50)).is_none());
        channel.restore(ms(50));
        channel.enqueue(Direction::Down, ms(51), "arrives", 100);
        assert_eq!(channel.dequeue(ms(61)).map(|(_, departure)| departure.packet), Some("arrives"));
    }

    #[test]
    fn the_urllc_preset_carries_2_megabits_with_2_5_ms_each_way() {
        let mut channel = Channel::new(&ChannelSpec::urllc(), 1).unwrap();
        channel.enqueue(Direction::Up, ms(0), (), 1250);
        assert_eq!(channel.next_deadline(), Some(Duration::from_micros(7_500)));
    }
}
