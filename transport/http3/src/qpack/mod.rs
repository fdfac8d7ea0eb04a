//! QPACK without a dynamic table (RFC 9204): field sections in and out.
//!
//! A decoder that offers no dynamic table need not be waited for, and one that an encoder makes no use of needs no streams
//! (§4.2). Strings are read in either form and written as they are: the transport compresses nothing else either, and the
//! static table holds what responses say mostly.

mod huffman;
mod read;
mod static_table;
mod write;

pub(crate) use read::{Field, Refused, read};
pub(crate) use write::{begin, field, pseudo};

/// The size in bytes that each field counts beside its name and value (RFC 9114 §4.2.2).
pub(crate) const FIELD_OVERHEAD: u64 = 32;
