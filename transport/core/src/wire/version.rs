//! QUIC versions (RFC 9000 §15).

use std::fmt;

/// A QUIC version number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

impl Version {
    /// QUIC version 1 (RFC 9000).
    pub const V1: Self = Self(1);
    /// QUIC version 2 (RFC 9369 §3.1).
    pub const V2: Self = Self(0x6b33_43cf);
    /// The number that is no version: it marks a Version Negotiation packet (RFC 9000 §17.2.1).
    pub const NEGOTIATION: Self = Self(0);

    /// Returns true if this implementation can take packets of the version apart: those of versions 1 and 2.
    pub const fn is_known(self) -> bool {
        matches!(self, Self::V1 | Self::V2)
    }

    /// Returns true if the version is reserved to exercise version negotiation, 0x?a?a?a?a (RFC 9000 §15).
    pub const fn is_reserved(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }

    /// The reserved version that keeps the free bits of `random`.
    pub const fn reserved(random: u32) -> Self {
        Self(random & 0xf0f0_f0f0 | 0x0a0a_0a0a)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({:#010x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_versions_have_their_pattern() {
        assert!(Version(0x0a0a_0a0a).is_reserved());
        assert!(Version(0x1a2a_3afa).is_reserved());
        assert!(!Version::V1.is_reserved());
        assert!(!Version(0x1a2a_3afb).is_reserved());
        assert_eq!(Version::reserved(0x1234_5678), Version(0x1a3a_5a7a));
        assert_eq!(format!("{:?}", Version::V1), "Version(0x00000001)");
    }
}
