//! `hvq decode` of what two ends said over two paths, in virtual time.

use crate::support::{code, run, said};
use hvq::PathId;
use hvq::transport::connection::{ConnectionStats, TransportConfig};
use hvq::transport::crypto::session::{ClientTls, Verify};
use hvq_channel::Direction;
use hvq_lab::workload::bulk::Download;
use hvq_lab::world::{Fate, Net};
use hvq_scheduler::{Hints, Policy};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The header of a pcap file of raw IP packets.
const HEADER: [u8; 24] =
    [0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 101];

/// An IPv4 packet with a UDP datagram as a record of that file (RFC 791, RFC 768; no checksums).
fn record(source: SocketAddr, destination: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let udp = u16::try_from(8 + payload.len()).unwrap();
    let length = u32::from(udp + 20).to_be_bytes();
    let mut bytes = [[0, 0, 0, 1], [0; 4], length, length].concat();
    bytes.extend([&[0x45, 0][..], &(udp + 20).to_be_bytes(), &[0, 0, 0, 0, 64, 17, 0, 0]].concat());
    for address in [source, destination] {
        let SocketAddr::V4(address) = address else { panic!("wires have addresses of IPv4") };
        bytes.extend(address.ip().octets());
    }
    bytes.extend([source.port(), destination.port(), udp, 0].map(u16::to_be_bytes).concat());
    bytes.extend(payload);
    bytes
}

/// Writes a capture of a download over two paths and its secrets, and returns what the server counted.
fn write(capture: &Path, keys: &Path) -> ConnectionStats {
    let config = || TransportConfig::new(Arc::new(|| Policy::RoundRobin.scheduler()));
    let mut net = Net::new(config(), config(), 5);
    let secrets = Arc::new(Mutex::new(String::new()));
    let log = secrets.clone();
    let keylog = move |line: &str| *log.lock().unwrap() += &format!("{line}\n");
    let tls = ClientTls::builder().alpn(["hvq"]).verify(Verify::Insecure).keylog(Box::new(keylog));
    net.client_config.tls = tls.build().unwrap();
    let tuples = ["rtt=10ms,rate=20mbit", "rtt=30ms,rate=20mbit"].map(|channel| net.wire(channel));
    let pcap = Arc::new(Mutex::new(HEADER.to_vec()));
    let tap = pcap.clone();
    net.tap = Some(Box::new(move |wire, way, payload| {
        let (client, server) = (tuples[wire].local, tuples[wire].remote);
        let (from, to) = if way == Direction::Up { (client, server) } else { (server, client) };
        tap.lock().unwrap().extend(record(from, to, payload));
        Fate::Pass
    }));
    net.connect(tuples[0]);
    net.run(&mut Download::new(Some((tuples[1], Hints::NONE))), Net::START + Duration::from_millis(300));
    fs::write(capture, &*pcap.lock().unwrap()).unwrap();
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
