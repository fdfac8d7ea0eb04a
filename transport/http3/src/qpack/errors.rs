//! The errors of QPACK (RFC 9204 §6).

/// The reason for which a field section is not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SectionError {
    /// It is none, refers to entries that are not there, or blocks more streams than may be:
    /// QPACK_DECOMPRESSION_FAILED (RFC 9204 §2.1.2, §2.2.3).
    #[error("a field section that cannot be decoded")]
    Malformed,
    /// It is larger than the limit (RFC 9114 §4.2.2).
    #[error("a field section that is too large")]
    TooLarge,
}

/// An instruction of the peer's encoder cannot be followed: QPACK_ENCODER_STREAM_ERROR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct EncoderStreamError(pub &'static str);

/// An instruction of the peer's decoder cannot be followed: QPACK_DECODER_STREAM_ERROR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct DecoderStreamError(pub &'static str);
