//! The frames of the multipath extension about paths (RFC 10069 §4), and the reasons for giving one up.

use super::decode_error::DecodeError;
use super::types;
use crate::PathId;
use crate::wire::cursor::Reader;

/// PATH_ABANDON: the application gave up the path (RFC 10069 §4.2).
pub const APPLICATION_ABANDON_PATH: u64 = 0x3e;
/// PATH_ABANDON: the endpoint has no resources for the path.
pub const PATH_RESOURCE_LIMIT_REACHED: u64 = 0x3e75;
/// PATH_ABANDON: the path is unstable or too poor to be worth it.
pub const PATH_UNSTABLE_OR_POOR: u64 = 0x3e76;
/// PATH_ABANDON: there is no connection ID for the path.
pub const NO_CID_AVAILABLE_FOR_PATH: u64 = 0x3e77;

/// The use of a path that an endpoint would like (RFC 10069 §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// Like every other.
    Available,
    /// Only while no other path can be used.
    Backup,
}

impl Status {
    /// Returns the type of the frame with this status.
    pub(super) fn frame_type(self) -> u64 {
        match self {
            Self::Available => types::PATH_STATUS_AVAILABLE,
            Self::Backup => types::PATH_STATUS_BACKUP,
        }
    }

    /// Returns the status that a frame of `frame_type`, one of the two, is about.
    pub(super) fn of(frame_type: u64) -> Self {
        match frame_type {
            types::PATH_STATUS_BACKUP => Self::Backup,
            _ => Self::Available,
        }
    }
}

/// Reads a path ID.
pub(super) fn id(reader: &mut Reader) -> Result<PathId, DecodeError> {
    DecodeError::path(reader.varint()?)
}
