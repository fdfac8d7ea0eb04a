//! Errors as facts: codes of the registries, and the two ways in which input can fail.

use std::borrow::Cow;
use std::fmt;

/// A QUIC transport error code (RFC 9000 §20.1, RFC 10069).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ErrorCode(pub u64);

impl ErrorCode {
    /// No error.
    pub const NO_ERROR: Self = Self(0x0);
    /// The endpoint cannot go on.
    pub const INTERNAL_ERROR: Self = Self(0x1);
    /// The server refuses the connection.
    pub const CONNECTION_REFUSED: Self = Self(0x2);
    /// More data than was permitted.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// More streams than were permitted.
    pub const STREAM_LIMIT_ERROR: Self = Self(0x4);
    /// A frame that the stream's state does not permit.
    pub const STREAM_STATE_ERROR: Self = Self(0x5);
    /// The final size changed, or data lies beyond it.
    pub const FINAL_SIZE_ERROR: Self = Self(0x6);
    /// A frame that cannot be decoded.
    pub const FRAME_ENCODING_ERROR: Self = Self(0x7);
    /// A transport parameter that is malformed or not permitted.
    pub const TRANSPORT_PARAMETER_ERROR: Self = Self(0x8);
    /// More connection IDs than the limit.
    pub const CONNECTION_ID_LIMIT_ERROR: Self = Self(0x9);
    /// Another violation of the protocol.
    pub const PROTOCOL_VIOLATION: Self = Self(0xa);
    /// A token that is not valid.
    pub const INVALID_TOKEN: Self = Self(0xb);
    /// The application caused the close during the handshake.
    pub const APPLICATION_ERROR: Self = Self(0xc);
    /// More CRYPTO data than can be buffered.
    pub const CRYPTO_BUFFER_EXCEEDED: Self = Self(0xd);
    /// A key update that is not permitted.
    pub const KEY_UPDATE_ERROR: Self = Self(0xe);
    /// The limit of the AEAD was reached.
    pub const AEAD_LIMIT_REACHED: Self = Self(0xf);
    /// No path works any more.
    pub const NO_VIABLE_PATH: Self = Self(0x10);
    /// The version that is in use is not the one that should be (RFC 9368 §4).
    pub const VERSION_NEGOTIATION_ERROR: Self = Self(0x11);

    /// The code for a TLS alert (RFC 9001 §4.8): 0x0100 + alert.
    pub const fn crypto(alert: u8) -> Self {
        Self(0x100 + alert as u64)
    }

    /// A transport error with this code, and why.
    pub fn because(self, reason: impl Into<Cow<'static, str>>) -> TransportError {
        TransportError { code: self, frame_type: 0, reason: reason.into() }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::NO_ERROR => "NO_ERROR",
            Self::INTERNAL_ERROR => "INTERNAL_ERROR",
            Self::CONNECTION_REFUSED => "CONNECTION_REFUSED",
            Self::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            Self::STREAM_LIMIT_ERROR => "STREAM_LIMIT_ERROR",
            Self::STREAM_STATE_ERROR => "STREAM_STATE_ERROR",
            Self::FINAL_SIZE_ERROR => "FINAL_SIZE_ERROR",
            Self::FRAME_ENCODING_ERROR => "FRAME_ENCODING_ERROR",
            Self::TRANSPORT_PARAMETER_ERROR => "TRANSPORT_PARAMETER_ERROR",
            Self::CONNECTION_ID_LIMIT_ERROR => "CONNECTION_ID_LIMIT_ERROR",
            Self::PROTOCOL_VIOLATION => "PROTOCOL_VIOLATION",
            Self::INVALID_TOKEN => "INVALID_TOKEN",
            Self::APPLICATION_ERROR => "APPLICATION_ERROR",
            Self::CRYPTO_BUFFER_EXCEEDED => "CRYPTO_BUFFER_EXCEEDED",
            Self::KEY_UPDATE_ERROR => "KEY_UPDATE_ERROR",
            Self::AEAD_LIMIT_REACHED => "AEAD_LIMIT_REACHED",
            Self::NO_VIABLE_PATH => "NO_VIABLE_PATH",
            Self::VERSION_NEGOTIATION_ERROR => "VERSION_NEGOTIATION_ERROR",
            Self(code @ 0x100..=0x1ff) => return write!(f, "CRYPTO_ERROR (TLS alert {})", code - 0x100),
            Self(code) => return write!(f, "error {code:#x}"),
        };
        f.write_str(name)
    }
}

/// A violation by the peer, or a failure of ours, that closes the connection (RFC 9000 §11.1).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct TransportError {
    /// The code that the CONNECTION_CLOSE frame carries.
    pub code: ErrorCode,
    /// The type of the frame that caused it, 0 if unknown.
    pub frame_type: u64,
    /// For the person who reads the log.
    pub reason: Cow<'static, str>,
}

impl TransportError {
    /// Returns the same error, caused by a frame of type `frame_type`.
    pub fn in_frame(mut self, frame_type: u64) -> Self {
        self.frame_type = frame_type;
        self
    }
}

/// Input that is ignored without consequence for the connection (RFC 9000 §5.2, §12.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Dropped {
    /// The bytes are no QUIC packet, or a truncated one.
    #[error("not a QUIC packet")]
    Malformed,
    /// A datagram that starts a connection must have 1200 bytes (RFC 9000 §14.1).
    #[error("an Initial in a datagram under 1200 bytes")]
    SmallInitial,
    /// No connection has this destination connection ID.
    #[error("unknown connection ID")]
    UnknownConnection,
    /// A version that this endpoint does not speak.
    #[error("unsupported version")]
    UnsupportedVersion,
    /// The keys for this packet are not there yet or not any more.
    #[error("no keys for the packet")]
    NoKeys,
    /// Authentication failed.
    #[error("packet does not authenticate")]
    Undecryptable,
    /// The packet was already processed (RFC 9000 §12.3).
    #[error("duplicate packet")]
    Duplicate,
    /// The path that it belongs to was abandoned and freed.
    #[error("path is gone")]
    PathGone,
    /// A packet of a kind that makes no sense here.
    #[error("unexpected packet type")]
    Unexpected,
    /// It came from the port of a service that attackers use to reflect traffic.
    #[error("comes from the port of a service that reflects traffic")]
    Reflector,
    /// The client has to prove its address first, and was told so.
    #[error("address not proven; a Retry was sent")]
    Unproven,
    /// The application wants no connection with this client.
    #[error("the application wants no connection with this client")]
    Unwanted,
    /// A token of a Retry packet that proves nothing.
    #[error("invalid token")]
    InvalidToken,
    /// A limit of the endpoint was reached.
    #[error("limit reached")]
    Limit,
    /// Memory is short, and the connection holds much that its application has not read.
    #[error("no memory is left for the packet")]
    MemoryShort,
}

/// The error of a packet that led to nothing: it is ignored, or it closes the connection. The two are never mixed up.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PacketError {
    /// Ignore the packet.
    #[error("dropped: {0}")]
    Dropped(#[from] Dropped),
    /// Close the connection.
    #[error(transparent)]
    Close(#[from] TransportError),
}

/// The reason for which a connection ended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The application closed it here.
    #[error("closed by this application (code {code:#x})")]
    LocallyClosed {
        /// The application's code.
        code: u64,
    },
    /// This endpoint found a violation.
    #[error("closed by this endpoint: {0}")]
    Transport(TransportError),
    /// The peer closed it with a transport error.
    #[error("closed by the peer: {0}")]
    PeerTransport(TransportError),
    /// The peer's application closed it.
    #[error("closed by the peer's application: code {code:#x} {reason}")]
    PeerApplication {
        /// The peer application's code.
        code: u64,
        /// Its reason, invalid UTF-8 replaced.
        reason: String,
    },
    /// Nothing arrived for the idle timeout (RFC 9000 §10.1).
    #[error("timed out: nothing arrived within the idle timeout")]
    IdleTimeout,
    /// The handshake did not finish in time.
    #[error("timed out: the handshake did not finish")]
    HandshakeTimeout,
    /// The peer lost its state (RFC 9000 §10.3).
    #[error("reset by the peer (stateless reset)")]
    StatelessReset,
    /// The peer offers no version that this endpoint speaks (RFC 9000 §6.2).
    #[error("the peer speaks no version of QUIC that this endpoint does")]
    VersionMismatch,
}
