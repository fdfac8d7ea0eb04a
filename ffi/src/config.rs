//! Configuration of connections.
//!
//! Structs that may grow begin with their size, so that programs and libraries of different versions agree: have them
//! filled by their init function, then change what shall differ. Data that a configuration points to is copied when it
//! is used, unless it says otherwise.

use crate::address::hvq_address;
use crate::error::hvq_result;
use crate::guard::{self, entry};
use crate::log::hvq_log_callback;
use crate::scheduler::hvq_scheduler;
use std::ffi::{c_char, c_void};

/// QUIC version 1 (RFC 9000).
pub const HVQ_QUIC_1: u32 = 1;
/// QUIC version 2 (RFC 9369).
pub const HVQ_QUIC_2: u32 = 0x6b33_43cf;

/// Nobody said whether others use the channel too.
pub const HVQ_SHARING_UNKNOWN: u32 = 0;
/// The channel is shared with other traffic.
pub const HVQ_SHARING_SHARED: u32 = 1;
/// The channel's rate is reserved for this connection: the path is paced to it.
pub const HVQ_SHARING_DEDICATED: u32 = 2;
/// The rate is reserved for this endpoint, and its connections share it.
pub const HVQ_SHARING_ENDPOINT: u32 = 3;

/// `rate` of the hints is known.
pub const HVQ_HINT_RATE: u32 = 1;
/// `delay` of the hints is known.
pub const HVQ_HINT_DELAY: u32 = 2;
/// `loss` of the hints is known.
pub const HVQ_HINT_LOSS: u32 = 4;
/// `price` of the hints is known.
pub const HVQ_HINT_PRICE: u32 = 8;
/// `rate_back` of the hints is known.
pub const HVQ_HINT_RATE_BACK: u32 = 16;

/// Nobody said whether the channel is metered.
pub const HVQ_METERING_UNKNOWN: u32 = 0;
/// Nobody counts the bytes of the channel.
pub const HVQ_METERING_UNMETERED: u32 = 1;
/// The bytes of the channel are paid for, or count against a volume.
pub const HVQ_METERING_METERED: u32 = 2;

/// Hints of the program or the modem about a channel. Zeros say nothing.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_hints {
    /// The fields below that are known: HVQ_HINT_RATE and others, added up.
    pub known: u32,
    /// HVQ_SHARING_UNKNOWN, HVQ_SHARING_SHARED, HVQ_SHARING_DEDICATED or HVQ_SHARING_ENDPOINT.
    pub sharing: u32,
    /// The rate of what this end sends, in bits per second.
    pub rate: u64,
    /// The one-way delay in nanoseconds.
    pub delay: u64,
    /// The price of a byte, in any unit. Only comparisons between paths count.
    pub price: u64,
    /// The loss to expect, in thousandths.
    pub loss: u32,
    /// HVQ_METERING_UNKNOWN, HVQ_METERING_UNMETERED or HVQ_METERING_METERED.
    pub metering: u32,
    /// The rate of what the peer sends, in bits per second. If only `rate` is known, the peer is told that for both.
    pub rate_back: u64,
}

/// Hints about the channel behind a local address. Paths that begin there have it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_channel {
    /// The local address, with its port.
    pub local: hvq_address,
    /// The hints.
    pub hints: hvq_hints,
    /// The congestion controller of these paths by name; NULL for that of the connection.
    pub congestion: *const c_char,
    /// The Differentiated Services codepoint of what is sent there, 0 to 63.
    pub dscp: u32,
    /// 0.
    pub reserved: u32,
}

/// Limits and choices of connections, filled with their defaults by hvq_transport_config_init().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_transport_config {
    /// The size of this struct, as the caller was compiled. Set by the init function.
    pub size: usize,
    /// The scheduler by name: "hvc" (the default, for NULL), "min-rtt", "round-robin", "redundant", "single:N" and others.
    pub scheduler: *const c_char,
    /// A scheduler of the program in place of a built-in one, or NULL. The table is copied; what its `user` points to is
    /// not.
    pub custom_scheduler: *const hvq_scheduler,
    /// The congestion controller by name: "cubic" (the default, for NULL), "newreno", "bbr", "vegas", "copa", "vivace",
    /// the last three also for radios ("vegas-radio" and so on), "lia", "olia" and "balia".
    pub congestion: *const c_char,
    /// Hints about channels, by local address.
    pub channels: *const hvq_channel,
    /// The number of channels.
    pub channel_count: usize,
    /// A folder for qlog files, one for each connection, or NULL. A thread writes them.
    pub qlog_folder: *const c_char,
    /// Called with what happens on connections, or NULL.
    pub log: hvq_log_callback,
    /// Passed to `log`.
    pub log_user: *mut c_void,
    /// HVQ_LOG_...: the amount of messages to `log`.
    pub log_level: u32,
    /// The maximum number of paths of a connection at a time; 1 offers the extension with one path, 0 does not offer
    /// it.
    pub paths: u32,
    /// The silence after which a connection ends (RFC 9000 §10.1), in nanoseconds; 0 for never.
    pub idle_timeout: u64,
    /// The longest time that a handshake may take, in nanoseconds; above 0.
    pub handshake_timeout: u64,
    /// The silence of the connection after which a PING is sent, in nanoseconds; 0 for none.
    pub keep_alive: u64,
    /// The silence of a path after which a PING is sent on it, in nanoseconds; 0 for none.
    pub path_keep_alive: u64,
    /// The time for which a path may be validated before the attempt fails, in nanoseconds; above 0.
    pub validation_timeout: u64,
    /// The initial flow control limit of the connection (RFC 9000 §18.2): the bytes that the peer may send ahead of
    /// reading, over all streams.
    pub max_data: u64,
    /// The initial flow control limit of each bidirectional stream that this end opens, in bytes.
    pub stream_data_bidi_local: u64,
    /// The initial flow control limit of each bidirectional stream that the peer opens, in bytes.
    pub stream_data_bidi_remote: u64,
    /// The initial flow control limit of each unidirectional stream, in bytes.
    pub stream_data_uni: u64,
    /// The maximum size to which these windows may grow, in bytes.
    pub max_window: u64,
    /// The maximum number of bidirectional streams that the peer may have open at a time.
    pub max_streams_bidi: u64,
    /// The maximum number of unidirectional streams that the peer may have open at a time.
    pub max_streams_uni: u64,
    /// The maximum number of bytes of a stream that wait for transmission or acknowledgement; beyond it writing blocks.
    /// Up to four times as many while they are less than twice the congestion windows of all paths.
    pub send_buffer: u64,
    /// The largest DATAGRAM frame accepted, in bytes; 0 refuses them.
    pub max_datagram_frame: u64,
    /// The maximum number of bytes of datagrams that wait for sending, and as many for the program.
    pub datagram_queue: u64,
    /// The size of UDP payloads sent, at least 1200, which the network must carry on all paths; 0 finds it out.
    pub fixed_datagram_size: u32,
    /// The largest size that is tried if it is found out.
    pub max_datagram_size: u32,
    /// The maximum number of UDP payloads of one batch, 1 to 64; 1 if the program cannot send several with one call.
    pub segments: u32,
    /// 1 marks packets as ECN-capable on paths that carry the marks; 0 for programs that cannot set or read them.
    pub ecn: u32,
    /// 1 varies what means nothing (RFC 9287 and others), 0 does not.
    pub grease: u32,
    /// 1 lets clients move their paths to other addresses, 0 asks them not to.
    pub migration: u32,
    /// The versions of QUIC that are spoken, the preferred one first: HVQ_QUIC_1 and HVQ_QUIC_2. NULL for both.
    pub versions: *const u32,
    /// The number of versions.
    pub version_count: usize,
    /// The version that a client begins with, one of `versions`; 0 for the first.
    pub first_version: u32,
    /// 1 has a server move connections to the first of its versions that the client speaks too (RFC 9368), 0 has it stay
    /// with what the client began with.
    pub choose_version: u32,
    /// A server's IPv4 address that clients shall move to after the handshake (RFC 9000 §9.6), where the program must receive
    /// too; zeros for none.
    pub preferred_ipv4: hvq_address,
    /// A server's IPv6 address that clients shall move to after the handshake; zeros for none.
    pub preferred_ipv6: hvq_address,
    /// 1 has a client move to the address that its server prefers, 0 has it stay.
    pub follow_preferred: u32,
    /// 1 lets the network measure round-trip times on most paths (RFC 9000 §17.4), 0 on none.
    pub spin_bit: u32,
    /// 1 has both ends tell how often they want acknowledgements, if the peer does so too; 0 has them follow the three
    /// `ack_` settings below.
    pub ack_requests: u32,
    /// Full datagrams that a client sends to open a path, so that the server may answer with more; 0 to 255.
    pub opening_datagrams: u32,
    /// The number of packets that ask for an acknowledgement after which one is sent at once.
    pub ack_threshold: u64,
    /// The longest time that an acknowledgement waits, in nanoseconds, below 2^14 milliseconds.
    pub ack_delay: u64,
    /// A packet out of order is acknowledged at once if the gap is so many packets old; 1 is every gap, 0 is none.
    pub ack_reordering: u64,
    /// Paths change the peer's connection ID that they use after so many packets; 0 for never.
    pub rotation_packets: u64,
    /// Paths change it after this time, too, in nanoseconds; 0 for never.
    pub rotation_time: u64,
    /// Paths change it with the first packet after this long a silence, too, in nanoseconds; 0 for never.
    pub rotation_idle: u64,
    /// The largest UDP payload that is accepted, in bytes, 1200 to 65527.
    pub max_udp_payload: u64,
    /// The maximum number of packets sealed with one key; the key is updated at half of that. 0 for the cipher suite's
    /// own limit, which is never exceeded (RFC 9001 §6.6).
    pub aead_confidentiality: u64,
    /// The number of packets that fail to authenticate after which the connection ends; 0 as above.
    pub aead_integrity: u64,
    /// 1 tells the peer the hints about paths that it takes (docs/spec/path-hints.md), and believes its own where there are no
    /// others; 0 does neither.
    pub path_hints: u32,
    /// The memory of paths that the endpoint keeps beyond a connection and begins later ones with (RFC 9959), in seconds; 0
    /// neither keeps nor uses any.
    pub path_memory: u32,
    /// The longest silence of a path after which a PING is sent on it, in nanoseconds, if a client may try longer ones than
    /// `path_keep_alive` until a NAT forgets the path; 0 keeps to `path_keep_alive`.
    pub path_keep_alive_limit: u64,
}

/// Fills a configuration with the defaults. `size` is sizeof(hvq_transport_config).
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_ARGUMENT` if `size` is no size that the struct ever had.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_transport_config_init(
    config: *mut hvq_transport_config,
    size: usize,
) -> hvq_result {
    // SAFETY: the caller passes a struct of that size.
    entry(|| unsafe { guard::initialise(config, size) })
}
