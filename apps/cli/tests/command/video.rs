//! `hvq svc send` and `hvq svc receive`, alone and with `hvq emulate` between them.

use crate::support::{Running, code, json, run, said};
use serde_json::Value;
use std::fs;

const SMALL: [&str; 6] = ["--size", "320x180", "--kbit", "100,400,800", "--duration", "3s"];

#[test]
fn a_video_arrives_with_all_layers_and_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("video.y4m");
    let receiver = Running::start([
        "svc",
        "receive",
        "--json",
        "--once",
        "--listen",
        "127.0.0.1:0",
        "--record",
        record.to_str().unwrap(),
    ]);
    let to = receiver.address(0).to_string();
    let output = run(["svc", "send", "test", "--json", "--to", &to].into_iter().chain(SMALL));
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert_eq!(json(&output)["frames"], 90);
    let (exit, rest) = receiver.wait();
    assert_eq!(exit, 0, "{rest}");
    let figures: Value = serde_json::from_str(rest.trim()).unwrap();
    // A busy machine encodes late, and late layers are taken back: the picture goes on without them.
    assert!(figures["frames"].as_u64().unwrap() >= 60, "{figures}");
    assert!(figures["depths"][2].as_u64().unwrap() >= 10, "{figures}");
    let latency = figures["latency"]["p50_ms"].as_f64().unwrap();
    assert!((60.0..1500.0).contains(&latency), "{figures}");
    let video = fs::read(&record).unwrap();
    assert!(video.starts_with(b"YUV4MPEG2 W320 H180"));
    assert!(video.len() > 30 * 320 * 180 * 3 / 2, "{}", video.len());
}

#[test]
fn over_two_emulated_channels_base_layers_take_the_quick_one() {
    let channels = ["urllc=127.0.0.1:0,rate=2mbit,delay=2.5ms", "embb=127.0.0.2:0"];
    let receiver = Running::start([
        "svc",
        "receive",
        "--json",
        "--once",
        "--wait",
        "adaptive",
        "--channel",
        channels[0],
        "--channel",
        channels[1],
    ]);
    let emulate =
        |name: &str, index, spec: &str| format!("{name}:127.0.0.1:0={},{spec}", receiver.address(index));
    let relays = Running::start([
        "emulate",
        "--json",
        "--duration",
        "12s",
        "--channel",
        &emulate("urllc", 0, "urllc"),
        "--channel",
        &emulate("embb", 1, "rtt=80ms,rate=60mbit"),
    ]);
    let path = |index: usize, hints: &str| {
        let relay = &relays.ready["listening"][index];
        format!(
            "{}=127.0.0.1:0>{}{hints}",
            relay["name"].as_str().unwrap(),
            relay["listen"].as_str().unwrap()
        )
    };
    let (quick, wide) = (path(0, ",rate=2mbit,delay=2.5ms"), path(1, ""));
    let output =
        run(["svc", "send", "test", "--json", "--path", &quick, "--path", &wide].into_iter().chain(SMALL));
    assert_eq!(code(&output), 0, "{}", said(&output));
    let (exit, rest) = receiver.wait();
    assert_eq!(exit, 0, "{rest}");
    let figures: Value = serde_json::from_str(rest.trim()).unwrap();
    let flight = |layer: usize| figures["layers"][layer]["p50_ms"].as_f64().unwrap();
    // 40 ms over eMBB, 2.5 ms over URLLC; the machine is slow, the order is not.
    assert!(flight(0) < flight(2), "{figures}");
    let sent = json(&output);
    for path in sent["paths"].as_array().unwrap() {
        assert!(path["bytes_sent"].as_u64().unwrap() > 10_000, "{sent}");
    }
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.mp4");
    fs::write(&text, "no video").unwrap();
    let output = run(["svc", "send", "/nonexistent.mp4", "--to", "127.0.0.1:9"]);
    assert!(code(&output) == 2 && said(&output).contains("/nonexistent.mp4"), "{}", said(&output));
    let output = run(["svc", "send", text.to_str().unwrap(), "--to", "127.0.0.1:9"]);
    assert!(code(&output) == 2 && said(&output).contains("ffmpeg"), "{}", said(&output));
    let output = run(["svc", "send", "test"]);
    assert!(code(&output) == 2 && said(&output).contains("--to"), "{}", said(&output));
}

#[test]
fn a_sender_or_receiver_that_vanishes_is_noticed() {
    let receiver = Running::start(["svc", "receive", "--json", "--once", "--listen", "127.0.0.1:0"]);
    let to = receiver.address(0).to_string();
    let sender = std::thread::spawn(move || {
        run(["svc", "send", "test", "--json", "--to", &to, "--size", "64x48", "--duration", "20s"])
    });
    std::thread::sleep(std::time::Duration::from_secs(2));
    drop(receiver);
    let output = sender.join().unwrap();
    assert!([3, 28].contains(&code(&output)), "{}", said(&output));
    assert!(said(&output).contains("the receiver is gone"), "{}", said(&output));
}
