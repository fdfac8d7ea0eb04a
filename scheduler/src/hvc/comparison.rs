//! Cost against reward: one bulk path and one scarce path compete for an item and for what follows it.

use std::time::Duration;

use super::cost::{NEVER, PathEstimate, WHOLE, available, nanos};
use super::reward::{Pressure, price_multiplier, weight};
use crate::{Arrival, Expectation, Item, PathView};

/// The unit of comparison: the bytes that are compared as one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ComparisonUnit {
    /// The item alone: DChannel's comparison.
    Item,
    /// This many bytes from the item's first on: they are of use only together.
    Whole(usize),
}

impl ComparisonUnit {
    /// The estimate of an item of `bytes` to this unit.
    pub(super) fn estimate(self, index: usize, path: &PathView, bytes: usize) -> PathEstimate {
        match self {
            Self::Item => PathEstimate::of(index, path, bytes),
            Self::Whole(whole) => PathEstimate::of_whole(index, path, whole.max(bytes)),
        }
    }
}

/// The path that carries the item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Decision {
    /// The bulk path, of divisible content only the first `bytes`.
    Bulk {
        /// The number of bytes.
        bytes: usize,
    },
    /// The scarce path.
    Scarce,
}

/// The comparison, with both paths' indices and views.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison<'a> {
    /// The path on which a byte costs nothing.
    pub(super) bulk: (usize, &'a PathView),
    /// The path on which it does.
    pub(super) scarce: (usize, &'a PathView),
    /// The unit of comparison.
    pub(super) unit: ComparisonUnit,
    /// The price multiplier of the transmission cost, in units of 1/[`WEIGHT_UNIT`](super::cost::WEIGHT_UNIT), for data
    /// of default urgency.
    pub(super) alpha: u64,
}

impl Comparison<'_> {
    /// Returns the two estimates to compare: over the bulk path and over the scarce one.
    pub(super) fn estimates(&self, item: &Item) -> [PathEstimate; 2] {
        [self.bulk, self.scarce].map(|(index, path)| self.unit.estimate(index, path, item.bytes))
    }

    /// Returns the expected arrivals of the item alone over either path; `None` if one of them cannot send now.
    pub(super) fn expected(&self, item: &Item, estimates: [PathEstimate; 2]) -> Option<Expectation> {
        if !self.bulk.1.can_send() || !self.scarce.1.can_send() {
            return None;
        }
        let [bulk, scarce] = match self.unit {
            ComparisonUnit::Item => estimates,
            ComparisonUnit::Whole(_) => Comparison { unit: ComparisonUnit::Item, ..*self }.estimates(item),
        };
        let arrival = |path: &PathView, estimate: PathEstimate| Arrival {
            path: path.id,
            after: Duration::from_nanos(estimate.arrival),
        };
        Some(Expectation {
            head_of_line_delay: item.head_of_line_delay,
            bulk: arrival(self.bulk.1, bulk),
            scarce: arrival(self.scarce.1, scarce),
        })
    }

    /// Compares cost and reward of the scarce path, the reward being an earlier completion.
    ///
    /// A tie goes to the bulk path, as in DChannel's listing (Algorithm 1: reward > α · cost). If the bulk path can
    /// carry only a part of a whole, the tail rides the scarce path where that is the best of the three ways.
    pub(super) fn decide(&self, item: &Item, [bulk, estimate]: [PathEstimate; 2]) -> Decision {
        let head_of_line_delay = nanos(item.head_of_line_delay);
        let bulk = bulk.completion(head_of_line_delay);
        let deadline = item.message.and_then(|message| message.deadline).map(nanos);
        let pressure = Pressure::of(deadline, bulk, estimate.completion(head_of_line_delay));
        let all_of_it = Decision::Bulk { bytes: item.bytes };
        let multiplier = price_multiplier(self.scarce.1, self.bulk.1);
        let weight = weight(item.priority.urgency, self.alpha) * multiplier / WHOLE;
        let Some(weight) = pressure.applied_to(weight) else { return all_of_it };
        let scarce = estimate.sum(head_of_line_delay, weight);
        if let Some((split, bytes)) = self.split(item, head_of_line_delay, weight)
            && split < bulk
            && split <= scarce
        {
            return Decision::Bulk { bytes };
        }
        // Where neither would ever complete, the one that can send at least does not block.
        let stuck = bulk == NEVER && !self.bulk.1.can_send() && self.scarce.1.can_send();
        if scarce < bulk || stuck { Decision::Scarce } else { all_of_it }
    }

    /// Completion and cost with as much on the bulk path as its window takes and the tail on the scarce path, and how
    /// much of the item comes before the tail; `None` if there is no tail.
    fn split(&self, item: &Item, head_of_line_delay: u64, weight: u64) -> Option<(u64, usize)> {
        let ComparisonUnit::Whole(whole) = self.unit else { return None };
        let first = available(self.bulk.1);
        let tail = whole.max(item.bytes).checked_sub(first).filter(|&tail| tail > 0 && first > 0)?;
        let head = PathEstimate::of(self.bulk.0, self.bulk.1, first);
        let tail = PathEstimate::of_whole(self.scarce.0, self.scarce.1, tail);
        let completion = head.completion(head_of_line_delay).max(tail.arrival);
        let bytes = if item.content.is_divisible() { item.bytes.min(first) } else { item.bytes };
        Some((completion + tail.price(weight), bytes))
    }
}
