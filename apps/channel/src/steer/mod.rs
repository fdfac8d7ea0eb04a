//! Steering below the transport: two channels that look like one, as in DChannel (NSDI 2023, §3.2).
//!
//! ```text
//!   sender ─ policy ─┬─ high bandwidth ─────────────────────┬─ receiver
//!                    └─ low latency ─ reordering buffer ────┘
//! ```
//!
//! A steerer sees packets, not what is in them: their sizes and the order in which they come. Packets are numbered on
//! entry, as DChannel's prototype does with a header of its own (§4).

mod policy;
mod reorder;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

pub use policy::{Always, Branch, CostReward, Knowledge, PacketSize, PacketState, SteeringPolicy};
use reorder::ReorderingBuffer;

use crate::channel::{Channel, Direction};
use crate::link::{Departure, Verdict};
use crate::quantity::nanoseconds;

/// A packet and its place in the order of its direction.
#[derive(Clone, Debug)]
struct Numbered<T> {
    number: u64,
    packet: T,
}

/// One direction: who decides, and who puts back in order.
#[derive(Debug)]
struct Lane<T> {
    policy: Box<dyn SteeringPolicy>,
    next: u64,
    buffer: ReorderingBuffer<Departure<T>>,
}

impl<T> Lane<T> {
    fn new(policy: Box<dyn SteeringPolicy>) -> Self {
        Self { policy, next: 0, buffer: ReorderingBuffer::default() }
    }
}

/// Two channels below one flow in each direction, with a policy for each.
///
/// It is used like a [`Channel`]: packets go in with [`Steered::enqueue`], [`Steered::next_deadline`] says when there
/// is something to do, [`Steered::dequeue`] hands packets out.
#[derive(Debug)]
pub struct Steered<T> {
    high_bandwidth: Channel<Numbered<T>>,
    low_latency: Channel<Numbered<T>>,
    up: Lane<T>,
    down: Lane<T>,
    ready: VecDeque<(Direction, Departure<T>)>,
}

/// The two channels under a [`Steered`], by what they are good at.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair<C> {
    /// The channel with the high bandwidth (HBC).
    pub high_bandwidth: C,
    /// The channel with the low latency (LLC).
    pub low_latency: C,
}

impl<T: Clone> Steered<T> {
    /// Two channels as `specs` say, with dice from `seed`, steered by the policies `up` and `down`. Fails if a trace
    /// that a channel names cannot be used.
    pub fn new(
        specs: &Pair<crate::ChannelSpec>,
        seed: u64,
        up: Box<dyn SteeringPolicy>,
        down: Box<dyn SteeringPolicy>,
    ) -> Result<Self, crate::TraceError> {
        Ok(Self {
            high_bandwidth: Channel::new(&specs.high_bandwidth, seed)?,
            low_latency: Channel::new(&specs.low_latency, seed.wrapping_add(1))?,
            up: Lane::new(up),
            down: Lane::new(down),
            ready: VecDeque::new(),
        })
    }

    /// Hands in `packet` of `size` bytes at `now`.
    pub fn enqueue(&mut self, direction: Direction, now: Duration, packet: T, size: usize) -> Verdict {
        let lane = match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        };
        let number = lane.next;
        lane.next += 1;
        let channel = match lane.policy.choose(now, size) {
            Branch::HighBandwidth => &mut self.high_bandwidth,
            Branch::LowLatency => &mut self.low_latency,
        };
        channel.enqueue(direction, now, Numbered { number, packet }, size)
    }

    /// When something happens next: a packet leaves, or a gap in the order is given up. `None` if nothing will.
    pub fn next_deadline(&self) -> Option<Duration> {
        if let Some((_, departure)) = self.ready.front() {
            return Some(departure.at);
        }
        let channels = [self.high_bandwidth.next_deadline(), self.low_latency.next_deadline()];
        let buffers = [self.up.buffer.deadline(), self.down.buffer.deadline()];
        channels.into_iter().chain(buffers).flatten().min()
    }

    /// Hands out the next packet that has left by `now`, with the time at which it did.
    pub fn dequeue(&mut self, now: Duration) -> Option<(Direction, Departure<T>)> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            let at = self.next_deadline().filter(|at| *at <= now)?;
            self.give_up(Direction::Up, at);
            self.give_up(Direction::Down, at);
            if let Some((direction, departure)) = self.high_bandwidth.dequeue(at) {
                self.arrive(Branch::HighBandwidth, direction, departure);
            }
            if let Some((direction, departure)) = self.low_latency.dequeue(at) {
                self.arrive(Branch::LowLatency, direction, departure);
            }
        }
    }

    /// Lets nothing through on either channel from `now` on and until `until`.
    pub fn cut(&mut self, now: Duration, until: Duration) {
        self.high_bandwidth.cut(now, until);
        self.low_latency.cut(now, until);
    }

    /// Ends what [`Steered::cut`] began.
    pub fn restore(&mut self, now: Duration) {
        self.high_bandwidth.restore(now);
        self.low_latency.restore(now);
    }

    /// What one of the channels has done in `direction`.
    pub fn statistics(&self, branch: Branch, direction: Direction) -> &crate::LinkStatistics {
        match branch {
            Branch::HighBandwidth => self.high_bandwidth.link(direction).statistics(),
            Branch::LowLatency => self.low_latency.link(direction).statistics(),
        }
    }

    fn lane_mut(&mut self, direction: Direction) -> &mut Lane<T> {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    fn arrive(&mut self, branch: Branch, direction: Direction, departure: Departure<Numbered<T>>) {
        let Departure { packet: Numbered { number, packet }, size, entered, at, congested } = departure;
        let departure = Departure { packet, size, entered, at, congested };
        let buffer = &mut self.lane_mut(direction).buffer;
        let released = buffer.arrive(number, branch, departure, at);
        self.release(direction, released, at);
    }

    fn give_up(&mut self, direction: Direction, at: Duration) {
        let released = self.lane_mut(direction).buffer.give_up(at);
        self.release(direction, released, at);
    }

    fn release(&mut self, direction: Direction, released: Vec<Departure<T>>, at: Duration) {
        self.ready.extend(released.into_iter().map(|departure| (direction, Departure { at, ..departure })));
    }
}

/// How long `bytes` take at `bits_per_second`, in whole nanoseconds.
fn transmission(bytes: usize, bits_per_second: u64) -> Duration {
    let nanos = (bytes as u128 * 8_000_000_000).div_ceil(u128::from(bits_per_second.max(1)));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// `share` of `time`.
fn weighted(time: Duration, share: f64) -> Duration {
    Duration::from_nanos((nanoseconds(time) as f64 * share) as u64)
}
