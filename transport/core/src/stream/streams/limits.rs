//! What each endpoint permits the other.

use crate::connection::Role;
use crate::stream::id::{Direction, StreamId};
use crate::wire::transport_parameters::TransportParameters;

/// What this endpoint permits its peer, and how much it buffers itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamLimits {
    /// Bytes on all streams together that the peer may send ahead of reading, at first.
    pub max_data: u64,
    /// The same for each bidirectional stream that this endpoint opens.
    pub stream_data_bidi_local: u64,
    /// The same for each bidirectional stream that the peer opens.
    pub stream_data_bidi_remote: u64,
    /// The same for each unidirectional stream that the peer opens.
    pub stream_data_uni: u64,
    /// Bidirectional streams that the peer may have open at a time.
    pub max_streams_bidi: u64,
    /// Unidirectional streams that the peer may have open at a time.
    pub max_streams_uni: u64,
    /// Bytes per stream that wait for transmission or acknowledgement at most; then writing blocks. While the congestion
    /// windows of all paths together are larger than half of it they are twice those windows, at most four times as
    /// many as said here: what is in flight, and as much behind a gap.
    pub send_buffer: usize,
    /// Bytes to which a flow control window may grow, of a stream or of the connection. Windows that are larger from the
    /// start stay as they are.
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
}

impl PeerLimits {
    pub(super) fn new(parameters: &TransportParameters) -> Self {
        Self {
            bidi_local: parameters.initial_max_stream_data_bidi_local,
            bidi_remote: parameters.initial_max_stream_data_bidi_remote,
            uni: parameters.initial_max_stream_data_uni,
        }
    }

    /// How much the endpoint in `role` may send on a stream at first. The peer calls its own streams local.
    pub(super) fn stream_data(&self, role: Role, id: StreamId) -> u64 {
        match id.direction() {
            Direction::Unidirectional => self.uni,
            Direction::Bidirectional if id.initiator() == role => self.bidi_remote,
            Direction::Bidirectional => self.bidi_local,
        }
    }
}
