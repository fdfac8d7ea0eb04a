//! One direction of a channel: packets go in, and come out later or not at all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::blackout::Blackouts;
use crate::channel::Direction;
use crate::delay::DelayModel;
use crate::drx::Sleep;
use crate::loss::Loss;
use crate::mobility::{Detour, detour};
use crate::quantity::{Probability, nanoseconds};
use crate::queue::Queue;
use crate::rate::{NEVER, RateModel};
use crate::series::Series;
use crate::spec::{LinkSpec, Reorder};
use crate::statistics::LinkStatistics;
use crate::trace::TraceError;

mod flight;
#[cfg(test)]
mod tests;

use flight::Flying;

/// The limit on the bytes that a link holds, whatever its queue and delay allow: network input never fills the memory.
const MOST_HELD_BYTES: u64 = 512 << 20;

/// The reason for which a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// The queue was full.
    Queue,
    /// Random loss.
    Random,
    /// Bursty loss.
    Burst,
    /// The link was cut when the packet entered or when it would have left.
    Blackout,
    /// The link held as much as it may hold in memory.
    Memory,
}

impl DropReason {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::Queue, Self::Random, Self::Burst, Self::Blackout, Self::Memory];
}

/// The outcome of handing in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is on its way (a blackout may still swallow it at the end).
    Accepted,
    /// It is gone.
    Dropped(DropReason),
}

/// A packet that comes out of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure<T> {
    /// The packet that was handed in.
    pub packet: T,
    /// Its size as handed in, in bytes.
    pub size: usize,
    /// The time at which it entered.
    pub entered: Duration,
    /// The time at which it left, at which it should have been asked for.
    pub at: Duration,
    /// True if the queue asks for the mark of congestion (RFC 3168), which goes on packets that are ECN-capable.
    pub congested: bool,
}

/// One direction of a channel. Times are since the start of the channel and should not go backwards; a packet that is
/// handed in "before" the last one counts as handed in with it.
#[derive(Debug)]
pub struct Link<T> {
    loss: Loss,
    queue: Queue,
    sleep: Option<Sleep>,
    rate: RateModel,
    delay: DelayModel,
    detours: Vec<Detour>,
    delay_chance: StdRng,
    order: Order,
    blackouts: Blackouts,
    overhead: usize,
    flight: BinaryHeap<Reverse<Flying<T>>>,
    /// Packets handed to `flight` so far.
    sequence: u64,
    held_bytes: u64,
    now: Duration,
    statistics: LinkStatistics,
    series: Option<Series>,
}

/// The order in which packets leave: first in, first out, but for deliberate exceptions.
#[derive(Debug)]
struct Order {
    last_release: Duration,
    reorder: Option<Reorder>,
    duplicate: Probability,
    chance: StdRng,
}

impl Order {
    /// Returns the time at which a packet leaves whose delay is over at `arrival`.
    fn release(&mut self, arrival: Duration) -> Duration {
        let in_turn = arrival.max(self.last_release);
        match self.reorder {
            Some(reorder) if reorder.chance.happens(&mut self.chance) => {
                let most = nanoseconds(reorder.by).max(1);
                in_turn.saturating_add(Duration::from_nanos(self.chance.random_range(1..=most)))
            }
            _ => {
                self.last_release = in_turn;
                in_turn
            }
        }
    }
}

impl<T: Clone> Link<T> {
    /// A link as `spec` says, with dice from `seed`; the direction chooses the column of a rate trace. Two links with
    /// the same arguments and the same input do the same. Fails if a trace cannot be used.
    pub fn new(spec: &LinkSpec, direction: Direction, seed: u64) -> Result<Self, TraceError> {
        // Separate dice for each purpose: what is lost does not depend on which delays were drawn.
        let dice = |purpose: u64| {
            let direction = match direction {
                Direction::Up => 0,
                Direction::Down => 4,
            };
            StdRng::seed_from_u64(seed.wrapping_mul(8).wrapping_add(direction + purpose))
        };
        Ok(Self {
            loss: Loss::new(spec.loss, spec.burst, dice(0)),
            queue: Queue::new(spec.queue, spec.ecn),
            sleep: spec.drx.map(Sleep::new),
            rate: RateModel::load(spec, direction)?,
            delay: DelayModel::load(&spec.delay, spec.replay)?,
            detours: spec.detours.clone(),
            delay_chance: dice(1),
            order: Order {
                last_release: Duration::ZERO,
                reorder: spec.reorder,
                duplicate: spec.duplicate,
                chance: dice(2),
            },
            blackouts: Blackouts::new(spec.blackouts.clone()),
            overhead: spec.overhead,
            flight: BinaryHeap::new(),
            sequence: 0,
            held_bytes: 0,
            now: Duration::ZERO,
            statistics: LinkStatistics::new(),
            series: None,
        })
    }

    /// Hands in `packet` of `size` bytes at `now`.
    pub fn enqueue(&mut self, now: Duration, packet: T, size: usize) -> Admission {
        let now = self.advance(now);
        let size_sent = size.saturating_add(self.overhead);
        self.statistics.entered.add(size);
        if let Some(series) = &mut self.series {
            series.at(now).entered += size as u64;
        }
        if let Some(reason) = self.obstacle(now, size, size_sent) {
            self.drop(now, size, reason);
            return Admission::Dropped(reason);
        }
        let congested = self.queue.marks(size_sent);
        let sent_at = self.send(now, size_sent);
        let release = if sent_at == NEVER {
            NEVER
        } else {
            let delay = self.delay.at(sent_at, &mut self.delay_chance) + detour(&self.detours, sent_at);
            self.order.release(sent_at.saturating_add(delay))
        };
        if self.order.duplicate.happens(&mut self.order.chance) {
            self.statistics.duplicated.add(size);
            self.fly(Departure { packet: packet.clone(), size, entered: now, at: release, congested });
        }
        self.fly(Departure { packet, size, entered: now, at: release, congested });
        Admission::Accepted
    }

    /// Returns the time at which the next packet leaves; `None` if none will.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.flight.peek().map(|Reverse(flying)| flying.departure.at).filter(|at| *at != NEVER)
    }

    /// Hands out the next packet that has left by `now`.
    pub fn dequeue(&mut self, now: Duration) -> Option<Departure<T>> {
        let now = self.advance(now);
        while self.next_deadline().is_some_and(|at| at <= now) {
            let Reverse(flying) = self.flight.pop()?;
            let departure = flying.departure;
            self.held_bytes -= departure.size as u64;
            if self.blackouts.cover(departure.at) {
                self.drop(departure.at, departure.size, DropReason::Blackout);
                continue;
            }
            self.statistics.leave(departure.size, departure.at - departure.entered);
            if departure.congested {
                self.statistics.congested.add(departure.size);
            }
            if let Some(series) = &mut self.series {
                series.at(departure.at).left += departure.size as u64;
            }
            return Some(departure);
        }
        None
    }

    /// Lets nothing through from `now` on and until `until` (`Duration::MAX` for good).
    pub fn cut(&mut self, now: Duration, until: Duration) {
        self.blackouts.cut(now, until);
    }

    /// Ends what [`Link::cut`] began; planned blackouts stay.
    pub fn restore(&mut self, now: Duration) {
        self.blackouts.restore(now);
    }

    /// The device was active at `now`: it stays awake for another idle time.
    pub fn keep_awake(&mut self, now: Duration) {
        if let Some(sleep) = &mut self.sleep {
            // A device that is asleep and has something to send wakes up by itself.
            sleep.keep_awake(now);
        }
    }

    /// Records bytes over time from now on, in buckets of `width` (100 ms, say).
    pub fn record_series(&mut self, width: Duration) {
        self.series = Some(Series::new(width));
    }

    /// The delay at `now` of a packet that waits for nothing; of a drawn delay, its mean.
    pub fn propagation(&self, now: Duration) -> Duration {
        self.delay.expected(now) + detour(&self.detours, now)
    }

    /// Returns the time at which a packet of `size` bytes that is handed in at `now` would leave if nothing drops it;
    /// of a drawn delay the mean counts. `Duration::MAX` if it never would.
    pub fn foresee(&self, now: Duration, size: usize) -> Duration {
        let ready = self.sleep.as_ref().map_or(now, |sleep| sleep.ready_at(now));
        let size_sent = size.saturating_add(self.overhead);
        let sent_at = self.rate.sent_at(ready.max(self.queue.busy_until()), size_sent);
        if sent_at == NEVER {
            return NEVER;
        }
        sent_at.saturating_add(self.propagation(sent_at)).max(self.order.last_release)
    }

    /// Bytes over time, if asked for with [`Link::record_series`].
    pub fn series(&self) -> Option<&Series> {
        self.series.as_ref()
    }

    /// The counters.
    pub fn statistics(&self) -> &LinkStatistics {
        &self.statistics
    }

    /// Returns the time from `now` until all that is in the queue has been sent, the packet being sent included.
    pub fn queueing(&self, now: Duration) -> Duration {
        self.queue.busy_until().saturating_sub(now)
    }

    /// Returns the number of packets inside, copies included.
    pub fn held_packets(&self) -> usize {
        self.flight.len()
    }

    /// Returns the number of bytes inside (sizes as handed in).
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    fn advance(&mut self, now: Duration) -> Duration {
        self.now = self.now.max(now);
        self.queue.advance(self.now);
        self.now
    }

    /// Returns the reason for which a packet cannot enter, if there is one.
    fn obstacle(&mut self, now: Duration, size: usize, size_sent: usize) -> Option<DropReason> {
        if self.blackouts.cover(now) {
            return Some(DropReason::Blackout);
        }
        if let Some(reason) = self.loss.strikes() {
            return Some(reason);
        }
        // Twice the size, for the copy that may be made.
        if self.held_bytes.saturating_add(2 * size as u64) > MOST_HELD_BYTES {
            return Some(DropReason::Memory);
        }
        (!self.queue.takes(size_sent)).then_some(DropReason::Queue)
    }

    /// Puts a packet into the queue; returns when it will have been sent.
    fn send(&mut self, now: Duration, size_sent: usize) -> Duration {
        let ready = self.sleep.as_ref().map_or(now, |sleep| sleep.ready_at(now));
        let waits = self.queueing(now);
        let sent_at = self.rate.sent_at(ready.max(self.queue.busy_until()), size_sent);
        if let Some(sleep) = &mut self.sleep {
            sleep.keep_awake(sent_at);
        }
        self.queue.push(sent_at, size_sent);
        self.statistics.queued(self.queue.packets(), self.queue.bytes(), waits);
        self.queue.advance(now);
        sent_at
    }

    fn fly(&mut self, departure: Departure<T>) {
        self.held_bytes += departure.size as u64;
        self.flight.push(Reverse(Flying { departure, sequence: self.sequence }));
        self.sequence += 1;
    }

    fn drop(&mut self, at: Duration, size: usize, reason: DropReason) {
        self.statistics.drop(size, reason);
        if let Some(series) = &mut self.series {
            series.at(at).dropped += size as u64;
        }
    }
}
