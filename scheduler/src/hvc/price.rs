//! The price multiplier of a scarce path: fixed, or following the demand that was turned away.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::cost::{WEIGHT_UNIT, nanos};
use super::tuning::{HALFWAY, LEAST_ALPHA, LONGEST_FORGONE, MOST_ALPHA, MOST_HUNDREDTHS};

/// The price multiplier α of a scarce path, by which the transmission cost is weighed against the time that is saved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Price {
    /// α in hundredths, the same at all times.
    Fixed {
        /// The multiplier in hundredths.
        hundredths: u16,
    },
    /// α follows demand: from 0.25, when whatever was worth it found a place, towards 3 as more had to go without.
    Demand,
}

impl Price {
    /// DChannel's: α is 0.75 (NSDI 2023, §3.4, Table 5).
    pub const DCHANNEL: Self = Self::Fixed { hundredths: 75 };
}

impl Default for Price {
    fn default() -> Self {
        Self::DCHANNEL
    }
}

impl fmt::Display for Price {
    /// Writes the price in the form that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { hundredths } => write!(f, "alpha={}", f64::from(*hundredths) / 100.0),
            Self::Demand => f.write_str("price=demand"),
        }
    }
}

/// The error of a text that is no price.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoPrice;

impl FromStr for Price {
    type Err = NoPrice;

    /// Reads `alpha=NUMBER`, from 0 to 100 in steps of a hundredth, and `price=demand`.
    fn from_str(text: &str) -> Result<Self, NoPrice> {
        if text == "price=demand" {
            return Ok(Self::Demand);
        }
        let alpha: f64 = text.strip_prefix("alpha=").and_then(|number| number.parse().ok()).ok_or(NoPrice)?;
        let hundredths = (alpha * 100.0).round();
        if !(0.0..=f64::from(MOST_HUNDREDTHS)).contains(&hundredths) {
            return Err(NoPrice);
        }
        Ok(Self::Fixed { hundredths: hundredths as u16 })
    }
}

/// The price of a connection's scarce paths as it stands.
///
/// With [`Price::Demand`] it follows a virtual queue: all that would have been worth an empty path at the least price, and
/// went over the bulk path because of the queue or the price it found, enters it, and it drains as the time passes, as if the
/// path had carried it. It is the dual of the path's rate: the price rises while more is worth the path than the path
/// carries, and falls when it carries all. The price is never less than 0.25 nor more than 3, so that both properties of a
/// fixed price hold: no item leaves a queue longer than D / 1.25, and what is worth four times its own transmission cost is
/// taken once the queue is gone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurrentPrice {
    price: Price,
    /// The time until which the path would be busy with the items that went without, in nanoseconds.
    forgone_until: u64,
}

impl CurrentPrice {
    /// Makes a price at this price.
    pub(super) const fn of(price: Price) -> Self {
        Self { price, forgone_until: 0 }
    }

    /// α at `now`, in units of 1/[`WEIGHT_UNIT`].
    pub(super) fn alpha(&self, now: Duration) -> u64 {
        match self.price {
            Price::Fixed { hundredths } => u64::from(hundredths) * WEIGHT_UNIT / 100,
            Price::Demand => {
                let forgone = self.forgone_until.saturating_sub(nanos(now));
                LEAST_ALPHA + (MOST_ALPHA - LEAST_ALPHA) * forgone / (forgone + HALFWAY)
            }
        }
    }

    /// The least α that may come to hold, if what goes without changes it.
    pub(super) fn least(&self) -> Option<u64> {
        (self.price == Price::Demand).then_some(LEAST_ALPHA)
    }

    /// Notes at `now` that an item that would keep the path busy for `time` nanoseconds went without it.
    pub(super) fn note_forgone(&mut self, time: u64, now: Duration) {
        let now = nanos(now);
        self.forgone_until = self.forgone_until.max(now).saturating_add(time).min(now + LONGEST_FORGONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_written_as_they_are_read() {
        for (text, hundredths) in
            [("alpha=0", 0), ("alpha=0.75", 75), ("alpha=1.5", 150), ("alpha=100", 10_000)]
        {
            let price = Price::Fixed { hundredths };
            assert_eq!(text.parse(), Ok(price));
            assert_eq!(price.to_string(), text);
        }
        assert_eq!(Price::Demand.to_string().parse(), Ok(Price::Demand));
        for text in [
            "",
            "0.75",
            "alpha=",
            "alpha=x",
            "alpha=-1",
            "alpha=101",
            "alpha=NaN",
            "alpha=inf",
            "price=",
            "price=2",
        ] {
            assert_eq!(text.parse::<Price>(), Err(NoPrice), "{text}");
        }
    }

    #[test]
    fn the_default_is_dchannels_alpha() {
        assert_eq!(CurrentPrice::default().alpha(Duration::MAX), WEIGHT_UNIT * 3 / 4);
        assert_eq!(CurrentPrice::default().least(), None);
    }

    #[test]
    fn the_price_of_demand_rises_with_what_goes_without_and_falls_as_the_path_would_have_carried_it() {
        let at = Duration::from_millis;
        let mut price = CurrentPrice::of(Price::Demand);
        assert_eq!(price.alpha(at(0)), LEAST_ALPHA);
        price.note_forgone(HALFWAY, at(100));
        assert_eq!(price.alpha(at(100)), LEAST_ALPHA + (MOST_ALPHA - LEAST_ALPHA) / 2);
        assert!(
            (LEAST_ALPHA + 1..LEAST_ALPHA + (MOST_ALPHA - LEAST_ALPHA) / 2).contains(&price.alpha(at(110)))
        );
        assert_eq!(price.alpha(at(120)), LEAST_ALPHA);
        (0..1000).for_each(|_| price.note_forgone(u64::MAX, at(200)));
        assert!((MOST_ALPHA - MOST_ALPHA / 48..MOST_ALPHA).contains(&price.alpha(at(200))));
        assert_eq!(price.alpha(at(1200)), LEAST_ALPHA);
    }
}
