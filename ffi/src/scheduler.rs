//! Schedulers of your own.
//!
//! For each frame that is about to be written the transport asks the scheduler of the connection which path carries it.
//! The built-in ones are chosen by name in `hvq_transport_config`; this is how to bring one of your own.

use crate::config::hvq_hints;
use std::ffi::c_void;

/// ACK or PATH_ACK: acknowledges packets of `acknowledged_path`.
pub const HVQ_CONTENT_ACKNOWLEDGEMENT: u32 = 0;
/// CRYPTO: the TLS handshake.
pub const HVQ_CONTENT_HANDSHAKE: u32 = 1;
/// Every other frame that is not data.
pub const HVQ_CONTENT_CONTROL: u32 = 2;
/// STREAM: the only content that can be divided.
pub const HVQ_CONTENT_STREAM: u32 = 3;
/// DATAGRAM.
pub const HVQ_CONTENT_DATAGRAM: u32 = 4;

/// Never sent before.
pub const HVQ_HISTORY_FRESH: u32 = 0;
/// Sent on `earlier_path`, and lost.
pub const HVQ_HISTORY_LOST: u32 = 1;
/// Sent on `earlier_path` `age` ago, neither acknowledged nor lost, and suspected to be late: a copy is offered.
pub const HVQ_HISTORY_UNACKNOWLEDGED: u32 = 2;

/// The path is validated, and the peer has not asked to spare it.
pub const HVQ_STANDING_AVAILABLE: u32 = 0;
/// The path is validated, and the peer asked to use it only when no other is left.
pub const HVQ_STANDING_BACKUP: u32 = 1;
/// The validation of the path is under way.
pub const HVQ_STANDING_UNVALIDATED: u32 = 2;
/// The path has not answered for a probe timeout.
pub const HVQ_STANDING_SILENT: u32 = 3;

/// One frame that is to be placed.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct hvq_item {
    /// HVQ_CONTENT_...
    pub content: u32,
    /// The path whose packets an acknowledgement acknowledges.
    pub acknowledged_path: u32,
    /// The number of a stream.
    pub stream: u64,
    /// Its size in bytes if sent whole; at least 1.
    pub bytes: u64,
    /// 0 (most urgent) to 7 (background), RFC 9218.
    pub urgency: u8,
    /// 1 if a part is of use before the whole has arrived, else 0.
    pub incremental: u8,
    /// 1 if this end is the server, 0 if it is the client.
    pub is_server: u8,
    /// 1 if `message_remaining` and `message_deadline` mean something.
    pub has_message: u8,
    /// HVQ_HISTORY_...
    pub history: u32,
    /// Bytes left in the message of the application from here on.
    pub message_remaining: u64,
    /// From now until the message is late, in nanoseconds; HVQ_NEVER if it cannot be.
    pub message_deadline: u64,
    /// Bytes of the same stream that wait to be sent, this item's included.
    pub pending: u64,
    /// The number of bytes of fresh data that the peer's connection limit still admits.
    pub credit: u64,
    /// Nanoseconds from now until all that the receiver needs before this is expected to be there.
    pub waits_for: u64,
    /// Nanoseconds since it was sent, if HVQ_HISTORY_UNACKNOWLEDGED.
    pub age: u64,
    /// Now, in nanoseconds since the connection began.
    pub now: u64,
    /// The path that it was sent on before, unless HVQ_HISTORY_FRESH.
    pub earlier_path: u32,
    /// 0.
    pub reserved: u32,
}

/// One path as a scheduler may know it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct hvq_path_view {
    /// The number of the path.
    pub id: u32,
    /// HVQ_STANDING_...
    pub standing: u32,
    /// Bytes that it may send now; 0 means none now.
    pub room: u64,
    /// Nanoseconds until room is expected again; 0 if there is room.
    pub resumes: u64,
    /// The congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// The one-way delay to the peer in nanoseconds. Only differences between paths need to be right.
    pub delay: u64,
    /// The rate of the bottleneck in bits per second; 0 if not known.
    pub rate: u64,
    /// Bytes believed queued at that bottleneck.
    pub backlog: u64,
    /// The latest round-trip time in nanoseconds; 0 before the first, as are those that follow.
    pub rtt_latest: u64,
    /// The smoothed round-trip time in nanoseconds.
    pub rtt_smoothed: u64,
    /// The mean deviation of round-trip times in nanoseconds.
    pub rtt_variance: u64,
    /// The smallest round-trip time in nanoseconds.
    pub rtt_minimum: u64,
    /// The share of packets lost of late, in thousandths.
    pub loss: u32,
    /// The largest UDP payload that the path carries, in bytes.
    pub datagram_size: u32,
    /// Hints about the channel.
    pub hints: hvq_hints,
}

/// Nothing goes until some path changes, or, if `wait` is not 0, for that many nanoseconds at most.
pub const HVQ_PLACE_WAIT: u32 = 0;
/// The first `bytes` of the item go on `path`, and the rest is offered again.
pub const HVQ_PLACE_ON: u32 = 1;
/// A copy goes on each path of the mask `set`.
pub const HVQ_PLACE_ON_EACH: u32 = 2;

/// The answer of a scheduler. It is filled with HVQ_PLACE_WAIT when the scheduler is asked.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_placement {
    /// HVQ_PLACE_... Anything else counts as HVQ_PLACE_WAIT.
    pub kind: u32,
    /// The number of the path, for HVQ_PLACE_ON. A path that is not listed or has no room counts as HVQ_PLACE_WAIT.
    pub path: u32,
    /// The number of bytes of the item, for HVQ_PLACE_ON: from 1 to its size. Items other than stream data always go
    /// whole.
    pub bytes: u64,
    /// Nanoseconds, for HVQ_PLACE_WAIT.
    pub wait: u64,
    /// Bit i stands for the path listed at index i, for HVQ_PLACE_ON_EACH.
    pub set: u64,
}

/// A frame was written into a packet.
pub const HVQ_OBSERVED_PLACED: u32 = 0;
/// The packet with the frame was acknowledged.
pub const HVQ_OBSERVED_ACKNOWLEDGED: u32 = 1;
/// The packet with the frame was declared lost.
pub const HVQ_OBSERVED_LOST: u32 = 2;
/// The path will not be listed again.
pub const HVQ_OBSERVED_PATH_GONE: u32 = 3;

/// The outcome of an earlier answer.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct hvq_observation {
    /// HVQ_OBSERVED_...
    pub kind: u32,
    /// The path.
    pub path: u32,
    /// HVQ_CONTENT_... of the frame.
    pub content: u32,
    /// The path whose packets an acknowledgement acknowledges.
    pub acknowledged_path: u32,
    /// The number of a stream.
    pub stream: u64,
    /// The size of the frame as written.
    pub bytes: u64,
    /// Nanoseconds from sending to the outcome.
    pub delay: u64,
}

/// Bytes that a handshake sends on the path on which it begins.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct hvq_flights {
    /// The bytes of the client, until it has keys.
    pub sent: u64,
    /// The bytes of the server: mostly its certificates.
    pub received: u64,
}

/// A scheduler as a table of functions. They are called within calls on the endpoint, on their thread, and must not call
/// the library for the same endpoint (HVQ_ERR_BUSY), nor unwind nor jump out.
///
/// `user` is passed to `create`, once for each connection, and what that returns to the other functions. Functions other
/// than `place` may be NULL; without `create` all connections share `user`, which must then stand calls from several
/// threads if several endpoints use the table. `user` must be valid until the configurations made with the table and the
/// endpoints that use them are freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_scheduler {
    /// The size of this struct, as the caller was compiled: sizeof(hvq_scheduler).
    pub size: usize,
    /// Passed to `create`.
    pub user: *mut c_void,
    /// Makes the state of a connection's scheduler.
    pub create: Option<unsafe extern "C" fn(user: *mut c_void) -> *mut c_void>,
    /// Frees it, when the connection ends.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
    /// Says in `placement` where `item` goes. There are `count` paths, 1 to 64; each is listed once.
    pub place: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            item: *const hvq_item,
            paths: *const hvq_path_view,
            count: usize,
            placement: *mut hvq_placement,
        ),
    >,
    /// Learns what became of earlier answers.
    pub observe: Option<unsafe extern "C" fn(state: *mut c_void, observation: *const hvq_observation)>,
    /// Returns the number of further pieces of the stream, each of the size of `item`, which was just placed whole on
    /// `path`, that may follow it there without a question for each. NULL asks for each.
    pub repeats: Option<
        unsafe extern "C" fn(state: *mut c_void, item: *const hvq_item, path: *const hvq_path_view) -> usize,
    >,
    /// Returns the index of the one of `count` paths, none of which is open, over which a connection had better begin:
    /// hvq_endpoint_first_network_path() asks it, of a state that is created and destroyed for that. Delays and queues are what
    /// other connections of the endpoint saw and hints say. NULL, and an index that is none, stand for 0.
    pub first: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            flights: *const hvq_flights,
            paths: *const hvq_path_view,
            count: usize,
        ) -> usize,
    >,
}
