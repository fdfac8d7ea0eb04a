//! VP9 in three quality layers, by libvpx: an encoder whose references stop errors from spreading, and a decoder.
//!
//! libvpx is written in C, so this module has `unsafe` code, and nothing but the binding. The part in C (`shim.c`) keeps the
//! structures of libvpx to itself; what crosses the border are numbers, bytes and two opaque pointers.

#![expect(unsafe_code, reason = "libvpx is a library in C")]

mod decoder;
mod encoder;
mod library;
mod rehearsal;
#[cfg(test)]
mod tests;

pub use decoder::{DecodeError, Decoder};
pub use encoder::{Base, EncodeError, Encoded, Encoder, References, Settings};

use std::ffi::{CStr, c_char};

/// Room for a message of the part in C.
const MESSAGE: usize = 160;

/// A message of the part in C.
fn text(message: &[u8; MESSAGE]) -> String {
    let known = CStr::from_bytes_until_nul(message).map(CStr::to_string_lossy);
    known.map_or_else(|_| "unknown".to_owned(), |text| text.into_owned())
}

/// The message at `pointer`.
///
/// # Safety
///
/// It must be that of an encoder or decoder that is still open.
unsafe fn text_at(pointer: *const c_char) -> String {
    // SAFETY: the part in C keeps the message in the object, and ends it with a zero (snprintf).
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}
