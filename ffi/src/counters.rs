//! Counters.
//!
//! Endpoints and connections count more than what is counted for each path (hvq_path_list).

use crate::error::{HVQ_ERR_TOO_SMALL, hvq_result};
use crate::guard;
use crate::state::{hvq_endpoint, look, with};
use std::ffi::c_char;

/// Counters of an endpoint: datagrams that it ignored, and that it sent without a connection.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_endpoint_statistics {
    /// Connections that exist, closing ones included.
    pub connections: u64,
    /// Datagrams that no connection took, for whatever reason.
    pub datagrams_dropped: u64,
    /// Version Negotiation packets sent.
    pub version_negotiations: u64,
    /// Retry packets sent.
    pub retries: u64,
    /// Stateless resets sent.
    pub stateless_resets: u64,
    /// Connections refused without state for them.
    pub refusals: u64,
    /// Connections of peers that began with a token that proves the address.
    pub proven_addresses: u64,
}

/// Writes the counters of an endpoint.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_get_statistics(
    endpoint: *mut hvq_endpoint,
    statistics: *mut hvq_endpoint_statistics,
) -> hvq_result {
    on_endpoint!(endpoint, |state| {
        let core = state.core.stats();
        let counters = hvq_endpoint_statistics {
            connections: state.core.handles().count() as u64,
            datagrams_dropped: core.dropped.values().sum(),
            version_negotiations: core.version_negotiations,
            retries: core.retries,
            stateless_resets: core.stateless_resets,
            refusals: core.refusals,
            proven_addresses: core.proven_addresses,
        };
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(statistics, counters) }
    })
}

/// Datagrams that no connection took for one reason.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct hvq_dropped {
    /// The reason, for people.
    pub reason: [c_char; 64],
    /// The number of times.
    pub count: u64,
}

/// Writes the reasons for which datagrams were ignored, in no order: at most `capacity` of them to `dropped`, and how many
/// there are to `count`. 32 are always enough.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_TOO_SMALL` if `capacity` is less than `count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_endpoint_list_dropped(
    endpoint: *mut hvq_endpoint,
    dropped: *mut hvq_dropped,
    capacity: usize,
    count: *mut usize,
) -> hvq_result {
    on_endpoint!(endpoint, |state| {
        guard::check(count)?;
        // SAFETY: the caller gives room for that many structs.
        let room = unsafe { guard::room(dropped, capacity) }?;
        let reasons = &state.core.stats().dropped;
        for (place, (reason, count)) in room.iter_mut().zip(reasons) {
            place.write(hvq_dropped { reason: name(&reason.to_string()), count: *count });
        }
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(count, reasons.len()) }?;
        if reasons.len() > capacity { Err(HVQ_ERR_TOO_SMALL.into()) } else { Ok(()) }
    })
}

/// Frames of one kind on one path.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct hvq_frame_counter {
    /// The number of the path.
    pub path: u32,
    /// 0.
    pub reserved: u32,
    /// The frame's name in RFC 9000, RFC 9221 or RFC 10069, such as "stream".
    pub kind: [c_char; 32],
    /// Frames sent.
    pub sent: u64,
    /// Bytes of the frames sent.
    pub sent_bytes: u64,
    /// Frames received.
    pub received: u64,
}

/// Writes counters of frames by path and kind, in no order: at most `capacity` of them to `counters`, and how many there are
/// to `count`. The latest sixteen closed paths are included.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_TOO_SMALL` if `capacity` is less than `count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_connection_list_frames(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    counters: *mut hvq_frame_counter,
    capacity: usize,
    count: *mut usize,
) -> hvq_result {
    look_at!(endpoint, connection, |core| {
        guard::check(count)?;
        // SAFETY: the caller gives room for that many structs.
        let room = unsafe { guard::room(counters, capacity) }?;
        let frames = core.stats().frames;
        for (place, counter) in room.iter_mut().zip(&frames) {
            place.write(hvq_frame_counter {
                path: counter.path.0,
                reserved: 0,
                kind: name(counter.kind),
                sent: counter.sent,
                sent_bytes: counter.sent_bytes,
                received: counter.received,
            });
        }
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(count, frames.len()) }?;
        if frames.len() > capacity { Err(HVQ_ERR_TOO_SMALL.into()) } else { Ok(()) }
    })
}

/// A name as an array of C, cut to what fits, with a zero byte at the end.
pub(crate) fn name<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (place, byte) in array.iter_mut().take(N.saturating_sub(1)).zip(text.bytes()) {
        *place = byte as c_char;
    }
    array
}
