//! Units: path identifiers, rates and shares.

use std::fmt;
use std::time::Duration;

/// A path identifier (RFC 10069 §1.1): 32 bits, used once per connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PathId(pub u32);

impl PathId {
    /// The path of the handshake.
    pub const ZERO: Self = Self(0);
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A rate, in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bandwidth(u64);

impl Bandwidth {
    /// `bits` bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// `megabits` million bits per second.
    pub const fn from_mbit(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// The rate at which `bytes` pass in `time`, rounded down; a time of zero counts as a nanosecond. Saturates.
    #[inline]
    pub fn of(bytes: u64, time: Duration) -> Self {
        let (bits, nanos) = (u128::from(bytes) * 8_000_000_000, time.as_nanos().max(1));
        // Nearly always 64 bits are enough, which divide several times as fast.
        Self(match (u64::try_from(bits), u64::try_from(nanos)) {
            (Ok(bits), Ok(nanos)) => bits / nanos,
            _ => u64::try_from(bits / nanos).unwrap_or(u64::MAX),
        })
    }

    /// The rate in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the transmission time of `bytes` at this rate, rounded down to a nanosecond; [`Duration::MAX`] at rate
    /// zero, unless `bytes` is zero too.
    pub const fn transmission_time(self, bytes: usize) -> Duration {
        if bytes == 0 {
            return Duration::ZERO;
        }
        if self.0 == 0 {
            return Duration::MAX;
        }
        if let Some(bits) = (bytes as u64).checked_mul(8_000_000_000) {
            return Duration::from_nanos(bits / self.0);
        }
        let nanos = bytes as u128 * 8_000_000_000 / self.0 as u128;
        if nanos > u64::MAX as u128 { Duration::MAX } else { Duration::from_nanos(nanos as u64) }
    }

    /// Returns the number of whole bytes that pass in `time` at this rate; saturates.
    pub const fn bytes_in(self, time: Duration) -> u64 {
        let bits = time.as_nanos().saturating_mul(self.0 as u128);
        if bits <= u64::MAX as u128 {
            return bits as u64 / 8_000_000_000;
        }
        let bytes = bits / 8_000_000_000;
        if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            1_000_000_000.. => (1_000_000_000, "Gbit/s"),
            1_000_000.. => (1_000_000, "Mbit/s"),
            1_000.. => (1_000, "kbit/s"),
            _ => (1, "bit/s"),
        };
        write!(f, "{}.{:02} {name}", self.0 / unit, self.0 % unit * 100 / unit)
    }
}

impl fmt::Debug for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A share in thousandths, from 0 to 1000.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct PerMille(u16);

impl PerMille {
    /// None.
    pub const ZERO: Self = Self(0);

    /// `thousandths` thousandths; more than 1000 counts as 1000.
    pub const fn new(thousandths: u16) -> Self {
        Self(if thousandths > 1000 { 1000 } else { thousandths })
    }

    /// The share of `part` in `whole`; zero of nothing.
    pub const fn of(part: u64, whole: u64) -> Self {
        if whole == 0 {
            return Self::ZERO;
        }
        let share = part as u128 * 1000 / whole as u128;
        Self(if share > 1000 { 1000 } else { share as u16 })
    }

    /// The share in thousandths.
    pub const fn get(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_six_milliseconds_on_urllc() {
        assert_eq!(Bandwidth::from_mbit(2).transmission_time(1500), Duration::from_millis(6));
        assert_eq!(Bandwidth::from_mbit(2).bytes_in(Duration::from_millis(6)), 1500);
    }

    #[test]
    fn a_rate_is_that_of_bytes_in_a_time() {
        assert_eq!(Bandwidth::of(1500, Duration::from_millis(6)), Bandwidth::from_mbit(2));
        assert_eq!(Bandwidth::of(1, Duration::ZERO), Bandwidth::from_bits_per_second(8_000_000_000));
        // Beyond 64 bits, on either side.
        let day = Duration::from_secs(86_400);
        assert_eq!(Bandwidth::of(1 << 40, day), Bandwidth::from_bits_per_second((8 << 40) / 86_400));
        assert_eq!(Bandwidth::of(u64::MAX, Duration::ZERO), Bandwidth::from_bits_per_second(u64::MAX));
        assert_eq!(Bandwidth::of(u64::MAX, Duration::MAX), Bandwidth::from_bits_per_second(7));
    }

    #[test]
    fn extreme_rates_saturate() {
        let (none, most) = (Bandwidth::default(), Bandwidth::from_bits_per_second(u64::MAX));
        assert_eq!(none.transmission_time(1), Duration::MAX);
        assert_eq!(none.transmission_time(0), Duration::ZERO);
        assert_eq!(most.transmission_time(1200), Duration::ZERO);
        assert_eq!(most.bytes_in(Duration::MAX), u64::MAX);
        assert_eq!(Bandwidth::from_mbit(u64::MAX), most);
        assert_eq!(Bandwidth::from_bits_per_second(1).transmission_time(usize::MAX), Duration::MAX);
    }

    #[test]
    fn rates_and_shares_print_and_clamp() {
        assert_eq!(Bandwidth::from_bits_per_second(2_500_000).to_string(), "2.50 Mbit/s");
        assert_eq!(Bandwidth::from_bits_per_second(12).to_string(), "12.00 bit/s");
        assert_eq!(PerMille::of(1, 8).get(), 125);
        assert_eq!(PerMille::of(9, 8), PerMille::new(2000));
        assert_eq!(PerMille::of(9, 0), PerMille::ZERO);
    }
}
