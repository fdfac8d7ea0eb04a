//! Decoded packets: a decoder's view of a capture.

use bytes::Bytes;
use hvq_transport::PathId;
use hvq_transport::connection::Role;
use hvq_transport::wire::connection_id::ConnectionId;
use hvq_transport::wire::frame::Frame;
use hvq_transport::wire::version::Version;
use std::net::SocketAddr;
use std::time::Duration;

/// The kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Initial.
    Initial,
    /// 0-RTT.
    ZeroRtt,
    /// Handshake.
    Handshake,
    /// 1-RTT.
    OneRtt,
    /// Retry.
    Retry,
    /// Version Negotiation.
    VersionNegotiation,
    /// Nothing that could be told.
    Unknown,
}

impl Kind {
    /// Its name in RFC 9000.
    pub fn name(self) -> &'static str {
        match self {
            Self::Initial => "Initial",
            Self::ZeroRtt => "0-RTT",
            Self::Handshake => "Handshake",
            Self::OneRtt => "1-RTT",
            Self::Retry => "Retry",
            Self::VersionNegotiation => "VersionNeg",
            Self::Unknown => "?",
        }
    }
}

/// The reason for which a packet was not decoded.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Problem {
    /// The start of its connection is not in the capture.
    #[error("of a connection whose handshake is not in the capture")]
    UnknownConnection,
    /// The key log has nothing of its connection.
    #[error("the key log has no secrets of this connection")]
    NoSecrets,
    /// The key log lacks a secret of its connection.
    #[error("the key log lacks the secret for this kind of packet")]
    NoSecret,
    /// The secrets do not fit, or the packet is damaged.
    #[error("does not authenticate with the secrets in the key log")]
    Undecryptable,
    /// Its header ends early or is no header.
    #[error("not QUIC, or cut off")]
    Malformed,
    /// A version that is not known here.
    #[error("a version that is not known here")]
    UnknownVersion,
    /// One of its frames is not known here or ends early.
    #[error("a frame of type {frame_type:#x} cannot be read: {reason}")]
    Frame {
        /// The type of the frame.
        frame_type: u64,
        /// A description of the error.
        reason: String,
    },
}

/// A frame of an extension that the transport does not speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extension {
    /// TIME_STAMP, the time at the sender, in units of its acknowledgement delays (draft-huitema-quic-ts).
    TimeStamp(u64),
}

impl Extension {
    /// The frame type of TIME_STAMP.
    pub(crate) const TIME_STAMP: u64 = 0x2f5;
}

/// The inside of a packet.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Contents {
    /// The frames that could be read.
    pub frames: Vec<Frame>,
    /// Frames of extensions that the transport does not speak.
    pub extensions: Vec<Extension>,
    /// The reason for which that is not all.
    pub problem: Option<Problem>,
}

/// The header of a packet, as everybody on the way can read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The version; a short header does not say it.
    pub version: Option<Version>,
    /// The connection ID that the packet goes to.
    pub destination: ConnectionId,
    /// The connection ID that answers go to, empty in a short header.
    pub source: ConnectionId,
}

impl Header {
    /// A header that says nothing.
    pub const EMPTY: Self =
        Self { version: None, destination: ConnectionId::EMPTY, source: ConnectionId::EMPTY };
}

/// A packet of the capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The time of its capture, since 1970.
    pub at: Duration,
    /// The address that it came from.
    pub source: SocketAddr,
    /// The address that it went to.
    pub destination: SocketAddr,
    /// Its connection, counted from 0 in the order of their first packets.
    pub connection: Option<usize>,
    /// The end that sent it.
    pub sender: Option<Role>,
    /// Its path.
    pub path: Option<PathId>,
    /// The kind of packet.
    pub kind: Kind,
    /// The readable part of its header.
    pub header: Header,
    /// The token of an Initial or a Retry packet, empty if there is none.
    pub token: Bytes,
    /// The number of key updates before it was sealed (RFC 9001 §6).
    pub key_updates: u64,
    /// Its number.
    pub number: Option<u64>,
    /// Its size in bytes, with header and tag.
    pub bytes: usize,
    /// Its frames.
    pub contents: Contents,
}
