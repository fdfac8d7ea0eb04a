//! The Differentiated Services codepoint of a path: which treatment its packets ask of the network (RFC 2474, RFC 10069
//! §5.2).

use std::fmt;
use std::str::FromStr;

/// A codepoint, 0 to 63, as RFC 2474 §3 defines the upper six bits of the traffic class. The lower two are ECN's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Dscp(u8);

impl Dscp {
    /// Best effort, the default.
    pub const DEFAULT: Self = Self(0);
    /// Expedited forwarding: low loss, delay and jitter (RFC 3246).
    pub const EXPEDITED: Self = Self(46);

    /// The codepoint `value`, if it has no more than six bits.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 { Some(Self(value)) } else { None }
    }

    /// Its value, 0 to 63.
    pub const fn value(self) -> u8 {
        self.0
    }

    /// The traffic class that holds it, with the ECN bits `ecn`.
    pub const fn traffic_class(self, ecn: u8) -> u8 {
        self.0 << 2 | ecn & 0b11
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Text that is no codepoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a number from 0 to 63")]
pub struct DscpError;

impl FromStr for Dscp {
    type Err = DscpError;

    fn from_str(text: &str) -> Result<Self, DscpError> {
        text.parse().ok().and_then(Self::new).ok_or(DscpError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_bits_are_a_codepoint_and_share_a_byte_with_ecn() {
        assert_eq!(Dscp::new(64), None);
        assert_eq!("46".parse(), Ok(Dscp::EXPEDITED));
        assert_eq!((Dscp::EXPEDITED.value(), Dscp::new(63).map(Dscp::value)), (46, Some(63)));
        assert_eq!("64".parse::<Dscp>(), Err(DscpError));
        assert_eq!(Dscp::EXPEDITED.traffic_class(0b10), 0b1011_1010);
    }
}
