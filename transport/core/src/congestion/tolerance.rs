//! The tolerance of a controller for a delay that its channel varies by itself: none, as published, or that of a radio.

use super::hystart;
use super::queueing::Round;
use super::variation::Variation;
use std::time::Duration;

/// The part of the delay that a controller does not take for a queue.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tolerance {
    /// Nothing: any delay beyond the smallest is a queue.
    None,
    /// The variation of a radio (see `variation`). Before it is learnt, slow start ends only for a delay that HyStart++
    /// would end it for (RFC 9406).
    Radio(Variation),
}

impl Tolerance {
    /// Returns true if the channel may be a radio.
    pub(super) const fn is_radio(&self) -> bool {
        matches!(self, Self::Radio(_))
    }

    /// Takes a round trip that began with a `window`, and what one acknowledgement may have put in flight beyond it.
    pub(super) fn on_round(&mut self, round: &Round, window: f64, lump: f64) {
        if let Self::Radio(variation) = self {
            variation.on_round(round, window, lump);
        }
    }

    /// The part of `delay`, seen beyond the smallest round trip, that is a queue.
    pub(super) fn queueing(&self, delay: Duration) -> Duration {
        match self {
            Self::None => delay,
            Self::Radio(variation) => variation.queueing(delay),
        }
    }

    /// Returns true if `delay`, seen beyond the smallest round trip `base`, may end slow start.
    pub(super) fn is_long(&self, delay: Duration, base: Duration) -> bool {
        match self {
            Self::None => true,
            Self::Radio(_) => delay >= hystart::threshold(base),
        }
    }

    /// Returns true if `delay`, seen beyond the smallest round trip, is a queue in any case.
    pub(super) fn is_exceeded(&self, delay: Duration) -> bool {
        match self {
            Self::None => true,
            Self::Radio(variation) => variation.is_exceeded(delay),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(100);
    const DELAY: Duration = Duration::from_millis(5);

    #[test]
    fn without_tolerance_any_delay_is_a_queue() {
        let none = Tolerance::None;
        assert_eq!(
            (none.queueing(DELAY), none.is_long(DELAY, BASE), none.is_exceeded(DELAY)),
            (DELAY, true, true)
        );
    }

    #[test]
    fn a_radio_whose_variation_is_not_learnt_yet_has_a_queue_but_goes_on_with_slow_start() {
        let radio = Tolerance::Radio(Variation::growing());
        assert_eq!((radio.queueing(DELAY), radio.is_long(DELAY, BASE)), (DELAY, false));
        assert!(radio.is_long(BASE / 8, BASE));
    }
}
