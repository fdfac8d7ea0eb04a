//! How wrong the rewards are that a policy expects: held against what the channels would have done (NSDI 2023, Fig. 11).
//!
//! A policy says when it expects data over either path, as it places them. The packet enters a wire at the same instant, and
//! the world knows when it would arrive over either channel.

use crate::world::{Net, Side};
use hvq_channel::Direction;
use hvq_transport::time::Instant;
use hvq_transport::trace::{TraceEvent, Tracer};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The wire of the channel with the low latency, where there are two.
const LOW_LATENCY: usize = 0;
/// That of the channel with the high bandwidth.
const HIGH_BANDWIDTH: usize = 1;

/// Rewards that were expected, and by how much they were wrong. Clones share one account.
#[derive(Clone, Debug, Default)]
pub struct Rewards(Arc<Mutex<Account>>);

#[derive(Debug, Default)]
struct Account {
    /// By side and wire, for data whose packets have not entered yet.
    expected: [[VecDeque<Expected>; 2]; 2],
    /// The real reward less the expected one, in milliseconds.
    errors: Vec<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Expected {
    at: Instant,
    bytes: usize,
    /// In milliseconds.
    reward: f64,
}

impl Account {
    fn of(&mut self, side: Side, wire: usize) -> &mut VecDeque<Expected> {
        &mut self.expected[usize::from(side == Side::Server)][usize::from(wire == HIGH_BANDWIDTH)]
    }
}

/// Listens to a connection of one side.
#[derive(Debug)]
struct Listener {
    side: Side,
    rewards: Rewards,
}

impl Tracer for Listener {
    fn record(&mut self, now: Instant, event: &TraceEvent<'_>) {
        let TraceEvent::PlacementExpected { path, bytes, expectation } = *event else { return };
        let wire = if path == expectation.bulk.path { HIGH_BANDWIDTH } else { LOW_LATENCY };
        let expected = Expected { at: now, bytes, reward: expectation.reward() as f64 / 1e6 };
        self.rewards.with(|account| account.of(self.side, wire).push_back(expected));
    }
}

impl Rewards {
    /// Who listens to connections of `side`.
    pub fn listener(&self, side: Side) -> Box<dyn Tracer> {
        Box::new(Listener { side, rewards: self.clone() })
    }

    /// The real reward of each placement less the expected one, in milliseconds.
    pub fn errors(&self) -> Vec<f64> {
        self.with(|account| account.errors.clone())
    }

    /// A packet of `size` bytes of `side` is about to enter wire number `wire` of `net`.
    pub(super) fn enter(&self, net: &Net, (side, wire): (Side, usize), size: usize) {
        let Some(real) = real(net, side, size) else { return };
        self.with(|account| {
            let mut room = size;
            while let Some(expected) = account.of(side, wire).front().copied() {
                // What is not sent at once was expected of another moment.
                let is_old = expected.at != net.now;
                if !is_old && expected.bytes > room {
                    break;
                }
                account.of(side, wire).pop_front();
                if !is_old {
                    room -= expected.bytes;
                    account.errors.push(real - expected.reward);
                }
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut Account) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a packet of `size` bytes of `side` really gains on the channel with the low latency now, in milliseconds.
fn real(net: &Net, side: Side, size: usize) -> Option<f64> {
    let direction = if side == Side::Client { Direction::Up } else { Direction::Down };
    let arrival = |wire: usize| -> Option<Duration> {
        let link = net.wires.get(wire)?.channel.plain()?.link(direction);
        Some(link.foresee(net.elapsed(), size)).filter(|at| *at != Duration::MAX)
    };
    let saved = arrival(HIGH_BANDWIDTH)?.as_secs_f64() - arrival(LOW_LATENCY)?.as_secs_f64();
    Some(saved * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_scheduler::{Arrival, Expectation, PathId, Policy};
    use hvq_transport::connection::TransportConfig;

    fn told(net: &Net, rewards: &Rewards, bytes: usize, (bulk, scarce): (u64, u64)) {
        let arrival = |path, micros| Arrival { path: PathId(path), after: Duration::from_micros(micros) };
        let expectation = Expectation { bulk: arrival(1, bulk), scarce: arrival(0, scarce) };
        let event = TraceEvent::PlacementExpected { path: PathId(0), bytes, expectation };
        rewards.listener(Side::Server).record(net.now, &event);
    }

    #[test]
    fn an_expected_reward_is_held_against_both_channels_when_its_packet_enters() {
        let config = || TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
        let mut net = Net::new(config(), config(), 1);
        net.wire("rtt=5ms,rate=2mbit");
        net.wire("rtt=40ms,rate=8mbit");
        let rewards = Rewards::default();
        // 1000 bytes take 2.5 and 4 ms over URLLC, 20 and 1 ms over eMBB: 14.5 ms are gained.
        told(&net, &rewards, 900, (20_000, 8_000));
        told(&net, &rewards, 100, (21_000, 6_500));
        told(&net, &rewards, 100, (9_000, 9_000));
        rewards.enter(&net, (Side::Server, 0), 1000);
        let errors: Vec<i64> = rewards.errors().iter().map(|error| (error * 1e3).round() as i64).collect();
        assert_eq!(errors, [2_500, 0], "the third is in the next packet");
        net.run_for(Duration::from_millis(1));
        rewards.enter(&net, (Side::Server, 0), 1000);
        assert_eq!(rewards.errors().len(), 2, "which never came");
    }
}
