//! The value of an earlier arrival: urgency and deadlines scale the reward.

use super::cost::{WHOLE, narrowness};
use super::tuning::{MOST_PRICE_RATIO, PRESSING, SHARED, SHARED_BY_PEER, URGENCY_SCALE};
use crate::{PathView, Sharing};

/// The weight of the transmission cost for data of this urgency, where it is `alpha` for the default.
///
/// Multiplying the reward by s is dividing the transmission cost by s: s is 2 at urgency 0, 1 at the default 3, 1/8 at 7.
pub(super) const fn weight(urgency: u8, alpha: u64) -> u64 {
    alpha * 16 / URGENCY_SCALE[if urgency > 7 { 7 } else { urgency as usize }]
}

/// Returns the price multiplier of a byte on `scarce`, to which `bulk` is the alternative, in units of 1/[`WHOLE`]: the
/// narrower the path, the more of its transmission cost counts. On a path that costs more all of it does.
pub(super) fn price_multiplier(scarce: &PathView, bulk: &PathView) -> u64 {
    let [own, other] = [scarce, bulk].map(|path| path.hints.price_per_byte);
    let ratio = price_ratio(own, other);
    let narrowness = if ratio > 1 { WHOLE } else { narrowness(scarce, bulk) };
    sharing_multiplier(scarce) * ratio * narrowness
}

/// Returns the price multiplier of a path that others share: their queue of late is seen only a round trip later. If the
/// endpoint keeps an account of them, it is part of the transmission cost. If it is the peer's channel, its other connections
/// end elsewhere, as many as a page has domains, and all begin to send at about the same time.
const fn sharing_multiplier(path: &PathView) -> u64 {
    match (path.hints.shared, path.others) {
        (Sharing::Endpoint, None) => SHARED_BY_PEER,
        (Sharing::Shared, _) => SHARED,
        (Sharing::Unknown | Sharing::Dedicated, _) | (Sharing::Endpoint, Some(_)) => 1,
    }
}

/// Returns the ratio of the hinted prices of a byte on `scarce` and on `bulk`: a path that costs ten times as much has
/// to be worth ten times its transmission cost. A path without a price costs 1, and so does one that costs nothing.
fn price_ratio(scarce: Option<u64>, bulk: Option<u64>) -> u64 {
    let price = |price: Option<u64>| price.unwrap_or(1).max(1);
    let (scarce, bulk) = (price(scarce), price(bulk));
    if scarce <= bulk { 1 } else { scarce.div_ceil(bulk).min(MOST_PRICE_RATIO) }
}

/// The pressure of a deadline on the choice between a bulk path and a scarce one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pressure {
    /// The bulk path is comfortably in time: the scarce one is spared.
    Spare,
    /// No deadline, or one that decides nothing: cost and reward do.
    Ordinary,
    /// Only the scarce path is in time: the reward counts fourfold.
    Press,
}

impl Pressure {
    /// The pressure of a deadline, given when the data would be complete on either path; nanoseconds from now.
    ///
    /// Comfortably means with half of the estimate to spare: delay is estimated, and queues grow.
    pub(super) fn of(deadline: Option<u64>, bulk: u64, scarce: u64) -> Self {
        match deadline {
            Some(deadline) if bulk + bulk / 2 <= deadline => Self::Spare,
            Some(deadline) if bulk > deadline && scarce <= deadline => Self::Press,
            _ => Self::Ordinary,
        }
    }

    /// `weight` under this pressure, or `None` if the scarce path is out of the question.
    pub(super) fn applied_to(self, weight: u64) -> Option<u64> {
        match self {
            Self::Spare => None,
            Self::Ordinary => Some(weight),
            Self::Press => Some(weight / PRESSING),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hvc::tuning::ALPHA;

    #[test]
    fn the_default_urgency_weighs_the_fare_by_alpha() {
        assert_eq!(weight(3, ALPHA), ALPHA);
        assert_eq!(weight(0, ALPHA), ALPHA / 2);
        assert_eq!(weight(7, ALPHA), ALPHA * 8);
        assert_eq!(weight(u8::MAX, ALPHA), weight(7, ALPHA));
    }

    #[test]
    fn a_more_urgent_item_never_pays_more() {
        assert!((0..8).all(|urgency| weight(urgency, ALPHA) <= weight(urgency + 1, ALPHA)));
    }

    #[test]
    fn a_deadline_presses_only_where_the_scarce_path_alone_meets_it() {
        assert_eq!(Pressure::of(Some(60), 40, 10), Pressure::Spare);
        assert_eq!(Pressure::of(Some(60), 41, 10), Pressure::Ordinary);
        assert_eq!(Pressure::of(Some(60), 61, 60), Pressure::Press);
        assert_eq!(Pressure::of(Some(60), 70, 61), Pressure::Ordinary);
        assert_eq!(Pressure::of(None, 70, 1), Pressure::Ordinary);
        assert_eq!(Pressure::Spare.applied_to(ALPHA), None);
        assert_eq!(Pressure::Press.applied_to(ALPHA), Some(ALPHA / 4));
    }
}
