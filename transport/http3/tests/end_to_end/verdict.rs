//! The treatments of ends that break rules, with the codes of RFC 9114 §8.1 and RFC 9204 §6.

/// The treatment that an end which writes bytes of its own gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Its connection is closed with this code.
    Closed(u64),
    /// A server's response is stopped with this code, and the connection lives on.
    Stopped(u64),
    /// A server's response is read to its end.
    Read,
    /// A server's response ends too early for the client to say so on the stream, and the connection lives on.
    Refused,
    /// A client's request is reset.
    Reset,
    /// A client's request is answered, and the connection lives on.
    Served,
}

use Verdict::{Closed, Stopped};

/// H3_NO_ERROR: there is no request left, and none will come.
pub(crate) const DONE: Verdict = Closed(0x100);
/// H3_STREAM_CREATION_ERROR
pub(crate) const STREAM_CREATION: Verdict = Closed(0x103);
/// H3_CLOSED_CRITICAL_STREAM
pub(crate) const CLOSED_CRITICAL: Verdict = Closed(0x104);
/// H3_FRAME_UNEXPECTED
pub(crate) const FRAME_UNEXPECTED: Verdict = Closed(0x105);
/// H3_FRAME_ERROR
pub(crate) const FRAME: Verdict = Closed(0x106);
/// H3_EXCESSIVE_LOAD
pub(crate) const EXCESSIVE_LOAD: Verdict = Stopped(0x107);
/// H3_ID_ERROR
pub(crate) const ID: Verdict = Closed(0x108);
/// H3_SETTINGS_ERROR
pub(crate) const SETTINGS: Verdict = Closed(0x109);
/// H3_MISSING_SETTINGS
pub(crate) const MISSING_SETTINGS: Verdict = Closed(0x10a);
/// H3_REQUEST_CANCELLED
pub(crate) const CANCELLED: Verdict = Stopped(0x10c);
/// H3_MESSAGE_ERROR
pub(crate) const MESSAGE: Verdict = Stopped(0x10e);
/// QPACK_DECOMPRESSION_FAILED
pub(crate) const DECOMPRESSION: Verdict = Closed(0x200);
/// QPACK_ENCODER_STREAM_ERROR
pub(crate) const ENCODER_STREAM: Verdict = Closed(0x201);
/// QPACK_DECODER_STREAM_ERROR
pub(crate) const DECODER_STREAM: Verdict = Closed(0x202);
