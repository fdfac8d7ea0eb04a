//! Streams.
//!
//! A stream is named by its connection and its number, which both ends share (RFC 9000 §2.1). Streams that do not exist or
//! are over are answered with `HVQ_ERR_UNKNOWN_STREAM`.

use crate::address::hvq_bytes;
use crate::error::{
    Failure, HVQ_ERR_ARGUMENT, HVQ_ERR_BLOCKED, HVQ_ERR_END, HVQ_ERR_FINISHED, HVQ_ERR_NONE, HVQ_ERR_RESET,
    HVQ_ERR_STOPPED, HVQ_ERR_UNKNOWN_STREAM, hvq_result,
};
use crate::guard;
use crate::state::{hvq_endpoint, look, with, with_connection};
use bytes::Bytes;
use hvq_scheduler::Priority;
use hvq_transport::stream::{Direction, ReadError, ReadOutcome, StreamId, WriteError};
use hvq_transport::time::Instant;
use std::ffi::c_void;

/// Both ends send.
pub const HVQ_BIDIRECTIONAL: u32 = 0;
/// Only the end that opened the stream sends.
pub const HVQ_UNIDIRECTIONAL: u32 = 1;

/// A stream of a connection.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_stream {
    /// The number of the connection.
    pub connection: u64,
    /// The number of the stream.
    pub id: u64,
}

/// Bytes of the program that the library may keep.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_owned {
    /// The bytes, which must not change until `release` is called.
    pub bytes: hvq_bytes,
    /// Called exactly once, when the library needs the bytes no more; it must not call the library for the same endpoint.
    pub release: Option<unsafe extern "C" fn(user: *mut c_void)>,
    /// Passed to `release`.
    pub user: *mut c_void,
}

/// Keeps bytes of C until it is dropped.
struct Owner(hvq_owned);

// SAFETY: the bytes do not change, and `release` is called within calls on the endpoint, by whatever thread uses it.
unsafe impl Send for Owner {}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.0.bytes;
        // SAFETY: checked before the owner was made.
        if bytes.length == 0 { &[] } else { unsafe { std::slice::from_raw_parts(bytes.data, bytes.length) } }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: the function may be called with its `user`, once.
            unsafe { release(self.0.user) };
        }
    }
}

fn direction(number: u32) -> Result<Direction, Failure> {
    match number {
        HVQ_BIDIRECTIONAL => Ok(Direction::Bidirectional),
        HVQ_UNIDIRECTIONAL => Ok(Direction::Unidirectional),
        _ => Err(Failure::because(HVQ_ERR_ARGUMENT, "neither HVQ_BIDIRECTIONAL nor HVQ_UNIDIRECTIONAL")),
    }
}

fn write_failure(error: WriteError) -> Failure {
    match error {
        WriteError::UnknownStream => HVQ_ERR_UNKNOWN_STREAM.into(),
        WriteError::Stopped(code) => Failure::with_code(HVQ_ERR_STOPPED, code),
        WriteError::Finished => HVQ_ERR_FINISHED.into(),
        WriteError::Blocked => HVQ_ERR_BLOCKED.into(),
    }
}

fn read_failure(error: ReadError) -> Failure {
    match error {
        ReadError::UnknownStream => HVQ_ERR_UNKNOWN_STREAM.into(),
        ReadError::Reset(code) => Failure::with_code(HVQ_ERR_RESET, code),
        ReadError::Stopped => HVQ_ERR_STOPPED.into(),
    }
}

/// Opens a stream and writes its number.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_BLOCKED` if the peer
/// permits no more now; `HVQ_EVENT_STREAMS_AVAILABLE` follows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_open(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    direction_number: u32,
    stream: *mut hvq_stream,
) -> hvq_result {
    on_connection!(endpoint, connection, |core| {
        guard::check(stream)?;
        let id = core.open(direction(direction_number)?).ok_or(HVQ_ERR_BLOCKED)?.0;
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(stream, hvq_stream { connection, id }) }
    })
}

/// Writes the next stream that the peer opened.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_NONE` if there is none
/// now; `HVQ_EVENT_STREAM_OPENED` follows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_accept(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    direction_number: u32,
    stream: *mut hvq_stream,
) -> hvq_result {
    on_connection!(endpoint, connection, |core| {
        guard::check(stream)?;
        let id = core.accept(direction(direction_number)?).ok_or(HVQ_ERR_NONE)?.0;
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(stream, hvq_stream { connection, id }) }
    })
}

/// Appends a copy of the first bytes of `data` that there is room for, and writes how many: at least one, unless `length`
/// is 0.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_STREAM`, `HVQ_ERR_FINISHED`,
/// `HVQ_ERR_STOPPED`; `HVQ_ERR_BLOCKED` if there is no room, `HVQ_EVENT_STREAM_WRITABLE` follows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_write(
    endpoint: *mut hvq_endpoint,
    stream: hvq_stream,
    data: *const c_void,
    length: usize,
    written: *mut usize,
) -> hvq_result {
    on_connection!(endpoint, stream.connection, |core| {
        guard::check(written)?;
        // SAFETY: the caller passes that many bytes.
        let data = unsafe { guard::elements(data.cast::<u8>(), length) }?;
        let count = core.write(StreamId(stream.id), data).map_err(write_failure)?;
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(written, count) }
    })
}

/// Writes like hvq_stream_write(), without a copy if the bytes are many: the library keeps them until the peer has
/// them. `release` is called once in any case, also for a call that fails; what was not taken is to be written again,
/// in a new `hvq_owned`.
///
/// Errors: those of hvq_stream_write().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_write_owned(
    endpoint: *mut hvq_endpoint,
    stream: hvq_stream,
    owned: *const hvq_owned,
    written: *mut usize,
) -> hvq_result {
    // SAFETY: the caller passes a valid struct or NULL; NULL has nothing to release.
    let owner = unsafe { owned.as_ref() }.map(|owned| Owner(*owned));
    on_connection!(endpoint, stream.connection, |core| {
        guard::check(written)?;
        let owner = owner.ok_or(crate::error::HVQ_ERR_NULL)?;
        // SAFETY: the caller passes that many bytes.
        unsafe { owner.0.bytes.get() }?;
        let count = core.write_bytes(StreamId(stream.id), Bytes::from_owner(owner)).map_err(write_failure)?;
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(written, count) }
    })
}

/// Marks what was written so far as the end of a message, which is of use only if it arrives by `deadline`
/// (`HVQ_NEVER` for no such time). Schedulers place the parts of a message by when the whole is there.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_STREAM`, `HVQ_ERR_FINISHED`,
/// `HVQ_ERR_STOPPED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_end_message(
    endpoint: *mut hvq_endpoint,
    stream: hvq_stream,
    deadline: u64,
) -> hvq_result {
    on_connection!(endpoint, stream.connection, |core| {
        let deadline = (deadline != u64::MAX).then(|| Instant::from_nanos(deadline));
        core.end_message(StreamId(stream.id), deadline).map_err(write_failure)
    })
}

/// Ends the sending direction behind what was written.
///
/// Errors: those of hvq_stream_end_message().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_finish(endpoint: *mut hvq_endpoint, stream: hvq_stream) -> hvq_result {
    on_connection!(endpoint, stream.connection, |core| core
        .finish(StreamId(stream.id))
        .map_err(write_failure))
}

/// Gives up the sending direction with a code of the application. Unsent data is dropped.
///
/// Errors: those of hvq_stream_end_message(), and `HVQ_ERR_ARGUMENT` for a code above 2^62 - 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_reset(
    endpoint: *mut hvq_endpoint,
    stream: hvq_stream,
    code: u64,
) -> hvq_result {
    on_connection!(endpoint, stream.connection, |core| {
        core.reset(StreamId(stream.id), checked(code)?, 0).map(drop).map_err(write_failure)
    })
}

/// Asks the peer to send no more, with a code of the application. Data that has arrived is dropped.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_STREAM`, `HVQ_ERR_RESET`,
/// `HVQ_ERR_STOPPED` if it was stopped before, `HVQ_ERR_ARGUMENT` for a code above 2^62 - 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_stop(
    endpoint: *mut hvq_endpoint,
    stream: hvq_stream,
    code: u64,
) -> hvq_result {
    on_connection!(endpoint, stream.connection, |core| {
        core.stop(StreamId(stream.id), checked(code)?).map_err(read_failure)
    })
}

/// A code that fits in a frame.
pub(crate) fn checked(code: u64) -> Result<u64, Failure> {
    if code < 1 << 62 { Ok(code) } else { Err(Failure::because(HVQ_ERR_ARGUMENT, "a code above 2^62 - 1")) }
}

/// Sets the priority of what this end sends on a stream (RFC 9218): `urgency` from 0, the most urgent, to 7; 3 is the
/// default. `incremental` is 1 if a part is of use before the whole has arrived. Unknown streams are ignored.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_set_priority(
    endpoint: *mut hvq_endpoint,
    stream: hvq_stream,
    urgency: u32,
    incremental: u32,
) -> hvq_result {
    on_connection!(endpoint, stream.connection, |core| {
        core.set_priority(StreamId(stream.id), priority(urgency, incremental)?);
        Ok(())
    })
}

/// A priority as C writes it.
pub(crate) fn priority(urgency: u32, incremental: u32) -> Result<Priority, Failure> {
    match (urgency, incremental) {
        (0..=7, 0 | 1) => Ok(Priority { urgency: urgency as u8, incremental: incremental == 1 }),
        _ => Err(Failure::because(HVQ_ERR_ARGUMENT, "urgency is 0 to 7, incremental 0 or 1")),
    }
}

/// Copies at most `capacity` bytes that arrived into `buffer`, and writes how many: at least one, unless `capacity` is 0.
/// More may be there: read until it fails.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_UNKNOWN_STREAM`, `HVQ_ERR_RESET`,
/// `HVQ_ERR_STOPPED`; `HVQ_ERR_END` behind the last byte; `HVQ_ERR_BLOCKED` if nothing is there,
/// `HVQ_EVENT_STREAM_READABLE` follows. After an end or a reset the stream may be unknown.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_read(
    endpoint: *mut hvq_endpoint,
    stream: hvq_stream,
    buffer: *mut c_void,
    capacity: usize,
    count: *mut usize,
) -> hvq_result {
    on_connection!(endpoint, stream.connection, |core| {
        guard::check(count)?;
        // SAFETY: the caller gives room for that many bytes.
        let room = unsafe { guard::room(buffer.cast::<u8>(), capacity) }?;
        let filled = match core.read(StreamId(stream.id), capacity).map_err(read_failure)? {
            ReadOutcome::Data(data) => {
                guard::copy_into(room, &data);
                data.len()
            }
            ReadOutcome::Blocked => return Err(HVQ_ERR_BLOCKED.into()),
            ReadOutcome::Finished => return Err(HVQ_ERR_END.into()),
        };
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(count, filled) }
    })
}

/// Reads like hvq_stream_read(), without a copy: `chunk` names at most `most` bytes that arrived, which are valid until
/// the next call of this function for the same endpoint, or until that is freed.
///
/// Errors: those of hvq_stream_read().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_read_chunk(
    endpoint: *mut hvq_endpoint,
    stream: hvq_stream,
    most: usize,
    chunk: *mut hvq_bytes,
) -> hvq_result {
    on_endpoint!(endpoint, |state| {
        guard::check(chunk)?;
        let read = state.connection(stream.connection)?.read(StreamId(stream.id), most);
        match read.map_err(read_failure)? {
            ReadOutcome::Data(data) => state.chunk = data,
            ReadOutcome::Blocked => return Err(HVQ_ERR_BLOCKED.into()),
            ReadOutcome::Finished => return Err(HVQ_ERR_END.into()),
        }
        let shown = hvq_bytes { data: state.chunk.as_ptr(), length: state.chunk.len() };
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(chunk, shown) }
    })
}

/// Writes 1 to `is_early` if a part of what was received on a stream came in 0-RTT, and may be a copy that an attacker sends;
/// else 0, also for unknown streams.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_stream_is_early(
    endpoint: *mut hvq_endpoint,
    stream: hvq_stream,
    is_early: *mut u32,
) -> hvq_result {
    look_at!(endpoint, stream.connection, |core| {
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(is_early, core.is_early_stream(StreamId(stream.id)).into()) }
    })
}
