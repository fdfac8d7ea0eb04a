//! ASAP, below the transport.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Branch, Flow, SteeringPolicy};
use crate::channel::Direction;

/// ASAP (Hong and Su 2015, as NSDI 2023, §5.3, and HotMobile 2021, §4.2, run it): name lookups, handshakes and requests
/// on the low-latency channel, responses on the other. It tells them apart by where they are in a flow: what the client
/// sends are requests, and the first bytes that it gets are a handshake's.
#[derive(Clone, Debug)]
pub struct Asap {
    direction: Direction,
    resolver: Option<Flow>,
    /// Bytes of each flow so far.
    sent: BTreeMap<Flow, usize>,
}

impl Asap {
    /// The approximate number of bytes that a server sends before its first response: a handshake with certificates.
    pub const HANDSHAKE: usize = 4_000;

    /// The scheme for one direction; all of the flow `resolver` are name lookups.
    pub const fn new(direction: Direction, resolver: Option<Flow>) -> Self {
        Self { direction, resolver, sent: BTreeMap::new() }
    }
}

impl SteeringPolicy for Asap {
    fn choose(&mut self, _now: Duration, flow: Flow, size: usize) -> Branch {
        let sent = self.sent.entry(flow).or_default();
        *sent = sent.saturating_add(size);
        let request = self.direction == Direction::Up;
        if request || self.resolver == Some(flow) || *sent <= Self::HANDSHAKE {
            Branch::LowLatency
        } else {
            Branch::HighBandwidth
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Branch::{HighBandwidth, LowLatency};

    #[test]
    fn all_but_responses_is_fast() {
        let mut down = Asap::new(Direction::Down, Some(Flow(0)));
        let mut choose = |flow, size| down.choose(Duration::ZERO, Flow(flow), size);
        assert_eq!([choose(1, 60), choose(1, 1400), choose(1, 1400)], [LowLatency; 3], "a handshake");
        assert_eq!([choose(1, 1400), choose(1, 100)], [HighBandwidth; 2], "a response");
        assert_eq!(choose(2, 60), LowLatency, "the next handshake");
        for _ in 0..100 {
            assert_eq!(choose(0, 140), LowLatency, "a name");
        }
        let mut up = Asap::new(Direction::Up, None);
        assert!((0..100).all(|_| up.choose(Duration::ZERO, Flow(1), 1400) == LowLatency));
    }
}
