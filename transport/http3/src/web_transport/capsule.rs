//! Capsules on the stream of a session's request (draft-ietf-webtrans-http3 §5.6, §6).

use super::limits::SessionStreams;
use crate::capsules::{CapsuleTooLong, Capsules, RawCapsule};
use bytes::Bytes;
use hvq::transport::wire::varint;
use std::error::Error;
use std::fmt;

const WT_CLOSE_SESSION: u64 = 0x2843;
const WT_DRAIN_SESSION: u64 = 0x78ae;
const WT_MAX_DATA: u64 = 0x190b_4d3d;
const WT_MAX_STREAM_DATA: u64 = 0x190b_4d3e;
const WT_MAX_STREAMS_BIDI: u64 = 0x190b_4d3f;
const WT_MAX_STREAMS_UNI: u64 = 0x190b_4d40;
const WT_DATA_BLOCKED: u64 = 0x190b_4d41;
const WT_STREAM_DATA_BLOCKED: u64 = 0x190b_4d42;
const WT_STREAMS_BLOCKED_BIDI: u64 = 0x190b_4d43;
const WT_STREAMS_BLOCKED_UNI: u64 = 0x190b_4d44;
/// The types that are known. All others are skipped.
const KNOWN: [u64; 10] = [
    WT_CLOSE_SESSION,
    WT_DRAIN_SESSION,
    WT_MAX_DATA,
    WT_MAX_STREAM_DATA,
    WT_MAX_STREAMS_BIDI,
    WT_MAX_STREAMS_UNI,
    WT_DATA_BLOCKED,
    WT_STREAM_DATA_BLOCKED,
    WT_STREAMS_BLOCKED_BIDI,
    WT_STREAMS_BLOCKED_UNI,
];
/// The longest reason (§6).
const LONGEST_REASON: usize = 1024;
/// The longest value: a code and a reason.
const LONGEST: u64 = 4 + LONGEST_REASON as u64;

/// A capsule of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SessionCapsule {
    /// WT_CLOSE_SESSION: the session ends, with a code and a reason of the application (§6).
    Close {
        /// The application's code.
        code: u32,
        /// The application's reason, of at most 1024 bytes.
        reason: String,
    },
    /// WT_DRAIN_SESSION: the session is to end soon (§4.7).
    Drain,
    /// WT_MAX_DATA: the bytes that the receiver may send on all streams of the session, from its beginning (§5.6.4).
    MaxData(u64),
    /// WT_MAX_STREAMS: the streams of a kind that the receiver may open, from the beginning (§5.6.2).
    MaxStreams(SessionStreams, u64),
    /// WT_DATA_BLOCKED: the sender could not send beyond this limit (§5.6.5).
    DataBlocked(u64),
    /// WT_STREAMS_BLOCKED: the sender could not open a stream beyond this limit (§5.6.3).
    StreamsBlocked(SessionStreams, u64),
}

/// A capsule that breaks the rules of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CapsuleError {
    /// It is longer than any may be.
    TooLong,
    /// It is not laid out as its type is.
    Layout,
    /// It closes the session with a reason that is no UTF-8 (§6).
    Reason,
    /// It has a limit of a stream, which the transport has (§5.4).
    StreamLimit,
}

impl CapsuleError {
    /// The error in words.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::TooLong => "a capsule that is too long",
            Self::Layout => "a capsule of a wrong layout",
            Self::Reason => "a reason that is no UTF-8",
            Self::StreamLimit => "a limit of a stream in a capsule",
        }
    }
}

impl fmt::Display for CapsuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl Error for CapsuleError {}

impl From<CapsuleTooLong> for CapsuleError {
    fn from(_: CapsuleTooLong) -> Self {
        Self::TooLong
    }
}

impl SessionCapsule {
    /// A reader of the stream of a session's request. Other capsules are skipped without being kept.
    pub fn reader() -> Capsules {
        Capsules::of(&KNOWN, LONGEST)
    }

    /// The next capsule that is there whole; `None` until more comes.
    ///
    /// # Errors
    /// It breaks the rules of sessions.
    pub fn next(capsules: &mut Capsules) -> Option<Result<Self, CapsuleError>> {
        let next = capsules.next_capsule()?;
        Some(next.map_err(CapsuleError::from).and_then(|capsule| Self::parse(&capsule)))
    }

    fn parse(RawCapsule { kind, value }: &RawCapsule) -> Result<Self, CapsuleError> {
        use SessionStreams::{Bidirectional, Unidirectional};
        let number = || match varint::get(value) {
            Some((number, length)) if length == value.len() => Ok(number),
            _ => Err(CapsuleError::Layout),
        };
        match *kind {
            WT_CLOSE_SESSION => {
                let (code, reason) = value.split_first_chunk().ok_or(CapsuleError::Layout)?;
                let reason = std::str::from_utf8(reason).map_err(|_| CapsuleError::Reason)?.to_owned();
                Ok(Self::Close { code: u32::from_be_bytes(*code), reason })
            }
            WT_DRAIN_SESSION if value.is_empty() => Ok(Self::Drain),
            WT_MAX_DATA => Ok(Self::MaxData(number()?)),
            WT_MAX_STREAMS_BIDI => Ok(Self::MaxStreams(Bidirectional, number()?)),
            WT_MAX_STREAMS_UNI => Ok(Self::MaxStreams(Unidirectional, number()?)),
            WT_DATA_BLOCKED => Ok(Self::DataBlocked(number()?)),
            WT_STREAMS_BLOCKED_BIDI => Ok(Self::StreamsBlocked(Bidirectional, number()?)),
            WT_STREAMS_BLOCKED_UNI => Ok(Self::StreamsBlocked(Unidirectional, number()?)),
            WT_MAX_STREAM_DATA | WT_STREAM_DATA_BLOCKED => Err(CapsuleError::StreamLimit),
            _ => Err(CapsuleError::Layout),
        }
    }

    /// The capsule with its type and length. Of a reason that is too long, as much is sent as may be.
    pub fn encode(&self) -> Bytes {
        use SessionStreams::{Bidirectional, Unidirectional};
        let (kind, value) = match self {
            Self::Close { code, reason } => {
                (WT_CLOSE_SESSION, [&code.to_be_bytes(), fitting(reason).as_bytes()].concat())
            }
            Self::Drain => (WT_DRAIN_SESSION, Vec::new()),
            Self::MaxData(most) => (WT_MAX_DATA, integer(*most)),
            Self::MaxStreams(Bidirectional, most) => (WT_MAX_STREAMS_BIDI, integer(*most)),
            Self::MaxStreams(Unidirectional, most) => (WT_MAX_STREAMS_UNI, integer(*most)),
            Self::DataBlocked(at) => (WT_DATA_BLOCKED, integer(*at)),
            Self::StreamsBlocked(Bidirectional, at) => (WT_STREAMS_BLOCKED_BIDI, integer(*at)),
            Self::StreamsBlocked(Unidirectional, at) => (WT_STREAMS_BLOCKED_UNI, integer(*at)),
        };
        let mut bytes = Vec::with_capacity(16 + value.len());
        RawCapsule { kind, value: value.into() }.put(&mut bytes);
        bytes.into()
    }
}

/// The part of `reason` that a capsule may have, cut at a character.
fn fitting(reason: &str) -> &str {
    let mut length = reason.len().min(LONGEST_REASON);
    while !reason.is_char_boundary(length) {
        length -= 1;
    }
    reason.get(..length).unwrap_or_default()
}

fn integer(number: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8);
    varint::put(&mut bytes, number.min(varint::MAX));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<Result<SessionCapsule, CapsuleError>> {
        let mut capsules = SessionCapsule::reader();
        capsules.push(bytes);
        SessionCapsule::next(&mut capsules)
    }

    #[test]
    fn capsules_that_were_written_are_read_and_reasons_are_cut_at_a_character() {
        let kept = "a".repeat(LONGEST_REASON - 1);
        let close = SessionCapsule::Close { code: 7, reason: format!("{kept}ü") };
        assert_eq!(read(&close.encode()), Some(Ok(SessionCapsule::Close { code: 7, reason: kept })));
        for capsule in [
            SessionCapsule::Drain,
            SessionCapsule::MaxData(1 << 40),
            SessionCapsule::MaxStreams(SessionStreams::Bidirectional, 3),
            SessionCapsule::MaxStreams(SessionStreams::Unidirectional, 1 << 60),
            SessionCapsule::DataBlocked(0),
            SessionCapsule::StreamsBlocked(SessionStreams::Bidirectional, 70),
            SessionCapsule::StreamsBlocked(SessionStreams::Unidirectional, 7),
        ] {
            assert_eq!(read(&capsule.encode()), Some(Ok(capsule)));
        }
    }

    #[test]
    fn capsules_of_a_wrong_layout_are_errors() {
        let with = |kind: u64, value: &'static [u8]| {
            let mut bytes = Vec::new();
            RawCapsule { kind, value: Bytes::from_static(value) }.put(&mut bytes);
            read(&bytes).unwrap().unwrap_err()
        };
        assert_eq!(with(WT_CLOSE_SESSION, &[0, 0, 0]), CapsuleError::Layout);
        assert_eq!(with(WT_CLOSE_SESSION, &[0, 0, 0, 0, 0xff]), CapsuleError::Reason);
        assert_eq!(with(WT_DRAIN_SESSION, &[0]), CapsuleError::Layout);
        assert_eq!(with(WT_MAX_DATA, &[]), CapsuleError::Layout);
        assert_eq!(with(WT_MAX_DATA, &[1, 2]), CapsuleError::Layout);
        assert_eq!(with(WT_MAX_STREAM_DATA, &[0, 9]), CapsuleError::StreamLimit);
        assert_eq!(with(WT_STREAM_DATA_BLOCKED, &[0, 9]), CapsuleError::StreamLimit);
    }
}
