//! Frames (RFC 9000 §19, RFC 9221 §4, RFC 10069 §4): one file per family, one enum for all.

pub mod ack;
pub mod ack_frequency;
pub mod close;
pub mod connection_id;
pub mod crypto;
pub mod datagram;
mod fault;
pub mod flow;
pub mod path;
mod reader;
mod sink;
pub mod stream;
#[cfg(test)]
mod tests;
pub mod token;
pub mod types;

pub use ack::{Ack, AckRanges, EcnCounts};
pub use ack_frequency::AckFrequency;
pub use close::ConnectionClose;
pub use connection_id::NewConnectionId;
pub use crypto::Crypto;
pub use path::Status;
pub use reader::FrameReader;
pub use stream::{ResetStream, StopSending, Stream};

use crate::PathId;
use crate::crypto::keys::Level;
use crate::stream::{Direction, StreamId};
use bytes::Bytes;
use sink::{Counter, Sink};

/// A frame. Decoding has checked everything that the frame alone can tell; limits and states are the owners' to check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// PADDING: this many in a row (RFC 9000 §19.1).
    Padding(usize),
    /// PING (RFC 9000 §19.2).
    Ping,
    /// ACK (RFC 9000 §19.3) or PATH_ACK (RFC 10069 §4.1).
    Ack(Ack),
    /// RESET_STREAM (RFC 9000 §19.4).
    ResetStream(ResetStream),
    /// STOP_SENDING (RFC 9000 §19.5).
    StopSending(StopSending),
    /// CRYPTO (RFC 9000 §19.6).
    Crypto(Crypto),
    /// NEW_TOKEN with a token that is not empty (RFC 9000 §19.7).
    NewToken(Bytes),
    /// STREAM (RFC 9000 §19.8).
    Stream(Stream),
    /// MAX_DATA with the limit of the connection (RFC 9000 §19.9).
    MaxData(u64),
    /// MAX_STREAM_DATA (RFC 9000 §19.10).
    MaxStreamData {
        /// The stream.
        id: StreamId,
        /// The number of bytes that may be sent on it in all.
        limit: u64,
    },
    /// MAX_STREAMS (RFC 9000 §19.11).
    MaxStreams {
        /// The direction of the streams.
        direction: Direction,
        /// The number that may be opened in all, at most 2^60.
        limit: u64,
    },
    /// DATA_BLOCKED with the limit that blocks (RFC 9000 §19.12).
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED (RFC 9000 §19.13).
    StreamDataBlocked {
        /// The stream.
        id: StreamId,
        /// The limit that blocks.
        limit: u64,
    },
    /// STREAMS_BLOCKED (RFC 9000 §19.14).
    StreamsBlocked {
        /// The direction of the streams.
        direction: Direction,
        /// The limit that blocks, at most 2^60.
        limit: u64,
    },
    /// NEW_CONNECTION_ID (RFC 9000 §19.15) or PATH_NEW_CONNECTION_ID (RFC 10069 §4.4).
    NewConnectionId(NewConnectionId),
    /// RETIRE_CONNECTION_ID (RFC 9000 §19.16) or PATH_RETIRE_CONNECTION_ID (RFC 10069 §4.5).
    RetireConnectionId {
        /// The path of the connection ID; `None` is the frame of RFC 9000, which means path 0.
        path: Option<PathId>,
        /// Its sequence number.
        sequence: u64,
    },
    /// PATH_CHALLENGE (RFC 9000 §19.17).
    PathChallenge([u8; 8]),
    /// PATH_RESPONSE (RFC 9000 §19.18).
    PathResponse([u8; 8]),
    /// CONNECTION_CLOSE (RFC 9000 §19.19).
    ConnectionClose(ConnectionClose),
    /// HANDSHAKE_DONE (RFC 9000 §19.20).
    HandshakeDone,
    /// ACK_FREQUENCY (draft-ietf-quic-ack-frequency-14 §4).
    AckFrequency(AckFrequency),
    /// IMMEDIATE_ACK (draft-ietf-quic-ack-frequency-14 §5).
    ImmediateAck,
    /// DATAGRAM (RFC 9221 §4).
    Datagram(Bytes),
    /// PATH_ABANDON (RFC 10069 §4.2).
    PathAbandon {
        /// The path.
        path: PathId,
        /// The reason: a code of [`path`](mod@path), of RFC 9000 §20.1, or one that is not known here.
        error: u64,
    },
    /// PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP (RFC 10069 §4.3).
    PathStatus {
        /// The path.
        path: PathId,
        /// Orders the two frames: only the highest number counts.
        sequence: u64,
        /// The use of the path that the sender would like.
        status: Status,
    },
    /// MAX_PATH_ID with the highest path ID that may be used (RFC 10069 §4.6). May exceed 2^32-1, which its owner
    /// refuses.
    MaxPathId(u64),
    /// PATHS_BLOCKED with the highest path ID that the sender may use (RFC 10069 §4.7). May exceed 2^32-1.
    PathsBlocked(u64),
    /// PATH_CIDS_BLOCKED (RFC 10069 §4.7).
    PathCidsBlocked {
        /// The path that lacks connection IDs.
        path: PathId,
        /// The sequence number that the sender expects next.
        next_sequence: u64,
    },
}

impl Frame {
    /// The type on the wire (RFC 9000 §19). For STREAM and DATAGRAM, whose type holds flags, it is the one that
    /// [`Frame::put`] writes.
    pub fn frame_type(&self) -> u64 {
        match self {
            Self::Padding(_) => types::PADDING,
            Self::Ping => types::PING,
            Self::Ack(ack) => ack.frame_type(),
            Self::ResetStream(_) => types::RESET_STREAM,
            Self::StopSending(_) => types::STOP_SENDING,
            Self::Crypto(_) => types::CRYPTO,
            Self::NewToken(_) => types::NEW_TOKEN,
            Self::Stream(stream) => stream.frame_type(),
            Self::MaxData(_) => types::MAX_DATA,
            Self::MaxStreamData { .. } => types::MAX_STREAM_DATA,
            Self::MaxStreams { direction: Direction::Bidirectional, .. } => types::MAX_STREAMS_BIDI,
            Self::MaxStreams { direction: Direction::Unidirectional, .. } => types::MAX_STREAMS_UNI,
            Self::DataBlocked(_) => types::DATA_BLOCKED,
            Self::StreamDataBlocked { .. } => types::STREAM_DATA_BLOCKED,
            Self::StreamsBlocked { direction: Direction::Bidirectional, .. } => types::STREAMS_BLOCKED_BIDI,
            Self::StreamsBlocked { direction: Direction::Unidirectional, .. } => types::STREAMS_BLOCKED_UNI,
            Self::NewConnectionId(NewConnectionId { path: None, .. }) => types::NEW_CONNECTION_ID,
            Self::NewConnectionId(NewConnectionId { path: Some(_), .. }) => types::PATH_NEW_CONNECTION_ID,
            Self::RetireConnectionId { path: None, .. } => types::RETIRE_CONNECTION_ID,
            Self::RetireConnectionId { path: Some(_), .. } => types::PATH_RETIRE_CONNECTION_ID,
            Self::PathChallenge(_) => types::PATH_CHALLENGE,
            Self::PathResponse(_) => types::PATH_RESPONSE,
            Self::ConnectionClose(ConnectionClose::Transport { .. }) => types::CONNECTION_CLOSE_TRANSPORT,
            Self::ConnectionClose(ConnectionClose::Application { .. }) => types::CONNECTION_CLOSE_APPLICATION,
            Self::HandshakeDone => types::HANDSHAKE_DONE,
            Self::AckFrequency(_) => types::ACK_FREQUENCY,
            Self::ImmediateAck => types::IMMEDIATE_ACK,
            Self::Datagram(_) => types::DATAGRAM_WITH_LENGTH,
            Self::PathAbandon { .. } => types::PATH_ABANDON,
            Self::PathStatus { status: Status::Backup, .. } => types::PATH_STATUS_BACKUP,
            Self::PathStatus { status: Status::Available, .. } => types::PATH_STATUS_AVAILABLE,
            Self::MaxPathId(_) => types::MAX_PATH_ID,
            Self::PathsBlocked(_) => types::PATHS_BLOCKED,
            Self::PathCidsBlocked { .. } => types::PATH_CIDS_BLOCKED,
        }
    }

    /// The name for logs and statistics: the RFC's, in lower case.
    pub fn kind(&self) -> &'static str {
        types::name(self.frame_type())
    }

    /// Returns true if a packet with this frame, and others of which the same holds, only probes an address: it does
    /// not move the path there (RFC 9000 §9.1).
    pub fn is_probing(&self) -> bool {
        matches!(
            self,
            Self::Padding(_) | Self::PathChallenge(_) | Self::PathResponse(_) | Self::NewConnectionId(_)
        )
    }

    /// Its size in bytes.
    pub fn encoded_size(&self) -> usize {
        let mut counter = Counter::default();
        self.write(&mut counter);
        counter.bytes
    }

    /// Appends the frame. STREAM and DATAGRAM frames are written with their length, so that others can follow.
    pub fn put(&self, buf: &mut Vec<u8>) {
        match self {
            Self::Stream(stream) => stream.put(buf),
            _ => self.write(buf),
        }
    }

    fn write(&self, sink: &mut impl Sink) {
        if let Self::Padding(length) = self {
            return sink.zeros(*length);
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
        //# To ensure simple and efficient implementations of frame parsing, a frame type MUST use the
        //# shortest possible encoding
        sink.varint(self.frame_type());
        match self {
            Self::Padding(_) | Self::Ping | Self::HandshakeDone | Self::ImmediateAck => {}
            Self::AckFrequency(frequency) => frequency.write(sink),
            Self::Ack(ack) => ack.write(sink),
            Self::ResetStream(reset) => sink.varints(&[reset.id.0, reset.error, reset.final_size]),
            Self::StopSending(stop) => sink.varints(&[stop.id.0, stop.error]),
            Self::Crypto(crypto) => crypto.write(sink),
            Self::NewToken(token) => sink.prefixed(token),
            Self::Stream(stream) => stream.write(sink),
            Self::MaxData(value)
            | Self::DataBlocked(value)
            | Self::MaxPathId(value)
            | Self::PathsBlocked(value) => {
                sink.varint(*value);
            }
            Self::MaxStreamData { id, limit } | Self::StreamDataBlocked { id, limit } => {
                sink.varints(&[id.0, *limit]);
            }
            Self::MaxStreams { limit, .. } | Self::StreamsBlocked { limit, .. } => sink.varint(*limit),
            Self::NewConnectionId(new) => new.write(sink),
            Self::RetireConnectionId { path, sequence } => {
                sink.path(*path);
                sink.varint(*sequence);
            }
            Self::PathChallenge(data) | Self::PathResponse(data) => sink.bytes(data),
            Self::ConnectionClose(close) => close.write(sink),
            Self::Datagram(data) => sink.prefixed(data),
            Self::PathAbandon { path, error } => sink.varints(&[path.0.into(), *error]),
            Self::PathStatus { path, sequence, .. } => sink.varints(&[path.0.into(), *sequence]),
            Self::PathCidsBlocked { path, next_sequence } => sink.varints(&[path.0.into(), *next_sequence]),
        }
    }

    /// Returns true if a packet with this frame asks for an acknowledgement (RFC 9000 §13.2).
    pub fn is_ack_eliciting(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.21
        //= reason=Self::Ack(_)
        //# Extension frames MUST be congestion controlled and MUST cause an ACK frame to be sent
        !matches!(self, Self::Padding(_) | Self::Ack(_) | Self::ConnectionClose(_))
    }

    /// Returns true if packets of `level` may carry this frame (RFC 9000 §12.4 table 3; DATAGRAM as in RFC 9221 §4,
    /// frames of the multipath extension in 1-RTT packets only, RFC 10069 §4). A frame where it is not permitted is a
    /// PROTOCOL_VIOLATION.
    pub fn permitted_in(&self, level: Level) -> bool {
        match self {
            Self::Padding(_) | Self::Ping => true,
            Self::ConnectionClose(ConnectionClose::Transport { .. }) => true,
            //= https://www.rfc-editor.org/rfc/rfc9001#section-8.3
            //= reason=Self::Crypto(_)
            //# A server MUST treat receipt of a CRYPTO frame in a 0-RTT packet as a connection error of type
            //# PROTOCOL_VIOLATION.
            Self::Ack(Ack { path: None, .. }) | Self::Crypto(_) => level != Level::ZeroRtt,
            //= https://www.rfc-editor.org/rfc/rfc10069#section-4
            //# If an endpoint receives a multipath-specific frame in a different packet type, it MUST close
            //# the connection with an error of type PROTOCOL_VIOLATION.
            Self::Ack(Ack { path: Some(_), .. })
            | Self::NewConnectionId(NewConnectionId { path: Some(_), .. })
            | Self::RetireConnectionId { path: Some(_), .. }
            | Self::PathAbandon { .. }
            | Self::PathStatus { .. }
            | Self::MaxPathId(_)
            | Self::PathsBlocked(_)
            | Self::PathCidsBlocked { .. } => level == Level::OneRtt,
            // Draft-ietf-quic-ack-frequency-14 §3: not in 0-RTT packets, since min_ack_delay is not remembered.
            Self::AckFrequency(_) | Self::ImmediateAck => level == Level::OneRtt,
            Self::NewToken(_) | Self::PathResponse(_) | Self::HandshakeDone => level == Level::OneRtt,
            //= https://www.rfc-editor.org/rfc/rfc9221#section-5
            //# Like STREAM frames, DATAGRAM frames contain application data and MUST be protected with either
            //# 0-RTT or 1-RTT keys.
            //= https://www.rfc-editor.org/rfc/rfc9221#section-6
            //# All application data transmitted with the DATAGRAM frame, like the STREAM frame, MUST be
            //# protected either by 0-RTT or 1-RTT keys.
            Self::ResetStream(_)
            | Self::StopSending(_)
            | Self::Stream(_)
            | Self::MaxData(_)
            | Self::MaxStreamData { .. }
            | Self::MaxStreams { .. }
            | Self::DataBlocked(_)
            | Self::StreamDataBlocked { .. }
            | Self::StreamsBlocked { .. }
            | Self::NewConnectionId(NewConnectionId { path: None, .. })
            | Self::RetireConnectionId { path: None, .. }
            | Self::PathChallenge(_)
            | Self::ConnectionClose(ConnectionClose::Application { .. })
            | Self::Datagram(_) => matches!(level, Level::ZeroRtt | Level::OneRtt),
        }
    }
}
