//! `hvq decode` of what two ends said over two paths, in virtual time.

use crate::support::{code, run, said};
use hvq::stats::ConnectionStats;
use hvq::{ClientTls, PathId, TransportConfig, Verify};
use hvq_lab::workload::bulk::Download;
use hvq_lab::world::Net;
use hvq_lab::world::capture::Capture;
use hvq_scheduler::{Hints, Policy};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Writes a capture of a download over two paths and its secrets, and returns what the server counted.
fn write(capture: &Path, keys: &Path) -> ConnectionStats {
    let config = || TransportConfig::new(Arc::new(|| Policy::RoundRobin.scheduler()));
    let mut net = Net::new(config(), config(), 5);
    let secrets = Arc::new(Mutex::new(String::new()));
    let log = secrets.clone();
    let keylog = move |line: &str| *log.lock().unwrap() += &format!("{line}\n");
    let tls = ClientTls::builder().alpn(["hvq"]).verify(Verify::Insecure).keylog(Box::new(keylog));
    net.client_config.set_tls(tls.build().unwrap());
    let tuples = ["rtt=10ms,rate=20mbit", "rtt=30ms,rate=20mbit"].map(|channel| net.wire(channel));
    let pcap = Capture::of(&mut net, tuples.to_vec());
    net.connect(tuples[0]);
    net.run(&mut Download::new(Some((tuples[1], Hints::NONE))), Net::START + Duration::from_millis(300));
    fs::write(capture, pcap.bytes()).unwrap();
    fs::write(keys, &*secrets.lock().unwrap()).unwrap();
    net.server.connection().stats()
}

#[test]
fn a_capture_is_printed_with_the_frames_of_every_path() {
    let folder = tempfile::tempdir().unwrap();
    let [capture, keys] = ["two.pcap", "two.keys"].map(|name| folder.path().join(name));
    let counted = write(&capture, &keys);
    let decode = |more: &str| {
        let files = [capture.to_str().unwrap(), "--keys", keys.to_str().unwrap()];
        let output = run(["decode"].into_iter().chain(files).chain(more.split(' ')));
        assert_eq!((code(&output), said(&output).as_str()), (0, ""));
        String::from_utf8(output.stdout).unwrap()
    };
    let summary: Vec<Value> =
        decode("--summary --json").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for path in [0, 1] {
        let of_path = |kind: &str| {
            let frames = counted.frames.iter().find(|of| of.path == PathId(path) && of.kind == kind);
            frames.map_or(0, |frames| frames.sent)
        };
        let row = summary.iter().find(|row| row["path"] == path && row["from"] == "server").unwrap();
        assert_eq!((&row["connection"], &row["not_opened"]), (&Value::from(0), &Value::from(0)));
        assert!(of_path("stream") > 50, "{counted:?}");
        for kind in ["stream", "path_challenge", "path_new_connection_id"] {
            let printed = row["frames"][kind]["count"].as_u64().unwrap_or_default();
            assert_eq!(printed, of_path(kind), "{kind} on path {path}");
        }
        // One line a packet, with what was asked for and nothing else.
        let lines = decode(&format!("--path {path} --frames stream"));
        let named = |line: &str| line.contains(&format!("path {path}")) && line.contains("stream");
        let server = lines.lines().filter(|line| line.contains("server →")).count() as u64;
        assert!(lines.lines().all(named) && (1..=of_path("stream")).contains(&server), "{lines}");
    }
}
