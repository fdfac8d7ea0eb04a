//! The version of the library.

use std::ffi::{CStr, c_char};

/// The version of the header, which hvq_version() should begin with.
pub const HVQ_VERSION_MAJOR: u32 = 0;
/// The second number of the version.
pub const HVQ_VERSION_MINOR: u32 = 1;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The version of the library, such as "0.1.0". The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn hvq_version() -> *const c_char {
    CStr::from_bytes_with_nul(VERSION.as_bytes()).unwrap_or(c"").as_ptr()
}
