//! Errors.
//!
//! Almost every function returns an `hvq_result`: 0, or a negative number that says why nothing was done. The numbers
//! never change their meaning; new ones are added below the smallest. The text of a failure is kept for each thread
//! until its next call fails.

use crate::guard;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};

/// The outcome of a call: `HVQ_OK`, or one of the negative `HVQ_ERR_` numbers.
pub type hvq_result = i32;

/// Done.
pub const HVQ_OK: hvq_result = 0;
/// A pointer that must not be NULL is NULL.
pub const HVQ_ERR_NULL: hvq_result = -1;
/// An argument has no meaning: a number out of range, text that is not UTF-8, a struct of an unknown size.
pub const HVQ_ERR_ARGUMENT: hvq_result = -2;
/// The endpoint is in use: another thread is in a call on it, or a callback of it called it.
pub const HVQ_ERR_BUSY: hvq_result = -3;
/// The library failed, and the endpoint is of no use any more. Only hvq_endpoint_free may follow.
pub const HVQ_ERR_PANIC: hvq_result = -4;
/// The endpoint has no connection of this number, or has none any more.
pub const HVQ_ERR_UNKNOWN_CONNECTION: hvq_result = -5;
/// The connection has no such stream, or the stream does not go in this direction, or it is over.
pub const HVQ_ERR_UNKNOWN_STREAM: hvq_result = -6;
/// The connection has no open path of this number.
pub const HVQ_ERR_UNKNOWN_PATH: hvq_result = -7;
/// Nothing can be done now; an event tells when to try again.
pub const HVQ_ERR_BLOCKED: hvq_result = -8;
/// There is nothing, or nothing more.
pub const HVQ_ERR_NONE: hvq_result = -9;
/// All of the stream has been read.
pub const HVQ_ERR_END: hvq_result = -10;
/// The stream was finished or reset here.
pub const HVQ_ERR_FINISHED: hvq_result = -11;
/// The stream was stopped: by the peer if it was to be written, whose code hvq_last_error_code() tells, or here if it was
/// to be read.
pub const HVQ_ERR_STOPPED: hvq_result = -12;
/// The peer reset the stream, with the code that hvq_last_error_code() tells.
pub const HVQ_ERR_RESET: hvq_result = -13;
/// The buffer is too small.
pub const HVQ_ERR_TOO_SMALL: hvq_result = -14;
/// More than the peer, the network or a limit permits.
pub const HVQ_ERR_TOO_LARGE: hvq_result = -15;
/// The peer did not offer it: datagrams, or several paths.
pub const HVQ_ERR_NOT_NEGOTIATED: hvq_result = -16;
/// Only clients do that.
pub const HVQ_ERR_NOT_CLIENT: hvq_result = -17;
/// The handshake is not complete, or the connection is closing.
pub const HVQ_ERR_NOT_CONNECTED: hvq_result = -18;
/// A limit is reached: paths of the connection, or connections of the endpoint.
pub const HVQ_ERR_LIMIT: hvq_result = -19;
/// The peer permits no other addresses.
pub const HVQ_ERR_FORBIDDEN: hvq_result = -20;
/// The peer has issued no connection ID for it yet. Try again later.
pub const HVQ_ERR_NO_CONNECTION_ID: hvq_result = -21;
/// The last path of a connection can only go with the connection.
pub const HVQ_ERR_LAST_PATH: hvq_result = -22;
/// TLS cannot be set up so; hvq_last_error() tells more.
pub const HVQ_ERR_TLS: hvq_result = -23;
/// A name that nothing has: of a scheduler or a congestion controller.
pub const HVQ_ERR_UNKNOWN_NAME: hvq_result = -24;
/// The system failed; hvq_last_error() tells more.
pub const HVQ_ERR_SYSTEM: hvq_result = -25;

/// Every number with its name and its text, in the order of the numbers.
const TABLE: [(hvq_result, &CStr, &CStr); 26] = [
    (HVQ_OK, c"HVQ_OK", c"done"),
    (HVQ_ERR_NULL, c"HVQ_ERR_NULL", c"a pointer that must not be NULL is NULL"),
    (HVQ_ERR_ARGUMENT, c"HVQ_ERR_ARGUMENT", c"an argument has no meaning"),
    (
        HVQ_ERR_BUSY,
        c"HVQ_ERR_BUSY",
        c"the endpoint is in use by another thread or by the caller of this callback",
    ),
    (HVQ_ERR_PANIC, c"HVQ_ERR_PANIC", c"the library failed and the endpoint is of no use any more"),
    (HVQ_ERR_UNKNOWN_CONNECTION, c"HVQ_ERR_UNKNOWN_CONNECTION", c"no such connection"),
    (HVQ_ERR_UNKNOWN_STREAM, c"HVQ_ERR_UNKNOWN_STREAM", c"no such stream"),
    (HVQ_ERR_UNKNOWN_PATH, c"HVQ_ERR_UNKNOWN_PATH", c"no such path"),
    (HVQ_ERR_BLOCKED, c"HVQ_ERR_BLOCKED", c"nothing can be done now; an event follows"),
    (HVQ_ERR_NONE, c"HVQ_ERR_NONE", c"there is nothing more"),
    (HVQ_ERR_END, c"HVQ_ERR_END", c"all of the stream has been read"),
    (HVQ_ERR_FINISHED, c"HVQ_ERR_FINISHED", c"the stream was finished or reset here"),
    (HVQ_ERR_STOPPED, c"HVQ_ERR_STOPPED", c"the stream was stopped"),
    (HVQ_ERR_RESET, c"HVQ_ERR_RESET", c"the peer reset the stream"),
    (HVQ_ERR_TOO_SMALL, c"HVQ_ERR_TOO_SMALL", c"the buffer is too small"),
    (HVQ_ERR_TOO_LARGE, c"HVQ_ERR_TOO_LARGE", c"more than is permitted"),
    (HVQ_ERR_NOT_NEGOTIATED, c"HVQ_ERR_NOT_NEGOTIATED", c"the peer did not offer it"),
    (HVQ_ERR_NOT_CLIENT, c"HVQ_ERR_NOT_CLIENT", c"only clients do that"),
    (HVQ_ERR_NOT_CONNECTED, c"HVQ_ERR_NOT_CONNECTED", c"the connection is not established"),
    (HVQ_ERR_LIMIT, c"HVQ_ERR_LIMIT", c"a limit is reached"),
    (HVQ_ERR_FORBIDDEN, c"HVQ_ERR_FORBIDDEN", c"the peer permits no other addresses"),
    (
        HVQ_ERR_NO_CONNECTION_ID,
        c"HVQ_ERR_NO_CONNECTION_ID",
        c"the peer has issued no connection ID for it yet",
    ),
    (HVQ_ERR_LAST_PATH, c"HVQ_ERR_LAST_PATH", c"the last path can only go with the connection"),
    (HVQ_ERR_TLS, c"HVQ_ERR_TLS", c"TLS cannot be set up so"),
    (HVQ_ERR_UNKNOWN_NAME, c"HVQ_ERR_UNKNOWN_NAME", c"a name that nothing has"),
    (HVQ_ERR_SYSTEM, c"HVQ_ERR_SYSTEM", c"the system failed"),
];

/// The failure of a call.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) result: hvq_result,
    /// The code of the peer's application, if it gave one.
    pub(crate) code: u64,
    /// A message beyond the number.
    pub(crate) text: Option<String>,
}

impl Failure {
    /// A failure with more to say.
    pub(crate) fn because(result: hvq_result, text: impl ToString) -> Self {
        Self { result, code: 0, text: Some(text.to_string()) }
    }

    /// A failure with a code of the peer.
    pub(crate) fn with_code(result: hvq_result, code: u64) -> Self {
        Self { result, code, text: None }
    }
}

impl From<hvq_result> for Failure {
    fn from(result: hvq_result) -> Self {
        Self { result, code: 0, text: None }
    }
}

thread_local! {
    static LAST: RefCell<Failure> = const { RefCell::new(Failure { result: HVQ_OK, code: 0, text: None }) };
}

/// Keeps `failure` for whoever asks, and returns its number.
pub(crate) fn report(failure: Failure) -> hvq_result {
    let result = failure.result;
    // The thread may be ending.
    let _unreported = LAST.try_with(|last| last.replace(failure));
    result
}

fn row(result: hvq_result) -> Option<&'static (hvq_result, &'static CStr, &'static CStr)> {
    TABLE.iter().find(|(number, ..)| *number == result)
}

/// The name of a result, such as "HVQ_ERR_NULL"; "HVQ_ERR_?" for a number that this library does not know. The text is
/// static.
#[unsafe(no_mangle)]
pub extern "C" fn hvq_error_name(result: hvq_result) -> *const c_char {
    row(result).map_or(c"HVQ_ERR_?", |(_, name, _)| name).as_ptr()
}

/// Returns the meaning of a result, in English and without a full stop. The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn hvq_error_text(result: hvq_result) -> *const c_char {
    row(result).map_or(c"unknown error", |(.., text)| text).as_ptr()
}

/// Writes the message of the last call that failed on this thread beyond its number, as text that ends with a zero byte
/// and is cut if `capacity` bytes are too few. Returns the number of bytes that the whole text needs, the zero byte
/// included; `buffer` may be NULL if `capacity` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_last_error(buffer: *mut c_char, capacity: usize) -> usize {
    let whole = LAST.try_with(|last| {
        let last = last.borrow();
        let standard = || row(last.result).map(|(.., text)| text.to_string_lossy().into_owned());
        last.text.clone().or_else(standard).unwrap_or_default()
    });
    let whole = whole.unwrap_or_default();
    // SAFETY: the caller gives `capacity` bytes, or none.
    unsafe { guard::put_text(&whole, buffer, capacity) }
}

/// The code of the peer's application that came with the last call that failed on this thread (`HVQ_ERR_STOPPED`,
/// `HVQ_ERR_RESET`), or 0.
#[unsafe(no_mangle)]
pub extern "C" fn hvq_last_error_code() -> u64 {
    LAST.try_with(|last| last.borrow().code).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_name_and_a_text_and_none_is_skipped() {
        for (index, (number, name, text)) in TABLE.iter().enumerate() {
            assert_eq!(*number, -(index as i32));
            assert!(name.to_str().unwrap().starts_with("HVQ_"));
            assert!(!text.to_bytes().is_empty());
        }
    }

    #[test]
    fn an_unknown_number_has_a_text_too() {
        for number in [1, -1000, i32::MIN, i32::MAX] {
            // SAFETY: the text is static.
            let text = unsafe { CStr::from_ptr(hvq_error_text(number)) };
            assert_eq!(text, c"unknown error");
        }
    }
}
