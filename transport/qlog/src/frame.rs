//! Frames (quic-events §8.13), and those of the multipath extension in the same manner. Lengths of data, never data.

use hvq_transport::PathId;
use hvq_transport::error::ErrorCode;
use hvq_transport::scheduler::{Bandwidth, Hints, Metering, Sharing};
use hvq_transport::stream::Direction;
use hvq_transport::wire::frame::{
    Ack, ConnectionClose, Frame, NewConnectionId, PathHints, Status, StopSending,
};
use serde_json::{Map, Value, json};

/// Ranges of an acknowledgement that are listed at most.
const MOST_RANGES: usize = 256;

/// Returns the log's form of `frame`, whose sender scales acknowledgement delays by 2^`exponent` microseconds: an
/// object with `frame_type` and the fields of quic-events §8.13, without data and tokens.
pub fn value(frame: &Frame, exponent: u8) -> Value {
    let mut fields = match fields(frame, exponent) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.insert("frame_type".to_owned(), frame.kind().into());
    Value::Object(fields)
}

fn fields(frame: &Frame, exponent: u8) -> Value {
    match frame {
        Frame::Padding(length) => json!({ "raw": { "length": length, "payload_length": length } }),
        Frame::Ping | Frame::HandshakeDone | Frame::ImmediateAck => Value::Null,
        Frame::Ack(ack) => acknowledgement(ack, exponent),
        Frame::ResetStream(reset) => json!({
            "stream_id": reset.id.0, "error": "unknown", "error_code": reset.error, "final_size": reset.final_size,
        }),
        Frame::ResetStreamAt(reset) => json!({
            "stream_id": reset.id.0, "error": "unknown", "error_code": reset.error, "final_size": reset.final_size,
            "reliable_size": reset.reliable_size,
        }),
        Frame::StopSending(StopSending { id, error }) => {
            json!({ "stream_id": id.0, "error": "unknown", "error_code": error })
        }
        Frame::Crypto(crypto) => {
            let length = crypto.data.len();
            json!({ "offset": crypto.offset, "length": length, "raw": raw(frame, length) })
        }
        Frame::NewToken(token) => {
            json!({ "token": { "type": "resumption", "raw": { "length": token.len() } } })
        }
        Frame::Stream(stream) => {
            let length = stream.data.len();
            json!({
                "stream_id": stream.id.0, "offset": stream.offset, "length": length, "fin": stream.fin,
                "raw": raw(frame, length),
            })
        }
        Frame::Datagram(data) => json!({ "length": data.len(), "raw": raw(frame, data.len()) }),
        Frame::ConnectionClose(close) => connection_close(close),
        Frame::PathChallenge(data) | Frame::PathResponse(data) => json!({ "data": hex(data) }),
        Frame::AckFrequency(request) => json!({
            "sequence_number": request.sequence,
            "ack_eliciting_threshold": request.threshold,
            "requested_max_ack_delay": request.max_delay.as_secs_f64() * 1e3,
            "reordering_threshold": request.reordering,
        }),
        Frame::MaxData(limit) => json!({ "maximum": limit }),
        Frame::MaxStreamData { id, limit } => json!({ "stream_id": id.0, "maximum": limit }),
        Frame::MaxStreams { direction, limit } => {
            json!({ "stream_type": stream_type(*direction), "maximum": limit })
        }
        Frame::DataBlocked(limit) => json!({ "limit": limit }),
        Frame::StreamDataBlocked { id, limit } => json!({ "stream_id": id.0, "limit": limit }),
        Frame::StreamsBlocked { direction, limit } => {
            json!({ "stream_type": stream_type(*direction), "limit": limit })
        }
        Frame::NewConnectionId(new) => new_connection_id(new),
        Frame::RetireConnectionId { path, sequence } => {
            on_path(*path, json!({ "sequence_number": sequence }))
        }
        Frame::PathAbandon { path, error } => json!({ "path_id": path.0, "error_code": error }),
        Frame::PathStatus { path, sequence, status } => path_status(*path, *sequence, *status),
        Frame::PathHints(told) => path_hints(told),
        Frame::MaxPathId(limit) | Frame::PathsBlocked(limit) => json!({ "maximum_path_id": limit }),
        Frame::PathCidsBlocked { path, next_sequence } => {
            json!({ "path_id": path.0, "next_sequence_number": next_sequence })
        }
    }
}

/// A connection ID that the peer may use. Reset tokens are not written: whoever has one can end the connection.
fn new_connection_id(new: &NewConnectionId) -> Value {
    on_path(
        new.path,
        json!({
            "sequence_number": new.sequence,
            "retire_prior_to": new.retire_prior_to,
            "connection_id_length": new.id.len(),
            "connection_id": new.id.to_string(),
        }),
    )
}

fn path_status(path: PathId, sequence: u64, status: Status) -> Value {
    let status = match status {
        Status::Available => "available",
        Status::Backup => "backup",
    };
    json!({ "path_id": path.0, "path_status_sequence_number": sequence, "status": status })
}

/// Hints about a path (docs/spec/path-hints.md), without those of which nothing is said.
fn path_hints(told: &PathHints) -> Value {
    let Hints { rate, rate_back, delay, loss, price_per_byte, shared, metering } = told.hints;
    let bits = |rate: Option<Bandwidth>| rate.map(Bandwidth::bits_per_second).into();
    let sharing = match shared {
        Sharing::Unknown => Value::Null,
        Sharing::Shared => "shared".into(),
        Sharing::Endpoint => "endpoint".into(),
        Sharing::Dedicated => "dedicated".into(),
    };
    let metered = match metering {
        Metering::Unknown => Value::Null,
        Metering::Unmetered => false.into(),
        Metering::Metered => true.into(),
    };
    let said: [(&str, Value); 7] = [
        ("rate_from_sender", bits(rate)),
        ("rate_to_sender", bits(rate_back)),
        ("delay", delay.map(|delay| delay.as_secs_f64() * 1e3).into()),
        ("loss", loss.map(|loss| f64::from(loss.get()) / 1e3).into()),
        ("price", price_per_byte.into()),
        ("sharing", sharing),
        ("metered", metered),
    ];
    let said = said.into_iter().filter(|(_, value)| !value.is_null());
    let mut fields: Map<String, Value> = said.map(|(name, value)| (name.to_owned(), value)).collect();
    fields.insert("path_id".to_owned(), told.path.0.into());
    fields.insert("sequence_number".to_owned(), told.sequence.into());
    Value::Object(fields)
}

fn acknowledgement(ack: &Ack, exponent: u8) -> Value {
    let ranges = ack.ranges.iter().take(MOST_RANGES).map(|range| match range.into_inner() {
        (first, last) if first == last => json!([first]),
        (first, last) => json!([first, last]),
    });
    let micros = ack.delay.saturating_mul(1 << exponent.min(20));
    let mut fields = json!({
        "ack_delay": micros as f64 / 1e3,
        "acked_ranges": ranges.collect::<Vec<_>>(),
    });
    if let (Some(ecn), Value::Object(fields)) = (ack.ecn, &mut fields) {
        for (name, count) in [("ect0", ecn.ect0), ("ect1", ecn.ect1), ("ce", ecn.ce)] {
            fields.insert(name.to_owned(), count.into());
        }
    }
    on_path(ack.path, fields)
}

fn on_path(path: Option<PathId>, mut fields: Value) -> Value {
    if let (Some(path), Value::Object(fields)) = (path, &mut fields) {
        fields.insert("path_id".to_owned(), path.0.into());
    }
    fields
}

fn connection_close(close: &ConnectionClose) -> Value {
    match close {
        ConnectionClose::Transport { code, frame_type, reason } => json!({
            "error_space": "transport",
            "error": transport_error(*code),
            "error_code": code.0,
            "raw_error_code": code.0,
            "trigger_frame_type": frame_type,
            "reason": String::from_utf8_lossy(reason),
        }),
        ConnectionClose::Application { code, reason } => json!({
            "error_space": "application",
            "error": "unknown",
            "error_code": code,
            "raw_error_code": code,
            "reason": String::from_utf8_lossy(reason),
        }),
    }
}

/// The name of a transport error (quic-events §8.13.26, §8.13.28).
pub(crate) fn transport_error(code: ErrorCode) -> String {
    match code.0 {
        0..=0x10 => code.to_string().to_lowercase(),
        alert @ 0x100..=0x1ff => format!("crypto_error_0x{alert:03x}"),
        _ => "unknown".to_owned(),
    }
}

fn raw(frame: &Frame, data: usize) -> Value {
    json!({ "length": frame.encoded_size(), "payload_length": data })
}

fn stream_type(direction: Direction) -> &'static str {
    match direction {
        Direction::Bidirectional => "bidirectional",
        Direction::Unidirectional => "unidirectional",
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
