//! From records to the events of the format.

use crate::dialect::{Dialect, Name};
use crate::frame;
use crate::parameters;
use crate::record::{Packet, Record};
use bytes::Bytes;
use hvq_transport::PathId;
use hvq_transport::crypto::keys::Level;
use hvq_transport::error::{ConnectionError, Dropped};
use hvq_transport::trace::{
    Growth, HandshakeProgress, PathChange, PathMetrics, ResumePhase, ResumeTrigger, Side, Subject,
};
use hvq_transport::wire::frame::{FrameReader, Status};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Frames of one packet that are listed at most; honest packets have a few.
const MOST_FRAMES: usize = 200;

/// An event: its name, the tuple that it belongs to if it is not the first, and its data.
pub(crate) type Event = (Name, Option<String>, Value);

/// Remembers of one connection what later events depend on.
#[derive(Debug)]
pub(crate) struct Translator {
    dialect: Dialect,
    /// The exponents of acknowledgement delays: ours and the peer's.
    exponents: [u8; 2],
    known: HashMap<PathId, PathMetrics>,
    /// Updates of the 1-RTT keys.
    key_phase: u64,
}

impl Translator {
    /// For a connection of which nothing is known.
    pub(crate) fn new(dialect: Dialect) -> Self {
        // RFC 9000 §18.2: the exponent is 3 unless the parameters say otherwise.
        Self { dialect, exponents: [3; 2], known: HashMap::new(), key_phase: 0 }
    }

    /// The names that files use.
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The events that say what `record` says, none if it is no news.
    pub(crate) fn translate(&mut self, record: &Record) -> Vec<Event> {
        match record {
            Record::Started(subject) => self.started(subject),
            Record::Parameters { side, parameters } => {
                self.exponents[index(*side)] = parameters.ack_delay_exponent;
                single(Name::ParametersSet, parameters::value(self.dialect, *side, parameters))
            }
            Record::Handshake(progress) => {
                let state = match progress {
                    HandshakeProgress::Complete => "handshake_complete",
                    HandshakeProgress::Confirmed => "handshake_confirmed",
                };
                single(Name::ConnectionStateUpdated, json!({ "new": state }))
            }
            Record::KeysInstalled(level) => self.keys(*level),
            Record::KeysUpdated(by) => self.updated_keys(*by),
            Record::Sent(packet) => self.packet(Name::PacketSent, Side::Local, packet),
            Record::Received(packet) => self.packet(Name::PacketReceived, Side::Remote, packet),
            Record::Ignored { reason, bytes } => single(Name::PacketDropped, dropped(*reason, *bytes)),
            Record::Lost { level, path, number, bytes } => {
                let data = json!({ "header": header(*level, *path, *number), "raw": { "length": bytes } });
                on(*path, Name::PacketLost, data)
            }
            Record::Rtt { sent_on, acknowledged_over, rtt } => {
                let data = json!({
                    "path_id": sent_on.0,
                    "acknowledged_over": acknowledged_over.0,
                    "rtt": milliseconds(*rtt),
                });
                on(*sent_on, Name::RttSampled, data)
            }
            Record::Metrics { path, metrics } => self.metrics(*path, metrics),
            Record::Resume { path, phase, trigger, window } => {
                let data = json!({
                    "path_id": path.0,
                    "new": phase_name(*phase),
                    "state_data": { "congestion_window": window },
                    "trigger": trigger_name(*trigger),
                });
                on(*path, Name::CarefulResumePhaseUpdated, data)
            }
            Record::Path { path, change, addresses } => path_changed(*path, *change, *addresses),
            Record::Closed(error) => single(Name::ConnectionClosed, closed(error)),
        }
    }

    fn started(&self, subject: &Subject) -> Vec<Event> {
        let data = match self.dialect {
            Dialect::Qvis => json!({
                "ip_version": if subject.local.is_ipv4() { "v4" } else { "v6" },
                "src_ip": subject.local.ip().to_string(),
                "dst_ip": subject.remote.ip().to_string(),
                "src_port": subject.local.port(),
                "dst_port": subject.remote.port(),
                "dst_cid": subject.original_destination.to_string(),
            }),
            Dialect::Draft => {
                json!({ "local": endpoint(subject.local), "remote": endpoint(subject.remote) })
            }
        };
        single(Name::ConnectionStarted, data)
    }

    fn keys(&self, level: Level) -> Vec<Event> {
        let level = match level {
            Level::Initial => "initial",
            Level::ZeroRtt => "0rtt",
            Level::Handshake => "handshake",
            Level::OneRtt => "1rtt",
        };
        let event = |end: &str| {
            let data = json!({ "key_type": format!("{end}_{level}_secret"), "trigger": "tls" });
            (Name::KeyUpdated, None, data)
        };
        vec![event("client"), event("server")]
    }

    fn updated_keys(&mut self, by: Side) -> Vec<Event> {
        self.key_phase += 1;
        let trigger = match by {
            Side::Local => "local_update",
            Side::Remote => "remote_update",
        };
        let event = |key: &str| {
            let data = json!({ "key_type": key, "key_phase": self.key_phase, "trigger": trigger });
            (Name::KeyUpdated, None, data)
        };
        vec![event("client_1rtt_secret"), event("server_1rtt_secret")]
    }

    fn packet(&self, name: Name, from: Side, packet: &Packet) -> Vec<Event> {
        // RFC 9000 §19.3: the delay of an acknowledgement is scaled by the exponent of its sender.
        let exponent = match packet.level {
            Level::OneRtt => self.exponents[index(from)],
            _ => 3,
        };
        let mut frames = Vec::new();
        for frame in FrameReader::new(Bytes::copy_from_slice(&packet.payload)).take(MOST_FRAMES) {
            frames.push(match frame {
                Ok(frame) => frame::value(&frame, exponent),
                Err(error) => json!({ "frame_type": "unknown", "frame_type_bytes": error.frame_type }),
            });
        }
        let data = json!({
            "header": header(packet.level, packet.path, packet.number),
            "raw": { "length": packet.bytes, "payload_length": packet.payload.len() },
            "frames": frames,
        });
        on(packet.path, name, data)
    }

    fn metrics(&mut self, path: PathId, metrics: &PathMetrics) -> Vec<Event> {
        let before = self.known.insert(path, *metrics);
        let mut changed = Map::new();
        let mut note = |name: &str, value: Value, old: Option<Value>| {
            if Some(&value) != old.as_ref() && !value.is_null() {
                changed.insert(name.to_owned(), value);
            }
        };
        for (name, read) in METRICS {
            note(name, read(metrics), before.as_ref().map(read));
        }
        let mut events = Vec::new();
        if !changed.is_empty() {
            changed.insert("path_id".to_owned(), path.0.into());
            events.extend(on(path, Name::MetricsUpdated, Value::Object(changed)));
        }
        if before.map(|before| before.growth) != Some(metrics.growth) {
            let mut data = json!({ "path_id": path.0, "new": state(metrics.growth) });
            if let (Some(before), Value::Object(fields)) = (before, &mut data) {
                fields.insert("old".to_owned(), state(before.growth).into());
            }
            events.extend(on(path, Name::CongestionStateUpdated, data));
        }
        events
    }
}

/// A function that reads one metric of a path.
type ReadMetric = fn(&PathMetrics) -> Value;

/// The metrics that the format knows, by name.
const METRICS: [(&str, ReadMetric); 8] = [
    ("min_rtt", |metrics| metrics.min_rtt.map_or(Value::Null, milliseconds)),
    ("smoothed_rtt", |metrics| milliseconds(metrics.smoothed_rtt)),
    ("latest_rtt", |metrics| milliseconds(metrics.latest_rtt)),
    ("rtt_variance", |metrics| milliseconds(metrics.rtt_variance)),
    ("pto_count", |metrics| metrics.pto_count.into()),
    ("congestion_window", |metrics| metrics.window.into()),
    ("bytes_in_flight", |metrics| metrics.in_flight.into()),
    ("pacing_rate", |metrics| metrics.pacing_rate.map_or(Value::Null, |rate| rate.bits_per_second().into())),
];

fn state(growth: Growth) -> &'static str {
    match growth {
        Growth::SlowStart => "slow_start",
        Growth::CongestionAvoidance => "congestion_avoidance",
    }
}

fn index(side: Side) -> usize {
    match side {
        Side::Local => 0,
        Side::Remote => 1,
    }
}

/// Milliseconds with the digits that matter.
pub(crate) fn milliseconds(time: Duration) -> Value {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    json!(micros as f64 / 1e3)
}

fn single(name: Name, data: Value) -> Vec<Event> {
    vec![(name, None, data)]
}

/// An event that belongs to `path`. The first path has the tuple "", which need not be said (quic-events §4.6).
fn on(path: PathId, name: Name, data: Value) -> Vec<Event> {
    vec![(name, (path != PathId::ZERO).then(|| path.0.to_string()), data)]
}

fn header(level: Level, path: PathId, number: u64) -> Value {
    let kind = match level {
        Level::Initial => "initial",
        Level::ZeroRtt => "0RTT",
        Level::Handshake => "handshake",
        Level::OneRtt => "1RTT",
    };
    let mut header = json!({ "packet_type": kind, "packet_number": number });
    if let (Level::OneRtt, Value::Object(fields)) = (level, &mut header) {
        fields.insert("path_id".to_owned(), path.0.into());
    }
    header
}

fn dropped(reason: Dropped, bytes: usize) -> Value {
    let trigger = match reason {
        Dropped::Malformed | Dropped::SmallInitial => "invalid",
        Dropped::UnknownConnection => "connection_unknown",
        Dropped::UnsupportedVersion => "unsupported",
        Dropped::NoKeys => "key_unavailable",
        Dropped::Undecryptable => "decryption_failure",
        Dropped::Duplicate => "duplicate",
        Dropped::Limit => "rejected",
        _ => "general",
    };
    json!({ "raw": { "length": bytes }, "trigger": trigger, "details": { "reason": reason.to_string() } })
}

/// One end of a tuple (quic-events §8.5).
fn endpoint(address: SocketAddr) -> Value {
    match address {
        SocketAddr::V4(address) => json!({ "ip_v4": address.ip().to_string(), "port_v4": address.port() }),
        SocketAddr::V6(address) => json!({ "ip_v6": address.ip().to_string(), "port_v6": address.port() }),
    }
}

fn path_changed(path: PathId, change: PathChange, addresses: Option<(SocketAddr, SocketAddr)>) -> Vec<Event> {
    let mut events = Vec::new();
    if let (PathChange::Opened | PathChange::Migrated, Some((local, remote))) = (change, addresses) {
        let data = json!({
            "tuple_id": path.0.to_string(),
            "path_id": path.0,
            "tuple_local": endpoint(local),
            "tuple_remote": endpoint(remote),
        });
        events.extend(on(path, Name::TupleAssigned, data));
    }
    let mut data = Map::new();
    data.insert("path_id".to_owned(), path.0.into());
    let state = match change {
        PathChange::Opened => "opened",
        PathChange::Validated => "validated",
        PathChange::ValidationFailed => "validation_failed",
        PathChange::Migrated => "migrated",
        PathChange::MigrationFailed => "migration_failed",
        PathChange::Silent => "silent",
        PathChange::Answering => "answering",
        PathChange::Advised(Status::Available) => "advised_available",
        PathChange::Advised(Status::Backup) => "advised_backup",
        PathChange::Abandoned(code) => {
            data.insert("error_code".to_owned(), code.into());
            "abandoned"
        }
    };
    data.insert("new".to_owned(), state.into());
    events.extend(on(path, Name::PathUpdated, Value::Object(data)));
    events
}

/// The name of a phase (draft-ietf-tsvwg-careful-resume-qlog-02).
fn phase_name(phase: ResumePhase) -> &'static str {
    match phase {
        ResumePhase::Reconnaissance => "reconnaissance",
        ResumePhase::Unvalidated => "unvalidated",
        ResumePhase::Validating => "validating",
        ResumePhase::SafeRetreat => "safe_retreat",
        ResumePhase::Normal => "normal",
    }
}

/// The name of a reason, from the same draft where it has one.
fn trigger_name(trigger: ResumeTrigger) -> &'static str {
    match trigger {
        ResumeTrigger::Remembered => "remembered",
        ResumeTrigger::WindowLimited => "congestion_window_limited",
        ResumeTrigger::LastUnvalidatedSent => "last_unvalidated_packet_sent",
        ResumeTrigger::FirstUnvalidatedAcknowledged => "first_unvalidated_packet_acknowledged",
        ResumeTrigger::LastUnvalidatedAcknowledged => "last_unvalidated_packet_acknowledged",
        ResumeTrigger::RttExceeded => "rtt_exceeded",
        ResumeTrigger::RateLimited => "rate_limited",
        ResumeTrigger::RttNotValidated => "rtt_not_validated",
        ResumeTrigger::PacketLoss => "packet_loss",
        ResumeTrigger::EcnCe => "ECN_CE",
        ResumeTrigger::ExitRecovery => "exit_recovery",
        ResumeTrigger::PersistentCongestion => "persistent_congestion",
        ResumeTrigger::InUse => "in_use",
        ResumeTrigger::WindowReached => "window_reached",
        ResumeTrigger::Stale => "stale",
    }
}

fn closed(error: &ConnectionError) -> Value {
    let reason = error.to_string();
    match error {
        ConnectionError::LocallyClosed { code } => {
            json!({ "initiator": "local", "application_error": "unknown", "error_code": code, "trigger": "application" })
        }
        ConnectionError::PeerApplication { code, reason } => json!({
            "initiator": "remote", "application_error": "unknown", "error_code": code, "reason": reason,
            "trigger": "application",
        }),
        ConnectionError::Transport(error) => json!({
            "initiator": "local", "connection_error": frame::transport_error(error.code),
            "error_code": error.code.0, "reason": error.reason, "trigger": "error",
        }),
        ConnectionError::PeerTransport(error) => json!({
            "initiator": "remote", "connection_error": frame::transport_error(error.code),
            "error_code": error.code.0, "reason": error.reason, "trigger": "error",
        }),
        ConnectionError::IdleTimeout => {
            json!({ "initiator": "local", "trigger": "idle_timeout", "reason": reason })
        }
        ConnectionError::HandshakeTimeout => {
            json!({ "initiator": "local", "trigger": "aborted", "reason": reason })
        }
        ConnectionError::StatelessReset => json!({ "initiator": "remote", "trigger": "stateless_reset" }),
        ConnectionError::VersionMismatch => json!({ "initiator": "local", "trigger": "version_mismatch" }),
    }
}
