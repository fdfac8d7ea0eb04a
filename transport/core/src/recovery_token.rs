//! Recovery tokens: the content of a packet, so that its fate can be handed back to the owners.
//!
//! A [`RecoveryToken`] goes into the record of a sent packet for each frame whose fate somebody wants to know. When the
//! packet is acknowledged or lost the token comes back and is routed to its owner, which alone decides whether the
//! information is still worth sending (RFC 9000 §13.3).

use crate::PathId;
use crate::wire::frame::{self, Frame};
use crate::wire::level::Level;
use crate::wire::stream_id::Direction;
use crate::wire::stream_id::StreamId;
use smallvec::SmallVec;

/// The recovery tokens of one packet.
pub type RecoveryTokens = SmallVec<[RecoveryToken; 2]>;

/// The progress of a value on its way to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransmissionState {
    /// It is to be sent, for the first time or because it was lost.
    Queued,
    /// It is in flight.
    Sent,
    /// The peer has it.
    Acknowledged,
}

/// One frame of a sent packet, as far as its owner needs it back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecoveryToken {
    /// CRYPTO data of `level`.
    Crypto {
        /// The encryption level.
        level: Level,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// Stream data.
    Stream {
        /// The stream.
        id: StreamId,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// True if the frame ended the stream.
        fin: bool,
    },
    /// An acknowledgement of packets of `of` up to `largest`: once it arrived, older ranges need no repeating.
    Ack {
        /// The path whose packets were acknowledged.
        of: PathId,
        /// The largest packet number that the frame acknowledged.
        largest: u64,
    },
    /// RESET_STREAM.
    ResetStream(StreamId),
    /// RESET_STREAM_AT with this reliable size.
    ResetStreamAt(StreamId, u64),
    /// STOP_SENDING.
    StopSending(StreamId),
    /// MAX_DATA with this value.
    MaxData(u64),
    /// MAX_STREAM_DATA with this value.
    MaxStreamData(StreamId, u64),
    /// MAX_STREAMS with this value.
    MaxStreams(Direction, u64),
    /// DATA_BLOCKED at this limit.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED at this limit.
    StreamDataBlocked(StreamId, u64),
    /// STREAMS_BLOCKED at this limit.
    StreamsBlocked(Direction, u64),
    /// NEW_CONNECTION_ID or PATH_NEW_CONNECTION_ID.
    NewConnectionId {
        /// The path of the connection ID.
        path: PathId,
        /// Its sequence number.
        sequence: u64,
    },
    /// RETIRE_CONNECTION_ID or PATH_RETIRE_CONNECTION_ID.
    RetireConnectionId {
        /// The path of the connection ID.
        path: PathId,
        /// Its sequence number.
        sequence: u64,
    },
    /// PATH_ABANDON of this path.
    PathAbandon(PathId),
    /// PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP.
    PathStatus {
        /// The path.
        path: PathId,
        /// The sequence number of the status.
        sequence: u64,
    },
    /// PATH_HINTS.
    PathHints {
        /// The path.
        path: PathId,
        /// The sequence number of the hints.
        sequence: u64,
    },
    /// MAX_PATH_ID with this value.
    MaxPathId(PathId),
    /// PATHS_BLOCKED at this limit.
    PathsBlocked(PathId),
    /// PATH_CIDS_BLOCKED for this path.
    PathCidsBlocked(PathId),
    /// ACK_FREQUENCY with this sequence number.
    AckFrequency(u64),
    /// HANDSHAKE_DONE.
    HandshakeDone,
    /// NEW_TOKEN number `0`, counted from the start of the connection.
    NewToken(u64),
    /// A DATAGRAM frame, by the number that the sender gave it (RFC 9221 §5.2).
    Datagram(u64),
}

/// The token of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Tracked {
    /// The frame says it all.
    By(RecoveryToken),
    /// Its owner alone knows, by a number that is not on the wire.
    ByOwner,
    /// Nobody wants the frame back.
    Not,
}

impl Tracked {
    /// Returns the token of `frame` in a 1-RTT packet.
    ///
    /// Each frame has an arm of its own: one that is added says here what goes back to its owner.
    pub(crate) fn of(frame: &Frame) -> Self {
        Self::By(match *frame {
            Frame::Padding(_) | Frame::Ping | Frame::ImmediateAck => return Self::Not,
            // Both have a clock of their own (RFC 9000 §13.3), and nobody waits for the fate of a close.
            Frame::PathChallenge(_) | Frame::PathResponse(_) | Frame::ConnectionClose(_) => return Self::Not,
            Frame::NewToken(_) | Frame::Datagram(_) => return Self::ByOwner,
            Frame::Crypto(ref crypto) => RecoveryToken::Crypto {
                level: Level::OneRtt,
                offset: crypto.offset,
                length: crypto.data.len() as u64,
            },
            Frame::Stream(ref stream) => stream.into(),
            Frame::Ack(ref ack) => {
                RecoveryToken::Ack { of: ack.path.unwrap_or(PathId::ZERO), largest: ack.largest }
            }
            Frame::ResetStream(reset) => RecoveryToken::ResetStream(reset.id),
            Frame::ResetStreamAt(reset) => RecoveryToken::ResetStreamAt(reset.id, reset.reliable_size),
            Frame::StopSending(stop) => RecoveryToken::StopSending(stop.id),
            Frame::MaxData(limit) => RecoveryToken::MaxData(limit),
            Frame::MaxStreamData { id, limit } => RecoveryToken::MaxStreamData(id, limit),
            Frame::MaxStreams { direction, limit } => RecoveryToken::MaxStreams(direction, limit),
            Frame::DataBlocked(limit) => RecoveryToken::DataBlocked(limit),
            Frame::StreamDataBlocked { id, limit } => RecoveryToken::StreamDataBlocked(id, limit),
            Frame::StreamsBlocked { direction, limit } => RecoveryToken::StreamsBlocked(direction, limit),
            Frame::NewConnectionId(new) => RecoveryToken::NewConnectionId {
                path: new.path.unwrap_or(PathId::ZERO),
                sequence: new.sequence,
            },
            Frame::RetireConnectionId { path, sequence } => {
                RecoveryToken::RetireConnectionId { path: path.unwrap_or(PathId::ZERO), sequence }
            }
            Frame::PathAbandon { path, .. } => RecoveryToken::PathAbandon(path),
            Frame::PathStatus { path, sequence, .. } => RecoveryToken::PathStatus { path, sequence },
            Frame::PathHints(told) => RecoveryToken::PathHints { path: told.path, sequence: told.sequence },
            Frame::MaxPathId(limit) => RecoveryToken::MaxPathId(path_id(limit)),
            Frame::PathsBlocked(limit) => RecoveryToken::PathsBlocked(path_id(limit)),
            Frame::PathCidsBlocked { path, .. } => RecoveryToken::PathCidsBlocked(path),
            Frame::AckFrequency(request) => RecoveryToken::AckFrequency(request.sequence),
            Frame::HandshakeDone => RecoveryToken::HandshakeDone,
        })
    }

    /// Returns true if `token` is what the owner of the frame has to hand over with it.
    pub(crate) fn is(&self, token: &RecoveryToken) -> bool {
        match self {
            Self::By(own) => own == token,
            Self::ByOwner => matches!(token, RecoveryToken::NewToken(_) | RecoveryToken::Datagram(_)),
            Self::Not => false,
        }
    }
}

/// The limit of a frame that this endpoint sends, which is a path ID.
fn path_id(limit: u64) -> PathId {
    PathId(u32::try_from(limit).unwrap_or(u32::MAX))
}

impl From<&frame::Stream> for RecoveryToken {
    fn from(stream: &frame::Stream) -> Self {
        let length = stream.data.len() as u64;
        Self::Stream { id: stream.id, offset: stream.offset, length, fin: stream.fin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::frame::Recovery;
    use crate::wire::frame::samples::every_frame;

    #[test]
    fn what_is_repeated_or_reported_has_a_receipt_and_nothing_else_has() {
        for (_, frame) in every_frame() {
            let tracked = Tracked::of(&frame) != Tracked::Not;
            assert_eq!(tracked, frame.recovery() != Recovery::Forgotten, "{}", frame.kind());
        }
    }
}
