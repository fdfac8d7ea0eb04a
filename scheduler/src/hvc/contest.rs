//! Cost against reward: one bulk path and one scarce path compete for an item and for what follows it.

use std::time::Duration;

use super::cost::{Leg, NEVER, available, nanos};
use super::reward::{Pressure, dearness, weight};
use crate::{Arrival, Expectation, Item, PathView};

/// The unit of comparison: the bytes that are compared as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Extent {
    /// The item alone: DChannel's comparison.
    Item,
    /// This many bytes from the item's first on: they are of use only together.
    Whole(usize),
}

impl Extent {
    /// The leg of an item of `bytes` to this extent.
    pub(super) fn leg(self, index: usize, path: &PathView, bytes: usize) -> Leg {
        match self {
            Self::Item => Leg::of(index, path, bytes),
            Self::Whole(whole) => Leg::of_whole(index, path, whole.max(bytes)),
        }
    }
}

/// The path that carries the item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The bulk path, of divisible content only the first `bytes`.
    Bulk {
        /// The number of bytes.
        bytes: usize,
    },
    /// The scarce path.
    Scarce,
}

/// The contest, with both paths' indices and views.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest<'a> {
    /// The path on which a byte costs nothing.
    pub(super) bulk: (usize, &'a PathView),
    /// The path on which it does.
    pub(super) scarce: (usize, &'a PathView),
    /// The unit of comparison.
    pub(super) extent: Extent,
    /// The price multiplier of the transmission cost, in units of 1/[`WEIGHT_UNIT`](super::cost::WEIGHT_UNIT), for data
    /// of default urgency.
    pub(super) alpha: u64,
}

impl Contest<'_> {
    /// Returns the two legs to compare: over the bulk path and over the scarce one.
    pub(super) fn legs(&self, item: &Item) -> [Leg; 2] {
        [self.bulk, self.scarce].map(|(index, path)| self.extent.leg(index, path, item.bytes))
    }

    /// Returns the expected arrivals of the item alone over either path; `None` if one of them cannot send now.
    pub(super) fn expected(&self, item: &Item, legs: [Leg; 2]) -> Option<Expectation> {
        if !self.bulk.1.has_room() || !self.scarce.1.has_room() {
            return None;
        }
        let [bulk, scarce] = match self.extent {
            Extent::Item => legs,
            Extent::Whole(_) => Contest { extent: Extent::Item, ..*self }.legs(item),
        };
        let arrival =
            |path: &PathView, leg: Leg| Arrival { path: path.id, after: Duration::from_nanos(leg.arrival) };
        Some(Expectation {
            waits_for: item.waits_for,
            bulk: arrival(self.bulk.1, bulk),
            scarce: arrival(self.scarce.1, scarce),
        })
    }

    /// Compares cost and reward of the scarce path, the reward being an earlier completion.
    ///
    /// A tie goes to the bulk path, as in DChannel's listing (Algorithm 1: reward > α · cost). If the bulk path can
    /// carry only a part of a whole, the tail rides the scarce path where that is the best of the three ways.
    pub(super) fn decide(&self, item: &Item, [bulk, leg]: [Leg; 2]) -> Verdict {
        let waits_for = nanos(item.waits_for);
        let bulk = bulk.completion(waits_for);
        let deadline = item.message.and_then(|message| message.deadline).map(nanos);
        let pressure = Pressure::of(deadline, bulk, leg.completion(waits_for));
        let all_of_it = Verdict::Bulk { bytes: item.bytes };
        let weight = weight(item.priority.urgency, self.alpha) * dearness(self.scarce.1, &self.bulk.1.hints);
        let Some(weight) = pressure.applied_to(weight) else { return all_of_it };
        let scarce = leg.sum(waits_for, weight);
        if let Some((split, bytes)) = self.split(item, waits_for, weight)
            && split < bulk
            && split <= scarce
        {
            return Verdict::Bulk { bytes };
        }
        // Where neither would ever complete, the one that can send at least does not block.
        let stuck = bulk == NEVER && !self.bulk.1.has_room() && self.scarce.1.has_room();
        if scarce < bulk || stuck { Verdict::Scarce } else { all_of_it }
    }

    /// Completion and cost with as much on the bulk path as its window takes and the tail on the scarce path, and how
    /// much of the item comes before the tail; `None` if there is no tail.
    fn split(&self, item: &Item, waits_for: u64, weight: u64) -> Option<(u64, usize)> {
        let Extent::Whole(whole) = self.extent else { return None };
        let first = available(self.bulk.1);
        let tail = whole.max(item.bytes).checked_sub(first).filter(|&tail| tail > 0 && first > 0)?;
        let head = Leg::of(self.bulk.0, self.bulk.1, first);
        let tail = Leg::of_whole(self.scarce.0, self.scarce.1, tail);
        let completion = head.completion(waits_for).max(tail.arrival);
        let bytes = if item.content.is_divisible() { item.bytes.min(first) } else { item.bytes };
        Some((completion + tail.price(weight), bytes))
    }
}
