use crate::file::rfc3339;
use crate::{Dialect, Qlog, QlogOptions};
use bytes::Bytes;
use hvq_transport::PathId;
use hvq_transport::connection::Role;
use hvq_transport::crypto::keys::Level;
use hvq_transport::error::ConnectionError;
use hvq_transport::stream::StreamId;
use hvq_transport::time::Instant;
use hvq_transport::trace::{Payload, Subject, TraceEvent, TracedPacket, Tracer};
use hvq_transport::wire::connection_id::{ConnectionId, ResetToken};
use hvq_transport::wire::frame::{Frame, NewConnectionId, Stream};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

fn subject() -> Subject {
    Subject {
        role: Role::Client,
        original_destination: ConnectionId::new(&[0xab, 0xcd]).unwrap(),
        local: "10.0.0.1:1000".parse().unwrap(),
        remote: "[2001:db8::1]:443".parse().unwrap(),
    }
}

/// A tracer of [`subject`] that has recorded the beginning.
fn begin(log: &Qlog) -> Box<dyn Tracer> {
    let mut tracer = (log.factory())(&subject()).expect("the limit of files is not reached");
    tracer.record(Instant::from_nanos(1_000_000), &TraceEvent::Started(&subject()));
    tracer
}

fn send(tracer: &mut dyn Tracer, at_ms: u64, frames: &[Frame]) {
    let mut payload = Vec::new();
    frames.iter().for_each(|frame| frame.put(&mut payload));
    let packet = TracedPacket {
        level: Level::OneRtt,
        path: PathId(1),
        number: 7,
        bytes: payload.len() + 30,
        payload: Payload(&payload),
    };
    tracer.record(Instant::from_nanos(at_ms * 1_000_000), &TraceEvent::PacketSent(packet));
}

fn stream() -> Frame {
    Frame::Stream(Stream { id: StreamId(4), offset: 10, data: Bytes::from_static(b"SECRETDATA"), fin: true })
}

/// The records of the only file in `folder`, the header first.
fn records(folder: &Path) -> Vec<Value> {
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = std::fs::read_to_string(&files[0]).unwrap();
    assert!(!text.contains("SECRETDATA"), "a payload was written");
    let (first, records) = text.split_at(1);
    assert_eq!(first, "\u{1e}", "RFC 7464: every record begins with a separator");
    records.split('\u{1e}').map(|record| serde_json::from_str(record).expect("a record is JSON")).collect()
}

fn named<'a>(records: &'a [Value], name: &str) -> &'a Value {
    let found = records.iter().find(|record| record["name"] == name);
    &found.unwrap_or_else(|| panic!("no {name} in {records:?}"))["data"]
}

#[test]
fn a_file_has_the_header_that_qvis_looks_for_and_events_in_milliseconds() {
    let folder = tempfile::tempdir().unwrap();
    let log = Qlog::open(QlogOptions::new(folder.path())).unwrap();
    let mut tracer = begin(&log);
    send(&mut *tracer, 3, &[stream(), Frame::Padding(9)]);
    drop(tracer);
    assert!(log.flush(PATIENCE));
    let records = records(folder.path());
    assert_eq!(
        (&records[0]["qlog_version"], &records[0]["qlog_format"]),
        (&"0.3".into(), &"JSON-SEQ".into())
    );
    assert_eq!(records[0]["trace"]["vantage_point"]["type"], "client");
    assert_eq!(records[0]["trace"]["common_fields"]["ODCID"], "abcd");
    assert_eq!(records[2]["time"], 2.0);
    assert_eq!(records[2]["tuple"], "1");
    let sent = named(&records, "transport:packet_sent");
    assert_eq!((&sent["header"]["path_id"], &sent["header"]["packet_number"]), (&1.into(), &7.into()));
    assert_eq!(sent["frames"][0]["frame_type"], "stream");
    assert_eq!(sent["frames"][0]["raw"]["payload_length"], 10);
    assert_eq!(sent["frames"][1]["raw"]["payload_length"], 9);
    assert_eq!(log.dropped(), 0);
}

#[test]
fn the_current_draft_has_its_schema_and_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let options = QlogOptions { dialect: Dialect::Draft, ..QlogOptions::new(folder.path()) };
    let log = Qlog::open(options).unwrap();
    let mut tracer = begin(&log);
    tracer.record(Instant::from_nanos(9_000_000), &TraceEvent::Closed(&ConnectionError::IdleTimeout));
    drop(tracer);
    assert!(log.flush(PATIENCE));
    let records = records(folder.path());
    assert_eq!(records[0]["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(named(&records, "quic:connection_started")["remote"]["ip_v6"], "2001:db8::1");
    assert_eq!(named(&records, "quic:connection_closed")["trigger"], "idle_timeout");
}

#[test]
fn reset_tokens_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let log = Qlog::open(QlogOptions::new(folder.path())).unwrap();
    let mut tracer = begin(&log);
    let id = ConnectionId::new(&[1, 2, 3, 4]).unwrap();
    let frame = NewConnectionId {
        path: Some(PathId(2)),
        sequence: 5,
        retire_prior_to: 0,
        id,
        token: ResetToken([0x5e; 16]),
    };
    send(&mut *tracer, 2, &[Frame::NewConnectionId(frame)]);
    drop(tracer);
    assert!(log.flush(PATIENCE));
    let records = records(folder.path());
    let frame = &named(&records, "transport:packet_sent")["frames"][0];
    assert_eq!(frame["frame_type"], "path_new_connection_id");
    assert_eq!((&frame["path_id"], &frame["connection_id"]), (&2.into(), &"01020304".into()));
    assert!(!frame.to_string().contains("5e5e5e"));
}

#[test]
fn a_file_ends_at_its_limit_and_says_how_much_is_missing() {
    // attacks.md B6: whatever the peer sends, the log is bounded.
    let folder = tempfile::tempdir().unwrap();
    let options = QlogOptions { file_bytes: 4_000, ..QlogOptions::new(folder.path()) };
    let log = Qlog::open(options).unwrap();
    let mut tracer = begin(&log);
    for round in 0..200 {
        send(&mut *tracer, 2 + round, &[stream()]);
        if round % 10 == 0 {
            assert!(log.flush(PATIENCE));
        }
    }
    drop(tracer);
    assert!(log.flush(PATIENCE));
    let records = records(folder.path());
    let size: usize = records.iter().map(|record| record.to_string().len()).sum();
    assert!(size < 10_000, "{size} bytes");
    assert!(log.dropped() > 100);
    let message = named(&records, "loglevel:warning")["message"].as_str().unwrap();
    assert!(message.ends_with("events were not logged"), "{message}");
}

#[test]
fn a_hostile_packet_of_many_frames_makes_a_short_event() {
    // attacks.md B6.
    let folder = tempfile::tempdir().unwrap();
    let log = Qlog::open(QlogOptions::new(folder.path())).unwrap();
    let mut tracer = begin(&log);
    send(&mut *tracer, 2, &vec![Frame::Ping; 60_000]);
    drop(tracer);
    assert!(log.flush(PATIENCE));
    let sent = named(&records(folder.path()), "transport:packet_sent").clone();
    assert_eq!(sent["frames"].as_array().unwrap().len(), 200);
}

#[test]
fn a_folder_that_is_removed_and_a_full_queue_cost_events_and_nothing_else() {
    // attacks.md J3.
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("logs");
    let log = Qlog::open(QlogOptions::new(&inner)).unwrap();
    std::fs::remove_dir(&inner).unwrap();
    let mut tracer = begin(&log);
    assert!(log.flush(PATIENCE));
    send(&mut *tracer, 2, &[stream()]);
    assert!(log.flush(PATIENCE));
    assert!(log.dropped() >= 1);

    let log = Qlog::open(QlogOptions { queue_bytes: 0, ..QlogOptions::new(folder.path()) }).unwrap();
    let mut tracer = begin(&log);
    for _ in 0..10_000 {
        send(&mut *tracer, 2, &[stream()]);
    }
    drop(tracer);
    assert!(log.flush(PATIENCE));
    assert!(log.dropped() > 0, "the writer cannot have kept up with a queue of nothing");
}

#[test]
fn no_more_files_are_made_than_the_limit_allows() {
    let folder = tempfile::tempdir().unwrap();
    let log = Qlog::open(QlogOptions { files: 1, ..QlogOptions::new(folder.path()) }).unwrap();
    let _first = begin(&log);
    assert!((log.factory())(&subject()).is_none());
    assert!(log.flush(PATIENCE));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn two_connections_of_one_id_have_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let log = Qlog::open(QlogOptions::new(folder.path())).unwrap();
    let (_first, _second) = (begin(&log), begin(&log));
    assert!(log.flush(PATIENCE));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn times_are_written_as_rfc_3339_asks() {
    for (seconds, expected) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400, "2000-02-29T00:00:00.000Z"),
        (1_728_554_999, "2024-10-10T10:09:59.000Z"),
        (4_102_444_799, "2099-12-31T23:59:59.000Z"),
    ] {
        assert_eq!(rfc3339(Duration::from_secs(seconds)), expected);
    }
}

#[test]
fn a_servers_connection_has_no_file_before_its_client_has_authenticated() {
    let folder = tempfile::tempdir().unwrap();
    let log = Qlog::open(QlogOptions { files: 1, ..QlogOptions::new(folder.path()) }).unwrap();
    let begin = || {
        let subject = Subject { role: Role::Server, ..subject() };
        let mut tracer = (log.factory())(&subject).expect("there is no file yet");
        tracer.record(Instant::from_nanos(1_000_000), &TraceEvent::Started(&subject));
        tracer
    };
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    // More connections than there may be files, which come to nothing.
    for _ in 0..5 {
        let mut strangers = begin();
        for at in 0..500 {
            send(&mut *strangers, at, &[Frame::Ping]);
        }
        drop(strangers);
        assert!(log.flush(PATIENCE));
        assert_eq!((files(), log.shared.queued.load(std::sync::atomic::Ordering::Relaxed)), (0, 0));
    }
    let mut tracer = begin();
    send(&mut *tracer, 3, &[Frame::Ping]);
    let complete = TraceEvent::Handshake(hvq_transport::trace::HandshakeProgress::Complete);
    tracer.record(Instant::from_nanos(4_000_000), &complete);
    send(&mut *tracer, 5, &[Frame::Ping]);
    drop(tracer);
    assert!(log.flush(PATIENCE));
    let records = records(folder.path());
    assert_eq!(records[1]["name"], "connectivity:connection_started");
    let sent = records.iter().filter(|record| record["name"] == "transport:packet_sent");
    assert_eq!(sent.map(|record| record["time"].as_f64().unwrap()).collect::<Vec<_>>(), [2.0, 4.0]);
    assert!((log.factory())(&subject()).is_none(), "one file is all that there may be");
}

#[test]
fn a_clients_file_is_there_from_the_start_and_goes_on_behind_the_handshake() {
    let folder = tempfile::tempdir().unwrap();
    let log = Qlog::open(QlogOptions::new(folder.path())).unwrap();
    let mut tracer = begin(&log);
    assert!(log.flush(PATIENCE));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let complete = TraceEvent::Handshake(hvq_transport::trace::HandshakeProgress::Complete);
    tracer.record(Instant::from_nanos(2_000_000), &complete);
    send(&mut *tracer, 3, &[Frame::Ping]);
    drop(tracer);
    assert!(log.flush(PATIENCE));
    assert_eq!(named(&records(folder.path()), "transport:packet_sent")["header"]["packet_number"], 7);
    assert_eq!(log.dropped(), 0);
}
