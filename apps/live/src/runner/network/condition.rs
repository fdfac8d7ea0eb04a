//! The condition of the network between the two sides, as the runner's simulator is told.

use std::time::Duration;

/// A link of the same kind both ways, and what goes wrong on it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    /// One way.
    pub(crate) delay: Duration,
    /// Bits in a second.
    pub(crate) rate: u64,
    /// Packets that wait for their turn at most.
    pub(crate) queue: usize,
    /// The trouble on its links.
    pub(crate) trouble: Trouble,
}

/// The trouble on a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// Nothing.
    None,
    /// Packets disappear, each way.
    Loss(Chance),
    /// One byte of packets is changed, each way.
    Corruption(Chance),
    /// These packets to the server disappear, counted from 1.
    Drops(&'static [u64]),
    /// Nothing arrives for a while, both ways.
    Blackout {
        /// The time at which it begins.
        begins: Duration,
        /// Its duration.
        lasts: Duration,
    },
    /// The client's NAT forgets who it is.
    Rebinding {
        /// The time of the first one.
        first: Duration,
        /// The interval from then on.
        every: Duration,
        /// The part of the address that changes with it.
        change: AddressChange,
    },
}

/// The chance that something happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chance {
    /// Out of a hundred.
    pub(crate) percent: u32,
    /// Packets in a row at most.
    pub(crate) burst: u32,
}

/// The part of an address that a NAT that forgets its bindings changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressChange {
    /// The client's port.
    Port,
    /// Its address too.
    Address,
}

impl Condition {
    /// 15 ms each way, 10 Mbit/s and 25 packets, with this `trouble`: the link of all cases but one.
    pub(crate) const fn usual(trouble: Trouble) -> Self {
        Self { delay: Duration::from_millis(15), rate: 10_000_000, queue: 25, trouble }
    }
}

/// The dice of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Luck {
    in_a_row: u32,
}

impl Luck {
    /// Returns true if a packet has bad luck, with a `roll` from 0 to 99.
    pub(crate) fn is_bad(&mut self, chance: Chance, roll: u32) -> bool {
        let bad = self.in_a_row < chance.burst && roll < chance.percent;
        self.in_a_row = if bad { self.in_a_row + 1 } else { 0 };
        bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_luck_ends_after_a_burst() {
        let (mut luck, chance) = (Luck::default(), Chance { percent: 30, burst: 3 });
        let rolls = [0, 29, 5, 5, 5, 30, 1];
        assert_eq!(rolls.map(|roll| luck.is_bad(chance, roll)), [true, true, true, false, true, false, true]);
    }
}
