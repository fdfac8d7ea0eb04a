//! `hvq lab failover` with few trials: real interfaces in namespaces, in real time.
//!
//! This test is skipped, and says so, if the system does not permit namespaces.

use crate::networks::permitted;
use crate::support::{code, run, said};
use serde_json::Value;
use std::fs;

#[test]
fn loads_go_on_when_a_link_fails_and_the_link_is_used_again_once_it_is_mended() {
    if !permitted() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (json, figure) = (file("failover.jsonl"), file("failover.svg"));
    let arguments = ["lab", "failover", "--clients", "min-rtt,migration", "--faults", "down,silent,both"];
    let more = ["--trials", "1", "--jobs", "6", "--json", &json, "--figure", &figure];
    let output = run(arguments.into_iter().chain(more));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(code(&output), 0, "{table}{}", said(&output));
    assert!(table.contains("| client | link down | silent hole | both within a second |"), "{table}");
    assert!(fs::read_to_string(&figure).unwrap().contains("</svg>"));
    let text = fs::read_to_string(&json).unwrap();
    let trials: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(trials.len(), 6, "{text}");
    for trial in trials {
        for load in ["requests_ms", "download_ms", "datagrams_ms"] {
            let gap = trial[load].as_f64().unwrap_or_else(|| panic!("{load} ceased: {trial}"));
            // In real time on a machine that does other things too: no more than that they go on.
            assert!(gap < 3_000.0, "{load}: {trial}");
            // While both are down nothing can arrive, or else nothing was down.
            assert!(trial["fault"] != "both" || gap > 400.0, "{load}: {trial}");
        }
        let is_multipath = trial["contender"] == "min-rtt";
        assert!(
            !is_multipath || trial["recovery_ms"].as_f64().is_some(),
            "the link is not used again: {trial}"
        );
        assert!(trial["sent_per_byte"].as_f64() > Some(0.9), "{trial}");
    }
}

#[test]
fn rivals_without_their_program_are_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rivals");
    fs::write(&path, "not a program").unwrap();
    for (words, says) in [
        (["--clients", "hvc,mptcp-cubic"], "--clients mptcp-cubic: --rivals names no program"),
        (["--rivals", path.to_str().unwrap()], "rivals: Permission denied"),
        (["--rivals", "true"], "--rivals true: it is not the program of rivals"),
    ] {
        let output = run(["lab", "failover"].into_iter().chain(words));
        assert_eq!(code(&output), 2, "{}", said(&output));
        assert!(said(&output).contains(says), "{}", said(&output));
        assert!(output.stdout.is_empty(), "a table of nothing");
    }
}
