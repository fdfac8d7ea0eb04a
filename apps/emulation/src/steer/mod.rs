//! Steering below the transport: two channels that look like one, as in DChannel (NSDI 2023, §3.2).
//!
//! ```text
//!   sender ─ policy ─┬─ high bandwidth ─────────────────────┬─ receiver
//!                    └─ low latency ─ reordering buffer ────┘
//! ```
//!
//! A steerer sees packets, not what is in them: their sizes, the flows to which they belong, and the order in which
//! they come. Packets are numbered on entry, flow by flow, as DChannel's prototype does with a header of its own (§4).

mod asap;
mod estimate;
mod foresight;
mod occupancy;
mod policy;
mod reorder;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

pub use asap::Asap;
pub use estimate::Estimate;
use foresight::{Arrivals, Foresight};
pub use occupancy::Occupancy;
pub use policy::{
    Always, Branch, CostReward, DelaySource, Knowledge, PacketSize, PacketState, SteeringPolicy,
};
pub use reorder::ReorderingBuffer;

use crate::channel::{Channel, Direction};
use crate::link::{Admission, Departure};
use crate::quantity::nanoseconds;

/// One direction of one transport connection, as its addresses and ports tell it from others (NSDI 2023, §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow(pub u64);

/// A packet that is handed to a [`Steered`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent<T> {
    /// The flow of the packet. Packets wait only for those of their own flow.
    pub flow: Flow,
    /// The packet.
    pub packet: T,
    /// Its size in bytes.
    pub size: usize,
}

/// The sides of the channels that have a reordering buffer (NSDI 2023, Fig. 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Reordering {
    /// The device and the proxy.
    #[default]
    BothSides,
    /// The device alone: what it sends may arrive out of order.
    ClientSide,
    /// Neither of them.
    Nowhere,
}

/// A packet and its place in the order of its flow.
#[derive(Clone, Debug)]
struct Numbered<T> {
    flow: Flow,
    number: u64,
    packet: T,
}

/// One flow: the next number, and what waits.
#[derive(Debug)]
struct Sequence<T> {
    next: u64,
    buffer: ReorderingBuffer<Departure<T>>,
}

impl<T> Default for Sequence<T> {
    fn default() -> Self {
        Self { next: 0, buffer: ReorderingBuffer::default() }
    }
}

/// One direction: who decides, and who puts back in order.
#[derive(Debug)]
struct Lane<T> {
    policy: Box<dyn SteeringPolicy>,
    flows: BTreeMap<Flow, Sequence<T>>,
    /// The flows of which something waits.
    waiting: BTreeSet<Flow>,
    reorders: bool,
    occupancy: Occupancy,
    /// `None` if nobody will ask.
    foresight: Option<Foresight>,
    /// The channel of the last packet.
    last: Option<Branch>,
}

impl<T> Lane<T> {
    fn new(policy: Box<dyn SteeringPolicy>) -> Self {
        Self {
            policy,
            flows: BTreeMap::new(),
            waiting: BTreeSet::new(),
            reorders: true,
            occupancy: Occupancy::default(),
            foresight: Some(Foresight::default()),
            last: None,
        }
    }

    /// Returns the time at which a packet has waited for long enough.
    fn deadline(&self) -> Option<Duration> {
        self.waiting.iter().filter_map(|flow| self.flows.get(flow)?.buffer.deadline()).min()
    }

    /// Keeps the list of flows of which something waits.
    fn note_waiting(&mut self, flow: Flow) {
        match self.flows.get(&flow).and_then(|sequence| sequence.buffer.deadline()) {
            Some(_) => self.waiting.insert(flow),
            None => self.waiting.remove(&flow),
        };
    }
}

/// Two channels below the flows of one device, with a policy for each direction.
///
/// It is used like a [`Channel`]: packets go in with [`Steered::enqueue`], [`Steered::next_deadline`] says when there
/// is something to do, [`Steered::dequeue`] hands packets out.
#[derive(Debug)]
pub struct Steered<T> {
    high_bandwidth: Channel<Numbered<T>>,
    low_latency: Channel<Numbered<T>>,
    up: Lane<T>,
    down: Lane<T>,
    ready: VecDeque<Delivered<T>>,
    measured: Measured,
}

/// A packet that comes out, and the channel that it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered<T> {
    /// The direction in which it went.
    pub direction: Direction,
    /// The channel.
    pub branch: Branch,
    /// The packet; it left when the reordering buffer let it go.
    pub departure: Departure<T>,
    /// The time for which the reordering buffer held it.
    pub held: Duration,
}

/// The schedule of the measurements of delay.
#[derive(Clone, Copy, Debug)]
struct Measured {
    next: Duration,
    every: Duration,
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
            measured: Measured { next: Duration::ZERO, every: estimate::INTERVAL },
        })
    }

    /// Sets the sides that have reordering buffers; both by default.
    #[must_use]
    pub fn with_reordering(mut self, reordering: Reordering) -> Self {
        self.up.reorders = reordering == Reordering::BothSides;
        self.down.reorders = reordering != Reordering::Nowhere;
        self
    }

    /// Without a record of how right the policies were, which grows with every packet: [`Steered::reward_errors`] stays
    /// empty.
    #[must_use]
    pub fn without_foresight(mut self) -> Self {
        self.up.foresight = None;
        self.down.foresight = None;
        self
    }

    /// Hands in a packet at `now`.
    pub fn enqueue(&mut self, direction: Direction, now: Duration, sent: Sent<T>) -> Admission {
        self.measure(now);
        let Sent { flow, packet, size } = sent;
        let arrivals = self.lane(direction).foresight.is_some().then(|| Arrivals {
            high_bandwidth: self.high_bandwidth.link(direction).foresee(now, size),
            low_latency: self.low_latency.link(direction).foresee(now, size),
        });
        let lane = self.lane_mut(direction);
        let branch = lane.policy.choose(now, flow, size);
        lane.last = Some(branch);
        let expected = lane.policy.expected_reward();
        if let (Some(foresight), Some(arrivals), Some(reward)) = (&mut lane.foresight, arrivals, expected) {
            foresight.note(flow, arrivals, branch, reward);
        }
        let sequence = lane.flows.entry(flow).or_default();
        let number = sequence.next;
        sequence.next += 1;
        let channel = match branch {
            Branch::HighBandwidth => &mut self.high_bandwidth,
            Branch::LowLatency => &mut self.low_latency,
        };
        let verdict = channel.enqueue(direction, now, Numbered { flow, number, packet }, size);
        if direction == Direction::Up {
            self.keep_awake(now);
        }
        verdict
    }

    /// The channel that the last packet of `direction` was given to, which may have dropped it; `None` before the first.
    pub fn last_branch(&self, direction: Direction) -> Option<Branch> {
        self.lane(direction).last
    }

    /// Tells the policies the delays of both channels as a handshake at `now` would measure them, if that is due.
    fn measure(&mut self, now: Duration) {
        if now < self.measured.next {
            return;
        }
        self.measured.next = now + self.measured.every;
        for direction in [Direction::Up, Direction::Down] {
            let estimate = Estimate {
                high_bandwidth: self.high_bandwidth.link(direction).propagation(now),
                low_latency: self.low_latency.link(direction).propagation(now),
            };
            self.lane_mut(direction).policy.on_estimate(estimate);
        }
    }

    /// Returns the time of the next event: a packet leaves, or a gap in the order is given up. `None` if nothing will.
    pub fn next_deadline(&self) -> Option<Duration> {
        if let Some(delivered) = self.ready.front() {
            return Some(delivered.departure.at);
        }
        let channels = [self.high_bandwidth.next_deadline(), self.low_latency.next_deadline()];
        let buffers = [self.up.deadline(), self.down.deadline()];
        channels.into_iter().chain(buffers).flatten().min()
    }

    /// Hands out the next packet that has left by `now`, with the time at which it did.
    pub fn dequeue(&mut self, now: Duration) -> Option<(Direction, Departure<T>)> {
        self.deliver(now).map(|delivered| (delivered.direction, delivered.departure))
    }

    /// Like [`Steered::dequeue`], and says which channel the packet took.
    pub fn deliver(&mut self, now: Duration) -> Option<Delivered<T>> {
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

    /// The device was in use at `now`: both channels are its own, so it stays awake for either (NSDI 2023, §4.2.2).
    pub fn keep_awake(&mut self, now: Duration) {
        self.high_bandwidth.link_mut(Direction::Down).keep_awake(now);
        self.low_latency.link_mut(Direction::Down).keep_awake(now);
    }

    /// Ends what [`Steered::cut`] began.
    pub fn restore(&mut self, now: Duration) {
        self.high_bandwidth.restore(now);
        self.low_latency.restore(now);
    }

    /// Returns the statistics of one of the channels in `direction`.
    pub fn statistics(&self, branch: Branch, direction: Direction) -> &crate::LinkStatistics {
        match branch {
            Branch::HighBandwidth => self.high_bandwidth.link(direction).statistics(),
            Branch::LowLatency => self.low_latency.link(direction).statistics(),
        }
    }

    /// Returns the occupancy of the reordering buffer of `direction`: the client's is that of [`Direction::Down`].
    pub fn occupancy(&self, direction: Direction) -> Occupancy {
        self.lane(direction).occupancy
    }

    /// For each packet of `direction`, how much more it really gained on the low-latency channel than its policy
    /// expected, in milliseconds (NSDI 2023, Fig. 11). Empty if the policy expects nothing.
    pub fn reward_errors(&self, direction: Direction) -> &[f64] {
        self.lane(direction).foresight.as_ref().map_or(&[], Foresight::errors)
    }

    fn lane(&self, direction: Direction) -> &Lane<T> {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    fn lane_mut(&mut self, direction: Direction) -> &mut Lane<T> {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    fn arrive(&mut self, branch: Branch, direction: Direction, departure: Departure<Numbered<T>>) {
        let Departure { packet: Numbered { flow, number, packet }, size, entered, at, congested } = departure;
        let departure = Departure { packet, size, entered, at, congested };
        if direction == Direction::Down {
            self.keep_awake(at);
        }
        let lane = self.lane_mut(direction);
        let released = if lane.reorders {
            let released = lane.flows.entry(flow).or_default().buffer.arrive(number, branch, departure, at);
            lane.note_waiting(flow);
            released
        } else {
            vec![departure]
        };
        match released.split_first() {
            None => lane.occupancy.hold(at, size),
            Some((_, held)) => held.iter().for_each(|packet| lane.occupancy.release(at, packet.size)),
        }
        let mut released = released.into_iter();
        self.release(direction, branch, released.next(), at);
        // Only packets of the low-latency channel are held.
        self.release(direction, Branch::LowLatency, released, at);
    }

    fn give_up(&mut self, direction: Direction, at: Duration) {
        let mut released = Vec::new();
        let lane = self.lane_mut(direction);
        let waiting: Vec<Flow> = lane.waiting.iter().copied().collect();
        for flow in waiting {
            if let Some(sequence) = lane.flows.get_mut(&flow) {
                released.extend(sequence.buffer.give_up(at));
            }
            lane.note_waiting(flow);
        }
        released.iter().for_each(|packet| lane.occupancy.release(at, packet.size));
        self.release(direction, Branch::LowLatency, released, at);
    }

    fn release(
        &mut self,
        direction: Direction,
        branch: Branch,
        released: impl IntoIterator<Item = Departure<T>>,
        at: Duration,
    ) {
        self.ready.extend(released.into_iter().map(|departure| {
            let held = at.saturating_sub(departure.at);
            Delivered { direction, branch, departure: Departure { at, ..departure }, held }
        }));
    }
}

/// Returns the transmission time of `bytes` at `bits_per_second`, in whole nanoseconds.
fn transmission(bytes: usize, bits_per_second: u64) -> Duration {
    let nanos = (bytes as u128 * 8_000_000_000).div_ceil(u128::from(bits_per_second.max(1)));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// `share` of `time`.
fn weighted(time: Duration, share: f64) -> Duration {
    Duration::from_nanos((nanoseconds(time) as f64 * share) as u64)
}
