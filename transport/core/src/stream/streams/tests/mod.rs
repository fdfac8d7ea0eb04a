//! Tests of all streams together.

mod interleaving;
mod lifetime;
mod metering;
mod progress;
mod resets_at;
mod sending;
mod violations;
mod writing;

use super::*;
use crate::PathId;
use crate::recovery_token::RecoveryToken;
use crate::time::Instant;
use crate::wire::frame::{self, Frame};
use crate::wire::transport_parameters::PartialDelivery;
use bytes::Bytes;
use hvq_scheduler::{History, Priority};

const FAST: PathId = PathId(0);
const SLOW: PathId = PathId(1);
const BIDI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;

/// Returns the frame that [`Streams::take`] gives, as it goes into a packet, with its token.
fn taken(streams: &mut Streams, id: StreamId, room: usize, most: usize) -> Option<(Frame, RecoveryToken)> {
    let stream = streams.take(id, room, most, PathId::ZERO)?;
    let token = RecoveryToken::from(&stream);
    Some((Frame::Stream(stream), token))
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Small limits, so that all of them are met.
fn limits() -> StreamLimits {
    StreamLimits {
        max_data: 1000,
        stream_data_bidi_local: 300,
        stream_data_bidi_remote: 400,
        stream_data_uni: 500,
        max_streams_bidi: 4,
        max_streams_uni: 4,
        send_buffer: 600,
        max_window: 1000,
    }
}

fn parameters(limits: &StreamLimits) -> TransportParameters {
    TransportParameters {
        initial_max_data: limits.max_data,
        initial_max_stream_data_bidi_local: limits.stream_data_bidi_local,
        initial_max_stream_data_bidi_remote: limits.stream_data_bidi_remote,
        initial_max_stream_data_uni: limits.stream_data_uni,
        initial_max_streams_bidi: limits.max_streams_bidi,
        initial_max_streams_uni: limits.max_streams_uni,
        partial_delivery: PartialDelivery::On,
        ..TransportParameters::default()
    }
}

/// An endpoint whose peer has the same limits.
fn endpoint(role: Role, limits: StreamLimits) -> Streams {
    let mut streams = Streams::new(role, limits);
    streams.set_peer_limits(&parameters(&limits));
    streams
}

fn pair(limits: StreamLimits) -> (Streams, Streams) {
    (endpoint(Role::Client, limits), endpoint(Role::Server, limits))
}

fn stream(id: StreamId, offset: u64, data: &[u8], fin: bool) -> frame::Stream {
    frame::Stream { id, offset, data: Bytes::copy_from_slice(data), fin }
}

/// Hands a frame to its receiver.
fn deliver(to: &mut Streams, frame: Frame) {
    let result = match frame {
        Frame::Stream(stream) => to.on_stream(stream),
        Frame::ResetStream(reset) => to.on_reset_stream(reset),
        Frame::ResetStreamAt(reset) => to.on_reset_stream_at(reset),
        Frame::StopSending(stop) => to.on_stop_sending(stop),
        Frame::MaxData(limit) => to.on_max_data(limit),
        Frame::MaxStreamData { id, limit } => to.on_max_stream_data(id, limit),
        Frame::MaxStreams { direction, limit } => to.on_max_streams(direction, limit),
        Frame::DataBlocked(limit) => to.on_data_blocked(limit),
        Frame::StreamDataBlocked { id, limit } => to.on_stream_data_blocked(id, limit),
        Frame::StreamsBlocked { direction, limit } => to.on_streams_blocked(direction, limit),
        other => panic!("not a stream's frame: {other:?}"),
    };
    result.expect("a conforming peer");
}

/// The next frame that an endpoint sends.
fn next_frame(from: &mut Streams, room: usize) -> Option<(Frame, RecoveryToken)> {
    from.next_control(at(0)).or_else(|| {
        let key = from.next_sendable(None)?;
        taken(from, key.id, room, usize::MAX)
    })
}

/// Moves everything that one endpoint has to say to the other, on a perfect network.
fn flush(from: &mut Streams, to: &mut Streams) {
    while let Some((frame, token)) = next_frame(from, 1200) {
        deliver(to, frame);
        from.on_acknowledged(&token);
    }
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    std::iter::from_fn(|| streams.poll_event()).collect()
}

fn controls(streams: &mut Streams) -> Vec<Frame> {
    std::iter::from_fn(|| streams.next_control(at(0))).map(|(frame, _)| frame).collect()
}

/// Reads until there is no more; whether the end was there.
fn read_all(streams: &mut Streams, id: StreamId) -> (Vec<u8>, bool) {
    let mut all = Vec::new();
    loop {
        match streams.read(id, 100).expect("readable") {
            ReadOutcome::Data(data) => all.extend_from_slice(&data),
            ReadOutcome::Blocked => return (all, false),
            ReadOutcome::Finished => return (all, true),
        }
    }
}
