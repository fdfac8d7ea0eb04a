//! The frames of the multipath extension about paths (RFC 10069 §4), and the reasons for giving one up.

use super::Frame;
use super::fault::Fault;
use super::types;
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

/// Reads what follows a `frame_type` that is one of PATH_ABANDON, PATH_STATUS_*, MAX_PATH_ID, PATHS_BLOCKED and
/// PATH_CIDS_BLOCKED.
pub(super) fn read(frame_type: u64, reader: &mut Reader) -> Result<Frame, Fault> {
    let first = reader.varint()?;
    Ok(match frame_type {
        types::MAX_PATH_ID => Frame::MaxPathId(first),
        types::PATHS_BLOCKED => Frame::PathsBlocked(first),
        types::PATH_ABANDON => Frame::PathAbandon { path: Fault::path(first)?, error: reader.varint()? },
        types::PATH_STATUS_BACKUP => Frame::PathStatus {
            path: Fault::path(first)?,
            sequence: reader.varint()?,
            status: Status::Backup,
        },
        types::PATH_STATUS_AVAILABLE => Frame::PathStatus {
            path: Fault::path(first)?,
            sequence: reader.varint()?,
            status: Status::Available,
        },
        _ => Frame::PathCidsBlocked { path: Fault::path(first)?, next_sequence: reader.varint()? },
    })
}
