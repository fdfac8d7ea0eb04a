//! `hvq lab chaos` with few policies and events: real interfaces in namespaces, in real time.
//!
//! These tests are skipped, and say so, if the system does not permit namespaces.

use crate::networks::permitted;
use crate::support::{code, hvq, run, said};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn requests_go_on_while_links_go_down_and_interfaces_are_removed() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("chaos.jsonl");
    let arguments = [
        "lab",
        "chaos",
        "--clients",
        "proxy",
        "--policies",
        "hvc,min-rtt",
        "--events",
        "down-up,removed,downwards,both",
    ];
    // In real time on a machine that does other things too: no more than that they go on.
    let more = ["--jobs", "8", "--most", "4", "--json", json.to_str().unwrap()];
    let output = run(arguments.into_iter().chain(more));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(code(&output), 0, "{table}{}", said(&output));
    let text = fs::read_to_string(&json).unwrap();
    let outcomes: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(outcomes.len(), 8, "{text}");
    for outcome in outcomes {
        assert!(outcome["answers"].as_u64() > Some(50), "{outcome}");
        // While both are down nothing can be answered, or else nothing was down.
        let dark = if outcome["event"] == "both" { 1_400.0 } else { 15.0 };
        assert!(outcome["gap_ms"].as_f64() > Some(dark), "{outcome}");
    }
}

/// A client that does not follow the address waits for the two seconds in which the other link is down.
#[test]
fn paths_that_nobody_named_follow_an_address_that_changes() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("chaos.jsonl");
    let arguments = ["lab", "chaos", "--clients", "links-proxy", "--policies", "hvc", "--most", "1.5"];
    let events = ["--events", "renumbered-then-down,removed", "--json", json.to_str().unwrap()];
    let output = run(arguments.into_iter().chain(events));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(code(&output), 0, "{table}{}", said(&output));
    println!("{table}");
    assert_eq!(fs::read_to_string(&json).unwrap().lines().count(), 2);
}

/// Returns true if a process names `folder` on its command line.
fn is_named(folder: &Path) -> bool {
    let folder = folder.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(folder))
}

#[test]
fn nothing_is_left_of_namespaces_and_programs_when_the_command_is_killed() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["lab", "chaos", "--clients", "proxy", "--policies", "hvc", "--events", "down-up"];
    let mut command = hvq();
    command.args(arguments).env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = command.spawn().unwrap();
    let start = Instant::now();
    while !is_named(folder.path()) {
        assert!(start.elapsed() < Duration::from_secs(20) && running.try_wait().unwrap().is_none());
        sleep(Duration::from_millis(10));
    }
    // SIGKILL: it can clean up nothing itself.
    running.kill().unwrap();
    running.wait().unwrap();
    let killed = Instant::now();
    while is_named(folder.path()) {
        assert!(killed.elapsed() < Duration::from_secs(10), "programs in namespaces are left behind");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_folder_without_the_examples_is_told_before_anything_is_tried() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = run(["lab", "chaos", "--examples", folder.path().to_str().unwrap()]);
    assert_eq!(code(&output), 2);
    assert!(said(&output).contains("requests") || said(&output).contains("echo"), "{}", said(&output));
}
