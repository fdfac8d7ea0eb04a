//! The error of a frame, before it is known in which frame it was.

use crate::PathId;
use crate::error::ErrorCode;
use crate::wire::cursor::Truncated;

/// A code and its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DecodeError {
    pub(super) code: ErrorCode,
    pub(super) reason: &'static str,
}

impl DecodeError {
    /// The frame cannot be what its sender meant (RFC 9000 §20.1).
    pub(super) const fn encoding(reason: &'static str) -> Self {
        Self { code: ErrorCode::FRAME_ENCODING_ERROR, reason }
    }

    /// The frame is clear and must not be (RFC 9000 §20.1).
    pub(super) const fn violation(reason: &'static str) -> Self {
        Self { code: ErrorCode::PROTOCOL_VIOLATION, reason }
    }

    /// A path ID that no limit can permit (RFC 10069 §4): path IDs end at 2^32-1.
    pub(super) fn path(raw: u64) -> Result<PathId, Self> {
        u32::try_from(raw).map(PathId).map_err(|_| Self::violation("path ID above 2^32-1"))
    }
}

impl From<Truncated> for DecodeError {
    fn from(_: Truncated) -> Self {
        Self::encoding("frame is truncated")
    }
}
