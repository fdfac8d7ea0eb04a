//! The limits that each endpoint sets the other.

use crate::Role;
use crate::wire::stream_id::{Direction, StreamId};
use crate::wire::transport_parameters::{PartialDelivery, TransportParameters};

/// The limits that this endpoint sets its peer, and those of its own buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamLimits {
    /// The initial flow control limit of the connection (initial_max_data, RFC 9000 §18.2): the bytes that the peer may
    /// send ahead of reading, over all streams. Default: 2 MiB. It grows up to `max_window`, and is less while memory is
    /// [short](crate::endpoint::EndpointConfig::set_memory), except at servers that accept 0-RTT.
    pub max_data: u64,
    /// The initial flow control limit of each bidirectional stream that this endpoint opens, in bytes. Default: 1 MiB.
    /// It grows up to `max_window`.
    pub stream_data_bidi_local: u64,
    /// The same for each bidirectional stream that the peer opens. Default: 1 MiB.
    pub stream_data_bidi_remote: u64,
    /// The same for each unidirectional stream that the peer opens. Default: 1 MiB.
    pub stream_data_uni: u64,
    /// The maximum number of bidirectional streams that the peer may have open at a time. Default: 128.
    pub max_streams_bidi: u64,
    /// The maximum number of unidirectional streams that the peer may have open at a time. Default: 128.
    pub max_streams_uni: u64,
    /// The maximum number of bytes of a stream that wait for transmission or acknowledgement; beyond it writing blocks.
    /// Default: 4 MiB. While the congestion windows of all paths together are larger than half of it the maximum is
    /// twice those windows, up to four times this value: the bytes in flight, and as many behind a gap.
    pub send_buffer: usize,
    /// The maximum size of a flow control window, of a stream or of the connection, in bytes. Default: 16 MiB. Windows
    /// that are larger from the start stay as they are.
    pub max_window: u64,
}

impl StreamLimits {
    /// Bytes per stream that wait at most while the congestion windows of all paths have `windows` bytes together.
    pub(super) fn send_capacity(&self, windows: usize) -> usize {
        let most = self.send_buffer.saturating_mul(4);
        windows.saturating_mul(2).clamp(self.send_buffer, most)
    }

    /// The first window of a stream, for the endpoint in `role`.
    pub(super) fn stream_data(&self, role: Role, id: StreamId) -> u64 {
        match id.direction() {
            Direction::Unidirectional => self.stream_data_uni,
            Direction::Bidirectional if id.initiator() == role => self.stream_data_bidi_local,
            Direction::Bidirectional => self.stream_data_bidi_remote,
        }
    }
}

impl Default for StreamLimits {
    /// Enough for about 400 Mbit/s at 20 ms from the start, and for 1 Gbit/s at 120 ms once windows have grown.
    fn default() -> Self {
        Self {
            max_data: 2 << 20,
            stream_data_bidi_local: 1 << 20,
            stream_data_bidi_remote: 1 << 20,
            stream_data_uni: 1 << 20,
            max_streams_bidi: 128,
            max_streams_uni: 128,
            send_buffer: 4 << 20,
            max_window: 16 << 20,
        }
    }
}

/// The first limits of streams as the peer announced them (RFC 9000 §18.2), none before that.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PeerLimits {
    bidi_local: u64,
    bidi_remote: u64,
    uni: u64,
    /// The support for RESET_STREAM_AT.
    partial_delivery: PartialDelivery,
}

impl PeerLimits {
    pub(super) fn new(parameters: &TransportParameters) -> Self {
        Self {
            bidi_local: parameters.initial_max_stream_data_bidi_local,
            bidi_remote: parameters.initial_max_stream_data_bidi_remote,
            uni: parameters.initial_max_stream_data_uni,
            partial_delivery: parameters.partial_delivery,
        }
    }

    /// Returns the reliable size that a reset may have of `wanted` bytes.
    pub(super) fn reliable_size(&self, wanted: u64) -> u64 {
        if self.partial_delivery == PartialDelivery::On { wanted } else { 0 }
    }

    /// Returns the bytes that the endpoint in `role` may send on a stream at first. The peer calls its own streams
    /// local.
    pub(super) fn stream_data(&self, role: Role, id: StreamId) -> u64 {
        match id.direction() {
            Direction::Unidirectional => self.uni,
            Direction::Bidirectional if id.initiator() == role => self.bidi_remote,
            Direction::Bidirectional => self.bidi_local,
        }
    }
}
