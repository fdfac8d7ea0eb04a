//! Quantities with their units, as types and as text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(u64);

impl Bandwidth {
    /// A rate of so many bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// A rate of so many megabits (10⁶ bits) per second.
    pub const fn from_megabits_per_second(megabits: u64) -> Self {
        Self(megabits * 1_000_000)
    }

    /// The rate in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
}

/// A probability, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const NEVER: Self = Self(0.0);
    /// Always.
    pub const ALWAYS: Self = Self(1.0);

    /// The probability `share`, or `None` if it is not within 0 to 1.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..=1.0).contains(&share).then_some(Self(share))
    }

    /// The probability as a share of one.
    pub const fn share(self) -> f64 {
        self.0
    }

    /// Draws once: does it happen this time?
    pub(crate) fn happens(self, chance: &mut impl rand::Rng) -> bool {
        // Nothing is drawn for what cannot happen, so that adding a feature leaves the other draws as they were.
        self.0 > 0.0 && chance.random::<f64>() < self.0
    }
}

/// The error of a text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct QuantityError {
    text: String,
    wanted: &'static str,
}

impl QuantityError {
    pub(crate) fn new(text: &str, wanted: &'static str) -> Self {
        Self { text: text.to_owned(), wanted }
    }
}

/// Splits `text` into a finite number that is not negative and the unit behind it, in lower case.
fn number_and_unit(text: &str) -> Option<(f64, String)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    number.is_finite().then(|| (number, unit.trim().to_ascii_lowercase()))
}

/// Reads a duration such as `2.5ms`; units `ns`, `us`, `ms`, `s`, `min`. At most 10 years.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, QuantityError> {
    let wanted = QuantityError::new(text, "a duration such as 5ms or 30s");
    let Some((number, unit)) = number_and_unit(text) else { return Err(wanted) };
    let nanoseconds = match unit.as_str() {
        "ns" => number,
        "us" | "µs" => number * 1e3,
        "ms" => number * 1e6,
        "s" => number * 1e9,
        "min" => number * 60e9,
        "" if number == 0.0 => 0.0,
        _ => return Err(wanted),
    };
    if nanoseconds > 3.2e17 { Err(wanted) } else { Ok(Duration::from_nanos(nanoseconds.round() as u64)) }
}

/// Writes a duration so that [`parse_duration`] reads the same one back.
pub(crate) fn duration_text(duration: Duration) -> String {
    let nanoseconds = nanoseconds(duration);
    for (unit, name) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
        if nanoseconds.is_multiple_of(unit) {
            return format!("{}{name}", nanoseconds / unit);
        }
    }
    format!("{nanoseconds}ns")
}

/// The duration in whole nanoseconds; the largest number there is after 584 years.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl FromStr for Bandwidth {
    type Err = QuantityError;

    /// Reads `2mbit`, `1.5gbit/s`, `400kbit`, `9600bit`. Zero is refused: a blackout or a trace stops a channel.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let wanted = QuantityError::new(text, "a rate above zero such as 2mbit or 1.5gbit");
        let Some((number, unit)) = number_and_unit(text) else { return Err(wanted) };
        let scale = match unit.strip_suffix("/s").unwrap_or(&unit) {
            "bit" => 1.0,
            "kbit" => 1e3,
            "mbit" => 1e6,
            "gbit" => 1e9,
            _ => return Err(wanted),
        };
        let bits = (number * scale).round();
        if (1.0..=1e13).contains(&bits) { Ok(Self(bits as u64)) } else { Err(wanted) }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit")] {
            if self.0.is_multiple_of(unit) {
                return write!(formatter, "{}{name}", self.0 / unit);
            }
        }
        write!(formatter, "{}bit", self.0)
    }
}

impl FromStr for Probability {
    type Err = QuantityError;

    /// Reads `0.1%` or `0.001`.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
            None => text.parse::<f64>(),
        };
        share
            .ok()
            .and_then(Self::new)
            .ok_or_else(|| QuantityError::new(text, "a probability such as 0.1% or 0.001"))
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_units() {
        for (text, nanoseconds) in
            [("5ms", 5_000_000), ("2.5ms", 2_500_000), ("30s", 30_000_000_000), ("7us", 7_000), ("0", 0)]
        {
            assert_eq!(parse_duration(text).unwrap(), Duration::from_nanos(nanoseconds), "{text}");
        }
        for text in ["5", "ms", "-1ms", "1e3ms", "1.2.3s", "99999999999s", ""] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_read_with_their_units() {
        for (text, bits) in
            [("2mbit", 2_000_000), ("1.5Gbit/s", 1_500_000_000), ("400kbit", 400_000), ("8bit", 8)]
        {
            assert_eq!(text.parse::<Bandwidth>().unwrap().bits_per_second(), bits, "{text}");
        }
        for text in ["0mbit", "2", "2mb", "nanmbit", "-2mbit"] {
            assert!(text.parse::<Bandwidth>().is_err(), "{text}");
        }
    }

    #[test]
    fn probabilities_are_read_as_shares_and_percentages() {
        assert_eq!("0.1%".parse::<Probability>().unwrap().share(), 0.001);
        assert_eq!("1".parse::<Probability>().unwrap(), Probability::ALWAYS);
        for text in ["101%", "-0.1", "NaN", "1.5", ""] {
            assert!(text.parse::<Probability>().is_err(), "{text}");
        }
    }
}
