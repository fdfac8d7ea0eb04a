//! What a decoder makes of a capture.

use hvq_transport::PathId;
use hvq_transport::connection::Role;
use hvq_transport::wire::frame::Frame;
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

/// Why a packet keeps its secret.
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
        /// What is wrong with it.
        reason: String,
    },
}

/// The inside of a packet.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Contents {
    /// The frames that could be read.
    pub frames: Vec<Frame>,
    /// Why that is not all.
    pub problem: Option<Problem>,
}

/// A packet of the capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// When it was captured, since 1970.
    pub at: Duration,
    /// Where it came from.
    pub source: SocketAddr,
    /// Where it went.
    pub destination: SocketAddr,
    /// Its connection, counted from 0 in the order of their first packets.
    pub connection: Option<usize>,
    /// Who sent it.
    pub sender: Option<Role>,
    /// Its path.
    pub path: Option<PathId>,
    /// What kind it is.
    pub kind: Kind,
    /// Its number.
    pub number: Option<u64>,
    /// Its size in bytes, with header and tag.
    pub bytes: usize,
    /// Its frames.
    pub contents: Contents,
}
