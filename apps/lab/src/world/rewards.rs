//! Errors of the rewards that a policy expects: compared with those that the channels would have given (NSDI 2023, Fig.
//! 11).
//!
//! A policy says when it expects data over either path, as it places them. The packet enters a wire at the same instant, and
//! the world knows when it would arrive over either channel. Rewards are differences of completions, as in Algorithm 1 (§3.4):
//! what goes before on the same stream is awaited over either.

use crate::world::{Net, Side};
use hvq_emulation::Direction;
use hvq_scheduler::PathId;
use hvq_transport::time::Instant;
use hvq_transport::trace::{TraceEvent, Tracer};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The wire of the channel with the low latency, where there are two.
const LOW_LATENCY: usize = 0;
/// The wire of the channel with the high bandwidth.
const HIGH_BANDWIDTH: usize = 1;

/// Rewards that were expected, and by how much they were wrong. Clones share one account.
#[derive(Clone, Debug, Default)]
pub struct Rewards(Arc<Mutex<Account>>);

#[derive(Debug, Default)]
struct Account {
    /// By side and wire, data whose packets have not entered yet.
    placed: [[VecDeque<Placed>; 2]; 2],
    /// The time at which all bytes of each stream so far are there, in milliseconds.
    completion: HashMap<Stream, f64>,
    /// Connections that are listened to.
    listeners: usize,
    /// The real reward less the expected one, in milliseconds.
    errors: Vec<f64>,
}

/// A stream, by the number of who listens to its connection and its ID.
type Stream = (usize, u64);

/// Data in a packet.
#[derive(Clone, Copy, Debug)]
struct Placed {
    at: Instant,
    bytes: usize,
    stream: Stream,
    /// The reward that was expected, in milliseconds, if two paths were weighed.
    reward: Option<f64>,
}

impl Account {
    fn of(&mut self, side: Side, wire: usize) -> &mut VecDeque<Placed> {
        &mut self.placed[usize::from(side == Side::Server)][usize::from(wire == HIGH_BANDWIDTH)]
    }

    /// `placed` enters the wire with this number, when these would be its arrivals over either channel, in milliseconds.
    fn settle(&mut self, placed: Placed, wire: usize, arrivals: [f64; 2]) {
        let completion = self.completion.entry(placed.stream).or_default();
        let completions = arrivals.map(|arrival| arrival.max(*completion));
        *completion = completions[usize::from(wire == HIGH_BANDWIDTH)];
        let real = completions[HIGH_BANDWIDTH] - completions[LOW_LATENCY];
        self.errors.extend(placed.reward.map(|expected| real - expected));
    }
}

/// Listens to a connection of one side.
#[derive(Debug)]
struct Listener {
    side: Side,
    number: usize,
    /// The path over the channel with the high bandwidth, as soon as the policy has named it.
    high_bandwidth: Option<PathId>,
    rewards: Rewards,
}

impl Tracer for Listener {
    fn record(&mut self, now: Instant, event: &TraceEvent<'_>) {
        let TraceEvent::StreamPlaced { path, stream, bytes, expectation } = *event else { return };
        self.high_bandwidth = expectation.map(|known| known.bulk.path).or(self.high_bandwidth);
        let Some(high_bandwidth) = self.high_bandwidth else { return };
        let wire = if path == high_bandwidth { HIGH_BANDWIDTH } else { LOW_LATENCY };
        let reward = expectation.map(|expected| expected.reward() as f64 / 1e6);
        let placed = Placed { at: now, bytes, stream: (self.number, stream), reward };
        self.rewards.with(|account| account.of(self.side, wire).push_back(placed));
    }
}

impl Rewards {
    /// Returns a listener to a connection of `side`.
    pub fn listener(&self, side: Side) -> Box<dyn Tracer> {
        let number = self.with(|account| {
            account.listeners += 1;
            account.listeners
        });
        Box::new(Listener { side, number, high_bandwidth: None, rewards: self.clone() })
    }

    /// The real reward of each placement less the expected one, in milliseconds.
    pub fn errors(&self) -> Vec<f64> {
        self.with(|account| account.errors.clone())
    }

    /// A packet of `size` bytes of `side` is about to enter wire number `wire` of `net`.
    pub(super) fn enter(&self, net: &Net, (side, wire): (Side, usize), size: usize) {
        let Some(arrivals) = arrivals(net, side, size) else { return };
        self.with(|account| {
            let mut room = size;
            while let Some(placed) = account.of(side, wire).front().copied() {
                // What is not sent at once was expected of another moment.
                let is_old = placed.at != net.now;
                if !is_old && placed.bytes > room {
                    break;
                }
                account.of(side, wire).pop_front();
                if !is_old {
                    room -= placed.bytes;
                    account.settle(placed, wire, arrivals);
                }
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut Account) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the times at which a packet of `size` bytes of `side` would be there over each wire if it were sent now, in
/// milliseconds.
fn arrivals(net: &Net, side: Side, size: usize) -> Option<[f64; 2]> {
    let direction = if side == Side::Client { Direction::Up } else { Direction::Down };
    let arrival = |wire: usize| -> Option<f64> {
        let link = net.wires.get(wire)?.channel.plain()?.link(direction);
        let at = Some(link.foresee(net.elapsed(), size)).filter(|at| *at != Duration::MAX)?;
        Some(at.as_secs_f64() * 1e3)
    };
    Some([arrival(LOW_LATENCY)?, arrival(HIGH_BANDWIDTH)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_scheduler::{Arrival, Expectation, PathId, Policy};
    use hvq_transport::connection::TransportConfig;

    fn placed(stream: u64, path: u32, bytes: usize, (bulk, scarce): (u64, u64)) -> TraceEvent<'static> {
        let arrival = |path, micros| Arrival { path: PathId(path), after: Duration::from_micros(micros) };
        let expectation = Expectation {
            head_of_line_delay: Duration::ZERO,
            bulk: arrival(1, bulk),
            scarce: arrival(0, scarce),
        };
        TraceEvent::StreamPlaced { path: PathId(path), stream, bytes, expectation: Some(expectation) }
    }

    fn world() -> (Net, Rewards, Box<dyn Tracer>) {
        let config = || TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
        let mut net = Net::new(config(), config(), 1);
        net.wire("rtt=5ms,rate=2mbit");
        net.wire("rtt=40ms,rate=8mbit");
        let rewards = Rewards::default();
        let listener = rewards.listener(Side::Server);
        (net, rewards, listener)
    }

    fn errors(rewards: &Rewards) -> Vec<i64> {
        rewards.errors().iter().map(|error| (error * 1e3).round() as i64).collect()
    }

    #[test]
    fn an_expected_reward_is_held_against_both_channels_when_its_packet_enters() {
        let (mut net, rewards, mut listener) = world();
        // 1000 bytes take 2.5 and 4 ms over URLLC, 20 and 1 ms over eMBB: 14.5 ms are gained.
        for (stream, bytes, expected) in
            [(0, 900, (20_000, 8_000)), (4, 100, (21_000, 6_500)), (8, 100, (9_000, 9_000))]
        {
            listener.record(net.now, &placed(stream, 0, bytes, expected));
        }
        rewards.enter(&net, (Side::Server, 0), 1000);
        assert_eq!(errors(&rewards), [2_500, 0], "the third is in the next packet");
        net.run_for(Duration::from_millis(1));
        rewards.enter(&net, (Side::Server, 0), 1000);
        assert_eq!(rewards.errors().len(), 2, "which never came");
    }
    #[test]
    fn nothing_is_gained_where_a_stream_waits_for_what_went_before() {
        let (net, rewards, mut listener) = world();
        listener.record(net.now, &placed(0, 1, 900, (21_000, 6_500)));
        rewards.enter(&net, (Side::Server, 1), 1000);
        listener.record(net.now, &placed(0, 0, 900, (21_000, 6_500)));
        rewards.enter(&net, (Side::Server, 0), 1000);
        // Of the same stream 14.5 ms were expected again, but the 21 ms of the first packet have to pass.
        assert_eq!(errors(&rewards), [0, -14_500]);
    }
}
