//! The table of frames: one row for each, sorted by the part of a connection that owns its meaning.
//!
//! The registry is RFC 9000 §19 with RFC 9221 §4, RFC 10069 §4 and draft-ietf-quic-ack-frequency-14 §4 and §5, and
//! draft-ietf-quic-reliable-stream-reset §4; PATH_HINTS has a provisional type (docs/spec/path-hints.md §8). `frames!` says what the columns are, and makes the rows into code.

use super::decode_error::DecodeError;
use super::sink::Sink;
use super::{
    Ack, AckFrequency, Class, ConnectionClose, Crypto, NewConnectionId, Packets, PathHints, Recovery,
    ResetStream, ResetStreamAt, Status, StopSending, Stream,
};
use super::{connection_id, datagram, flow, path, token};
use crate::PathId;
use crate::wire::cursor::Reader;
use crate::wire::stream_id::{Direction, StreamId};
use bytes::Bytes;

frames! {
    /// Frames that say nothing beyond their presence.
    owner Packet(PacketFrame) {
        /// PADDING: this many in a row (RFC 9000 §19.1).
        Padding(length: usize) {
            types: [PADDING = 0x00 as "padding" in All],
            class: Padding,
            read: |_, reader| Frame::Padding(1),
            // The first of them is the type.
            write: |sink| sink.zeros(length.saturating_sub(1)),
            recovery: Forgotten,
        }
        /// PING (RFC 9000 §19.2).
        Ping {
            types: [PING = 0x01 as "ping" in All],
            class: Eliciting,
            read: |_, reader| Frame::Ping,
            write: |sink| {},
            recovery: Forgotten,
        }
    }

    /// Acknowledgements and requests for them.
    owner Acknowledgements(AckingFrame) {
        /// ACK (RFC 9000 §19.3) or PATH_ACK (RFC 10069 §4.1).
        Ack(ack: Ack) {
            types: [
                ACK = 0x02 as "ack" in NotZeroRtt,
                ACK_ECN = 0x03 as "ack" in NotZeroRtt,
                PATH_ACK = 0x3e as "path_ack" in OneRtt,
                PATH_ACK_ECN = 0x3f as "path_ack" in OneRtt,
            ],
            code: ack.frame_type(),
            class: Quiet,
            read: |frame_type, reader| Frame::Ack(Ack::read(frame_type, reader)?),
            write: |sink| ack.write(sink),
            recovery: Reported,
        }
        /// ACK_FREQUENCY (draft-ietf-quic-ack-frequency-14 §4).
        AckFrequency(request: AckFrequency) {
            // Draft-ietf-quic-ack-frequency-14 §3: not in 0-RTT packets, since min_ack_delay is not remembered.
            types: [ACK_FREQUENCY = 0xaf as "ack_frequency" in OneRtt],
            class: Eliciting,
            read: |_, reader| Frame::AckFrequency(AckFrequency::read(reader)?),
            write: |sink| request.write(sink),
            recovery: Repeated,
        }
        /// IMMEDIATE_ACK (draft-ietf-quic-ack-frequency-14 §5).
        ImmediateAck {
            types: [IMMEDIATE_ACK = 0x1f as "immediate_ack" in OneRtt],
            class: Eliciting,
            read: |_, reader| Frame::ImmediateAck,
            write: |sink| {},
            recovery: Forgotten,
        }
    }

    /// Frames of the handshake and of what it leaves for the next.
    owner Handshake(HandshakeFrame) {
        /// CRYPTO (RFC 9000 §19.6).
        Crypto(crypto: Crypto) {
            //= https://www.rfc-editor.org/rfc/rfc9001#section-8.3
            //= reason=CRYPTO = 0x06
            //# A server MUST treat receipt of a CRYPTO frame in a 0-RTT packet as a connection error of type
            //# PROTOCOL_VIOLATION.
            types: [CRYPTO = 0x06 as "crypto" in NotZeroRtt],
            class: Eliciting,
            read: |_, reader| Frame::Crypto(Crypto::read(reader)?),
            write: |sink| crypto.write(sink),
            recovery: Repeated,
        }
        /// NEW_TOKEN with a token that is not empty (RFC 9000 §19.7).
        NewToken(token: Bytes) {
            types: [NEW_TOKEN = 0x07 as "new_token" in OneRtt],
            class: Eliciting,
            read: |_, reader| Frame::NewToken(token::read(reader)?),
            write: |sink| sink.prefixed(token),
            recovery: Repeated,
        }
        /// HANDSHAKE_DONE (RFC 9000 §19.20).
        HandshakeDone {
            types: [HANDSHAKE_DONE = 0x1e as "handshake_done" in OneRtt],
            class: Eliciting,
            read: |_, reader| Frame::HandshakeDone,
            write: |sink| {},
            recovery: Repeated,
        }
    }

    /// The end of the connection.
    owner Close(CloseFrame) {
        /// CONNECTION_CLOSE (RFC 9000 §19.19).
        ConnectionClose(close: ConnectionClose) {
            types: [
                CONNECTION_CLOSE_TRANSPORT = 0x1c as "connection_close" in All,
                CONNECTION_CLOSE_APPLICATION = 0x1d as "connection_close" in Application,
            ],
            code: close.frame_type(),
            class: Quiet,
            read: |frame_type, reader| Frame::ConnectionClose(ConnectionClose::read(frame_type, reader)?),
            write: |sink| close.write(sink),
            recovery: Forgotten,
        }
    }

    /// Unreliable datagrams.
    owner Datagrams(DatagramFrame) {
        /// DATAGRAM (RFC 9221 §4).
        Datagram(data: Bytes) {
            //= https://www.rfc-editor.org/rfc/rfc9221#section-5
            //# Like STREAM frames, DATAGRAM frames contain application data and MUST be protected with either
            //# 0-RTT or 1-RTT keys.
            //= https://www.rfc-editor.org/rfc/rfc9221#section-6
            //# All application data transmitted with the DATAGRAM frame, like the STREAM frame, MUST be
            //# protected either by 0-RTT or 1-RTT keys.
            types: [
                // A DATAGRAM that ends with the packet.
                DATAGRAM = 0x30 as "datagram" in Application,
                DATAGRAM_WITH_LENGTH = 0x31 as "datagram" in Application,
            ],
            code: types::DATAGRAM_WITH_LENGTH,
            class: Eliciting,
            read: |frame_type, reader| Frame::Datagram(datagram::read(frame_type, reader)?),
            write: |sink| sink.prefixed(data),
            recovery: Reported,
        }
    }

    /// Streams and their limits.
    owner Streams(StreamFrame) {
        /// STREAM (RFC 9000 §19.8).
        Stream(stream: Stream) {
            // The three low bits say which fields are there.
            types: [STREAM = 0x08 ..= STREAM_LAST = 0x0f as "stream" in Application],
            code: stream.frame_type(),
            class: Eliciting,
            read: |frame_type, reader| Frame::Stream(Stream::read(frame_type, reader)?),
            write: |sink| stream.write(sink),
            recovery: Repeated,
        }
        /// RESET_STREAM (RFC 9000 §19.4).
        ResetStream(reset: ResetStream) {
            types: [RESET_STREAM = 0x04 as "reset_stream" in Application],
            class: Eliciting,
            read: |_, reader| Frame::ResetStream(ResetStream::read(reader)?),
            write: |sink| sink.varints(&[reset.id.0, reset.error, reset.final_size]),
            recovery: Repeated,
        }
        /// RESET_STREAM_AT (draft-ietf-quic-reliable-stream-reset §4).
        ResetStreamAt(reset: ResetStreamAt) {
            // The draft's §4: in the application data packet number space alone.
            types: [RESET_STREAM_AT = 0x24 as "reset_stream_at" in Application],
            class: Eliciting,
            read: |_, reader| Frame::ResetStreamAt(ResetStreamAt::read(reader)?),
            write: |sink| sink.varints(&[reset.id.0, reset.error, reset.final_size, reset.reliable_size]),
            recovery: Repeated,
        }
        /// STOP_SENDING (RFC 9000 §19.5).
        StopSending(stop: StopSending) {
            types: [STOP_SENDING = 0x05 as "stop_sending" in Application],
            class: Eliciting,
            read: |_, reader| Frame::StopSending(StopSending::read(reader)?),
            write: |sink| sink.varints(&[stop.id.0, stop.error]),
            recovery: Repeated,
        }
        /// MAX_DATA with the limit of the connection (RFC 9000 §19.9).
        MaxData(limit: u64) {
            types: [MAX_DATA = 0x10 as "max_data" in Application],
            class: Eliciting,
            read: |_, reader| Frame::MaxData(reader.varint()?),
            write: |sink| sink.varint(*limit),
            recovery: Repeated,
        }
        /// MAX_STREAM_DATA (RFC 9000 §19.10).
        MaxStreamData struct {
            /// The stream.
            id: StreamId,
            /// The number of bytes that may be sent on it in all.
            limit: u64,
        } {
            types: [MAX_STREAM_DATA = 0x11 as "max_stream_data" in Application],
            class: Eliciting,
            read: |_, reader| Frame::MaxStreamData { id: StreamId(reader.varint()?), limit: reader.varint()? },
            write: |sink| sink.varints(&[id.0, *limit]),
            recovery: Repeated,
        }
        /// MAX_STREAMS (RFC 9000 §19.11).
        MaxStreams struct {
            /// The direction of the streams.
            direction: Direction,
            /// The number that may be opened in all, at most 2^60.
            limit: u64,
        } {
            types: [
                MAX_STREAMS_BIDI = 0x12 as "max_streams" in Application,
                MAX_STREAMS_UNI = 0x13 as "max_streams" in Application,
            ],
            code: flow::of_direction(*direction, types::MAX_STREAMS_BIDI),
            class: Eliciting,
            read: |frame_type, reader| Frame::MaxStreams {
                direction: flow::direction(frame_type),
                limit: flow::stream_count(reader)?,
            },
            write: |sink| sink.varint(*limit),
            recovery: Repeated,
        }
        /// DATA_BLOCKED with the limit that blocks (RFC 9000 §19.12).
        DataBlocked(limit: u64) {
            types: [DATA_BLOCKED = 0x14 as "data_blocked" in Application],
            class: Eliciting,
            read: |_, reader| Frame::DataBlocked(reader.varint()?),
            write: |sink| sink.varint(*limit),
            recovery: Repeated,
        }
        /// STREAM_DATA_BLOCKED (RFC 9000 §19.13).
        StreamDataBlocked struct {
            /// The stream.
            id: StreamId,
            /// The limit that blocks.
            limit: u64,
        } {
            types: [STREAM_DATA_BLOCKED = 0x15 as "stream_data_blocked" in Application],
            class: Eliciting,
            read: |_, reader| {
                Frame::StreamDataBlocked { id: StreamId(reader.varint()?), limit: reader.varint()? }
            },
            write: |sink| sink.varints(&[id.0, *limit]),
            recovery: Repeated,
        }
        /// STREAMS_BLOCKED (RFC 9000 §19.14).
        StreamsBlocked struct {
            /// The direction of the streams.
            direction: Direction,
            /// The limit that blocks, at most 2^60.
            limit: u64,
        } {
            types: [
                STREAMS_BLOCKED_BIDI = 0x16 as "streams_blocked" in Application,
                STREAMS_BLOCKED_UNI = 0x17 as "streams_blocked" in Application,
            ],
            code: flow::of_direction(*direction, types::STREAMS_BLOCKED_BIDI),
            class: Eliciting,
            read: |frame_type, reader| Frame::StreamsBlocked {
                direction: flow::direction(frame_type),
                limit: flow::stream_count(reader)?,
            },
            write: |sink| sink.varint(*limit),
            recovery: Repeated,
        }
    }

    /// Paths, their validation and their connection IDs.
    //= https://www.rfc-editor.org/rfc/rfc10069#section-4
    //= reason=in OneRtt
    //# If an endpoint receives a multipath-specific frame in a different packet type, it MUST close
    //# the connection with an error of type PROTOCOL_VIOLATION.
    owner Paths(PathFrame) {
        /// NEW_CONNECTION_ID (RFC 9000 §19.15) or PATH_NEW_CONNECTION_ID (RFC 10069 §4.4).
        NewConnectionId(new: NewConnectionId) {
            types: [
                NEW_CONNECTION_ID = 0x18 as "new_connection_id" in Application,
                PATH_NEW_CONNECTION_ID = 0x3e78 as "path_new_connection_id" in OneRtt,
            ],
            code: if new.path.is_some() { types::PATH_NEW_CONNECTION_ID } else { types::NEW_CONNECTION_ID },
            class: Probing,
            read: |frame_type, reader| Frame::NewConnectionId(NewConnectionId::read(frame_type, reader)?),
            write: |sink| new.write(sink),
            recovery: Repeated,
        }
        /// RETIRE_CONNECTION_ID (RFC 9000 §19.16) or PATH_RETIRE_CONNECTION_ID (RFC 10069 §4.5).
        RetireConnectionId struct {
            /// The path of the connection ID; `None` is the frame of RFC 9000, which means path 0.
            path: Option<PathId>,
            /// Its sequence number.
            sequence: u64,
        } {
            types: [
                RETIRE_CONNECTION_ID = 0x19 as "retire_connection_id" in Application,
                PATH_RETIRE_CONNECTION_ID = 0x3e79 as "path_retire_connection_id" in OneRtt,
            ],
            code: if path.is_some() { types::PATH_RETIRE_CONNECTION_ID } else { types::RETIRE_CONNECTION_ID },
            class: Eliciting,
            read: |frame_type, reader| Frame::RetireConnectionId {
                path: connection_id::path_of(frame_type, reader)?,
                sequence: reader.varint()?,
            },
            write: |sink| {
                sink.path(*path);
                sink.varint(*sequence);
            },
            recovery: Repeated,
        }
        /// PATH_CHALLENGE (RFC 9000 §19.17).
        PathChallenge(data: [u8; 8]) {
            types: [PATH_CHALLENGE = 0x1a as "path_challenge" in Application],
            class: Probing,
            read: |_, reader| Frame::PathChallenge(reader.array()?),
            write: |sink| sink.bytes(data),
            recovery: Forgotten,
        }
        /// PATH_RESPONSE (RFC 9000 §19.18).
        PathResponse(data: [u8; 8]) {
            types: [PATH_RESPONSE = 0x1b as "path_response" in OneRtt],
            class: Probing,
            read: |_, reader| Frame::PathResponse(reader.array()?),
            write: |sink| sink.bytes(data),
            recovery: Forgotten,
        }
        /// PATH_ABANDON (RFC 10069 §4.2).
        PathAbandon struct {
            /// The path.
            path: PathId,
            /// The reason: a code of RFC 10069 §4.2, of RFC 9000 §20.1, or one that is not known here.
            error: u64,
        } {
            types: [PATH_ABANDON = 0x3e75 as "path_abandon" in OneRtt],
            class: Eliciting,
            read: |_, reader| Frame::PathAbandon { path: path::id(reader)?, error: reader.varint()? },
            write: |sink| sink.varints(&[path.0.into(), *error]),
            recovery: Repeated,
        }
        /// PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP (RFC 10069 §4.3).
        PathStatus struct {
            /// The path.
            path: PathId,
            /// Orders the two frames: only the highest number counts.
            sequence: u64,
            /// The use of the path that the sender would like.
            status: Status,
        } {
            types: [
                PATH_STATUS_BACKUP = 0x3e76 as "path_status_backup" in OneRtt,
                PATH_STATUS_AVAILABLE = 0x3e77 as "path_status_available" in OneRtt,
            ],
            code: status.frame_type(),
            class: Eliciting,
            read: |frame_type, reader| Frame::PathStatus {
                path: path::id(reader)?,
                sequence: reader.varint()?,
                status: Status::of(frame_type),
            },
            write: |sink| sink.varints(&[path.0.into(), *sequence]),
            recovery: Repeated,
        }
        /// MAX_PATH_ID with the highest path ID that may be used (RFC 10069 §4.6). May exceed 2^32-1, which its owner
        /// refuses.
        MaxPathId(limit: u64) {
            types: [MAX_PATH_ID = 0x3e7a as "max_path_id" in OneRtt],
            class: Eliciting,
            read: |_, reader| Frame::MaxPathId(reader.varint()?),
            write: |sink| sink.varint(*limit),
            recovery: Repeated,
        }
        /// PATHS_BLOCKED with the highest path ID that the sender may use (RFC 10069 §4.7). May exceed 2^32-1.
        PathsBlocked(limit: u64) {
            types: [PATHS_BLOCKED = 0x3e7b as "paths_blocked" in OneRtt],
            class: Eliciting,
            read: |_, reader| Frame::PathsBlocked(reader.varint()?),
            write: |sink| sink.varint(*limit),
            recovery: Repeated,
        }
        /// PATH_HINTS (docs/spec/path-hints.md §4).
        PathHints(told: PathHints) {
            types: [PATH_HINTS = 0x2c9f_13a7 as "path_hints" in OneRtt],
            class: Eliciting,
            read: |_, reader| Frame::PathHints(PathHints::read(reader)?),
            write: |sink| told.write(sink),
            recovery: Repeated,
        }
        /// PATH_CIDS_BLOCKED (RFC 10069 §4.7).
        PathCidsBlocked struct {
            /// The path that lacks connection IDs.
            path: PathId,
            /// The sequence number that the sender expects next.
            next_sequence: u64,
        } {
            types: [PATH_CIDS_BLOCKED = 0x3e7c as "path_cids_blocked" in OneRtt],
            class: Eliciting,
            read: |_, reader| {
                Frame::PathCidsBlocked { path: path::id(reader)?, next_sequence: reader.varint()? }
            },
            write: |sink| sink.varints(&[path.0.into(), *next_sequence]),
            recovery: Repeated,
        }
    }
}
