//! Integers of QUIC's variable-length encoding.

use std::fmt;

/// An integer below 2^62 (RFC 9000 §16): codes of applications, numbers of streams, sizes of windows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct VarInt(u64);

/// The integer is 2^62 or more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the value is too large for a variable-length integer")]
pub struct VarIntBoundsExceeded;

impl VarInt {
    /// The largest value.
    pub const MAX: Self = Self((1 << 62) - 1);

    /// An integer of 32 bits, which always fits.
    pub const fn from_u32(value: u32) -> Self {
        Self(value as u64)
    }

    /// An integer of 64 bits.
    ///
    /// # Errors
    /// It is above [`Self::MAX`].
    pub const fn from_u64(value: u64) -> Result<Self, VarIntBoundsExceeded> {
        if value <= Self::MAX.0 { Ok(Self(value)) } else { Err(VarIntBoundsExceeded) }
    }

    /// The value.
    pub const fn into_inner(self) -> u64 {
        self.0
    }

    /// A value that QUIC carried, and that is in range therefore.
    pub(crate) fn carried(value: u64) -> Self {
        Self(value.min(Self::MAX.0))
    }
}

impl fmt::Display for VarInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<VarInt> for u64 {
    fn from(value: VarInt) -> Self {
        value.0
    }
}

impl From<crate::StreamId> for VarInt {
    fn from(id: crate::StreamId) -> Self {
        Self::carried(id.0.0)
    }
}

impl From<u8> for VarInt {
    fn from(value: u8) -> Self {
        Self(value.into())
    }
}

impl From<u16> for VarInt {
    fn from(value: u16) -> Self {
        Self(value.into())
    }
}

impl From<u32> for VarInt {
    fn from(value: u32) -> Self {
        Self(value.into())
    }
}

impl TryFrom<u64> for VarInt {
    type Error = VarIntBoundsExceeded;

    fn try_from(value: u64) -> Result<Self, VarIntBoundsExceeded> {
        Self::from_u64(value)
    }
}

impl TryFrom<usize> for VarInt {
    type Error = VarIntBoundsExceeded;

    fn try_from(value: usize) -> Result<Self, VarIntBoundsExceeded> {
        Self::from_u64(value as u64)
    }
}

impl TryFrom<u128> for VarInt {
    type Error = VarIntBoundsExceeded;

    fn try_from(value: u128) -> Result<Self, VarIntBoundsExceeded> {
        Self::from_u64(value.try_into().map_err(|_| VarIntBoundsExceeded)?)
    }
}
