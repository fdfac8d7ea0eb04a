//! QPACK, the field compression of HTTP/3 (RFC 9204), without I/O: field sections in and out, with dynamic tables both ways.
//!
//! An [`Encoder`] writes sections and [instructions](Encoder::pending) for its peer's table; a [`Decoder`] follows such
//! instructions, reads sections, and has instructions of its own. The caller carries both on the two unidirectional streams
//! of RFC 9204 §4.2.
//!
//! ```
//! use hvq_h3::qpack::{Decoder, Encoder, Limits, Line, Policy, Section};
//!
//! let limits = Limits { max_table_capacity: 4096, max_blocked_streams: 0 };
//! let (mut encoder, mut decoder) = (Encoder::new(Policy::default()), Decoder::new(limits));
//! encoder.set_peer_limits(limits);
//! let mut sizes = Vec::new();
//! for stream in [0, 4] {
//!     let mut section = bytes::BytesMut::new();
//!     encoder.section(stream, [Line::new("user-agent", b"a browser")], &mut section);
//!     sizes.push(section.len());
//!     let Ok(Section::Fields(fields)) = decoder.section(stream, section.freeze(), 1000) else { panic!() };
//!     assert_eq!(fields[0].value, "a browser");
//!     decoder.receive(encoder.pending()).unwrap();
//!     encoder.on_sent(encoder.pending().len());
//!     encoder.receive(decoder.pending()).unwrap();
//!     decoder.on_sent(decoder.pending().len());
//! }
//! assert_eq!(sizes, [12, 3]);
//! ```

mod decoder;
mod dynamic_table;
mod encoder;
mod errors;
mod huffman;
mod index;
mod integers;
mod references;
mod section;
mod static_table;
#[cfg(test)]
mod tests;
mod write;

pub use decoder::{Decoder, Section};
pub use encoder::{Blocking, Encoder, Policy};
pub use errors::{DecoderStreamError, EncoderStreamError, SectionError};
pub(crate) use section::is_static;
pub use section::read;
pub use write::{Line, write};

use bytes::Bytes;

/// The size in bytes that each field counts beside its name and value (RFC 9114 §4.2.2, RFC 9204 §3.2.1).
pub(crate) const FIELD_OVERHEAD: u64 = 32;

/// A field line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// The name, in lower case; that of a pseudo-header field begins with a colon.
    pub name: Bytes,
    /// The value.
    pub value: Bytes,
}

/// The settings of a decoder, which its SETTINGS tell the peer (RFC 9204 §5). Default: no dynamic table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// The largest capacity of the dynamic table, in bytes (SETTINGS_QPACK_MAX_TABLE_CAPACITY).
    pub max_table_capacity: u64,
    /// The number of streams that may wait for insertions (SETTINGS_QPACK_BLOCKED_STREAMS).
    pub max_blocked_streams: u64,
}
