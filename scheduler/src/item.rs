//! The item to be placed: one prospective frame and its owner's description of it.

use std::time::Duration;

use crate::{PathId, Role};

/// One prospective frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item {
    /// The kind of the frame, with the stream or path that it belongs to.
    pub content: Content,
    /// Its size in bytes if sent whole; at least 1.
    pub bytes: usize,
    /// Bytes that the frame has beside `bytes`: type, numbers and length.
    pub header: usize,
    /// RFC 9218 urgency and incremental: from the application, or the default.
    pub priority: Priority,
    /// The application's message that the frame is the next part of, if it said so.
    pub message: Option<Message>,
    /// Bytes of the same stream that wait behind one another to be sent, this item's included; the item's own size for
    /// what is no stream.
    pub pending: usize,
    /// The number of bytes of fresh data that the peer still admits, before this item: by its limit for the connection and, of
    /// stream data, by that for the stream (RFC 9000 §4.1).
    pub credit: u64,
    /// The end of the connection that asks.
    pub role: Role,
    /// From now until all that the receiver must have first is expected to be there (C(n−1) − now).
    pub head_of_line_delay: Duration,
    /// The earlier transmissions of the data, if any.
    pub history: History,
    /// Now, since the connection began: the only clock a policy has. It never runs backwards.
    pub now: Duration,
}

impl Item {
    /// A fresh item of a client, of default priority and no known message, with nothing behind it, that waits for
    /// nothing, at the connection's start.
    pub const fn new(content: Content, bytes: usize) -> Self {
        Self {
            content,
            bytes,
            header: 0,
            priority: Priority::DEFAULT,
            message: None,
            pending: bytes,
            credit: u64::MAX,
            role: Role::Client,
            head_of_line_delay: Duration::ZERO,
            history: History::Fresh,
            now: Duration::ZERO,
        }
    }
}

/// The content of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Content {
    /// ACK or PATH_ACK.
    Acknowledgement {
        /// The path whose packets it acknowledges.
        of: PathId,
    },
    /// CRYPTO.
    Handshake,
    /// Every other frame that is not data: limits, connection ids, resets, path status.
    Control,
    /// STREAM: the only content that can be divided.
    Stream {
        /// The stream's id.
        id: u64,
    },
    /// DATAGRAM (RFC 9221).
    Datagram,
}

impl Content {
    /// Returns true if the first part may go on one path and the rest on another.
    pub const fn is_divisible(self) -> bool {
        matches!(self, Self::Stream { .. })
    }
}

/// The priority of data (RFC 9218 §4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Priority {
    /// 0 (most urgent) to 7 (background).
    pub urgency: u8,
    /// True if a part is of use before the whole has arrived.
    pub incremental: bool,
}

impl Priority {
    /// Urgency 3, not incremental (RFC 9218 §4.1, §4.2).
    pub const DEFAULT: Self = Self { urgency: 3, incremental: false };
}

impl Default for Priority {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The priority of a stream, and its order among streams of the same urgency.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StreamPriority {
    /// The priority that policies are shown.
    pub priority: Priority,
    /// The order among streams of one urgency: the greatest goes first; 0 by default. It is known to this end alone: RFC 9218 has
    /// nothing like it.
    pub order: i32,
}

impl From<Priority> for StreamPriority {
    fn from(priority: Priority) -> Self {
        Self { priority, order: 0 }
    }
}

/// A piece of a stream that is of use to the receiving application only as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    /// Bytes left in the message from the item's first byte on; at least [`Item::bytes`] if the item is one frame of it.
    pub remaining: usize,
    /// From now until the message is late, if it can be.
    pub deadline: Option<Duration>,
}

/// The earlier transmission of the data, if there was one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum History {
    /// Never sent.
    #[default]
    Fresh,
    /// Declared lost (RFC 9002 §6.1).
    Lost {
        /// The path it was lost on.
        on: PathId,
    },
    /// Sent, neither acknowledged nor declared lost, and suspected to be late: a copy is offered.
    Unacknowledged {
        /// The path it was sent on.
        on: PathId,
        /// The time since it was sent.
        age: Duration,
    },
}
