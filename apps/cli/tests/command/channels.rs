//! `hvq emulate` between `hvq get` and `hvq serve`, and `hvq demo`, which is all three in one.

use crate::support::{Running, code, json, run, said};
use serde_json::Value;
use std::fs;

#[test]
fn a_transfer_uses_two_paths_over_two_emulated_channels() {
    let folder = tempfile::tempdir().unwrap();
    let body: Vec<u8> = (0..2_000_000_u32).map(|index| (index % 249) as u8).collect();
    fs::write(folder.path().join("body"), &body).unwrap();
    let channels = ["urllc=127.0.0.1:0,rate=2mbit,delay=2.5ms", "embb=127.0.0.2:0,rate=60mbit,delay=25ms"];
    let certificate = folder.path().join("certificate.pem");
    let server =
        Running::serve(folder.path(), &certificate, &["--channel", channels[0], "--channel", channels[1]]);
    let emulate = |name: &str, upstream, spec: &str| format!("{name}:127.0.0.1:0={upstream},{spec}");
    let relays = Running::start([
        "emulate",
        "--json",
        "--duration",
        "8s",
        "--channel",
        &emulate("urllc", server.address(0), "urllc"),
        "--channel",
        &emulate("embb", server.address(1), "rtt=50ms,rate=60mbit"),
    ]);
    let path = |index: usize, hints: &str| {
        let relay = &relays.ready["listening"][index];
        format!(
            "{}=127.0.0.1:0>{},{hints}",
            relay["name"].as_str().unwrap(),
            relay["listen"].as_str().unwrap()
        )
    };
    let target = folder.path().join("target");
    let output = run([
        "get",
        "-k",
        "--json",
        "-o",
        target.to_str().unwrap(),
        "--max-time",
        "30s",
        "--path",
        &path(0, "rate=2mbit,delay=2.5ms"),
        "--path",
        &path(1, "rate=60mbit,delay=25ms"),
        &server.url("/body"),
    ]);
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(fs::read(&target).unwrap() == body, "the body is not what was served");
    let statistics = json(&output);
    let paths = statistics["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 2, "{statistics}");
    for (path, name) in paths.iter().zip(["urllc", "embb"]) {
        assert_eq!((&path["name"], &path["state"]), (&name.into(), &"validated".into()));
        assert!(path["bytes_received"].as_u64().unwrap() > 2_000, "{path}");
    }
    let bulk = paths[1]["frames"]["stream"]["received"].as_u64().unwrap();
    assert!(bulk > 1_000, "most of the transfer goes over the channel with the bandwidth: {statistics}");
    let (exit, rest) = relays.wait();
    assert_eq!(exit, 0);
    let figures: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!(figures["channels"][1]["name"], "embb");
    assert!(figures["channels"][1]["down"]["left"]["bytes"].as_u64().unwrap() > 1_000_000, "{figures}");
}

#[test]
fn an_emulated_channel_prints_what_it_did() {
    let arguments = [
        "emulate",
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        "127.0.0.1:9",
        "--spec",
        "urllc",
        "--duration",
        "50ms",
    ];
    let output = run(arguments);
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(code(&output), 0);
    assert!(table.contains("delay p50") && table.lines().count() == 4, "{table}");
    assert!(said(&output).contains("delay=2500us,rate=2mbit"), "{}", said(&output));
}

#[test]
fn the_demo_compares_schemes_and_writes_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let (report, figures) = (folder.path().join("demo.html"), folder.path().join("demo.json"));
    let output = run([
        "demo",
        "--pages",
        "p34,p05",
        "--schemes",
        "single,hvc",
        "--repeat",
        "1",
        "--embb",
        "MM-S",
        "--out",
        report.to_str().unwrap(),
        "--json",
        figures.to_str().unwrap(),
    ]);
    assert_eq!(code(&output), 0, "{}", said(&output));
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    for part in ["improvement", "eMBB only", "hvc", "path_ack", "p34 squoosh.app"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let html = fs::read_to_string(report).unwrap();
    assert!(html.contains("<svg") && !html.contains("http://") && !html.contains("https://"));
    let figures: Value = serde_json::from_str(&fs::read_to_string(figures).unwrap()).unwrap();
    let loads = figures["loads"].as_array().unwrap();
    assert_eq!(loads.len(), 4);
    for load in loads {
        assert!(load["outcome"]["loaded_ms"].as_f64().unwrap() > 20.0, "{load}");
        let channels = load["channels"].as_array().unwrap();
        assert_eq!(channels.len(), if load["scheme"] == "hvc" { 2 } else { 1 });
        let frames = channels[0]["frames"].as_array().unwrap();
        assert!(frames.iter().any(|frame| frame["kind"] == "stream"), "{load}");
        assert!(channels[0]["series"]["down"].as_array().unwrap().len() > 1);
    }
    // Pages, offsets and schemes are what was asked for, in the same order for each scheme.
    assert_eq!(loads[0]["offset_s"], loads[1]["offset_s"]);
    assert_ne!(loads[0]["offset_s"], loads[2]["offset_s"]);
}
