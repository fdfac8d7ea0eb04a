//! `hvq lab run`, `list` and `report`.

use crate::support::{code, hvq, run, said};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// An experiment of a few short runs.
const SMALL: &str = r#"
name = "small"
title = "A page over two channels"
source = "a test"
schemes = ["embb", "ideal", "below:dchannel", "hvc"]

[page]
pages = ["p05"]

[matrix]
embb = ["LB-S", { label = "20 ms", is = "rtt=20ms,rate=200mbit" }]

[[goals]]
number = 1
says = "ideal is best"
of = { measure = "gap", scheme = "ideal" }
at_least = 100
"#;

fn lab<'a>(arguments: &[&'a str], folder: &'a Path) -> Vec<&'a str> {
    let folder = folder.to_str().unwrap();
    ["lab"].into_iter().chain(arguments.iter().copied()).chain(["--out", folder]).collect()
}

#[test]
fn an_experiment_is_run_once_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    fs::write(&file, SMALL).unwrap();
    let results = folder.path().join("results");
    let file = file.to_str().unwrap();
    let first = run(lab(&["run", file, "--seeds", "2"], &results));
    assert_eq!(code(&first), 0, "{}", said(&first));
    let lines = fs::read_to_string(results.join("small.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 16);
    let again = run(lab(&["run", file, "--seeds", "2"], &results));
    assert!(
        said(&again).contains("small: 0 runs") && said(&again).contains("16 were there"),
        "{}",
        said(&again)
    );
    assert_eq!(fs::read_to_string(results.join("small.jsonl")).unwrap(), lines);
    let page = folder.path().join("report.html");
    let arguments = ["report", file, "--results", results.to_str().unwrap()];
    let report = run(lab(&arguments, &page));
    assert_eq!(code(&report), 0, "{}", said(&report));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("A page over two channels") && page.contains("16 runs"), "{page}");
}

#[test]
fn a_signal_ends_a_run_with_whole_lines_and_the_code_of_the_signal() {
    for (signal, expected) in [("-INT", 130), ("-TERM", 143)] {
        interrupt_with(signal, expected);
    }
}

/// Interrupts a run and lets it go on.
fn interrupt_with(signal: &str, expected: i32) {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("nsdi-figure-9.jsonl");
    let arguments = lab(&["run", "nsdi-figure-9", "--jobs", "1"], folder.path());
    let mut running = hvq().args(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    let lines = || fs::read_to_string(&results).unwrap_or_default().lines().count();
    while lines() < 2 {
        assert!(start.elapsed() < Duration::from_secs(60) && running.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Command::new("kill").arg(signal).arg(running.id().to_string()).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    assert_eq!(code(&output), expected, "{}", said(&output));
    assert!(said(&output).contains("the same command goes on"), "{}", said(&output));
    let text = fs::read_to_string(&results).unwrap();
    assert!(text.ends_with('\n') && text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn a_file_that_makes_no_sense_is_told_with_its_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    fs::write(&file, SMALL.replace("\"hvc\"]", "\"warp\"]")).unwrap();
    let output = run(lab(&["run", file.to_str().unwrap()], folder.path()));
    assert_eq!(code(&output), 2);
    assert!(said(&output).contains("small.toml:5: schemes: "), "{}", said(&output));
    let output = run(lab(&["run", "nothing"], folder.path()));
    assert_eq!(code(&output), 2);
    assert!(said(&output).contains("hvq lab list"), "{}", said(&output));
}

#[test]
fn a_trace_and_a_page_that_make_no_sense_are_told_before_anything_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let trace = write("rate.csv", "time_ms,down_mbps,up_mbps\n0,5,5\n1000,-5,5\n");
    let file = write("trace.toml", &SMALL.replace("rate=200mbit", &format!("rate=file:{trace}")));
    let output = run(lab(&["run", &file], folder.path()));
    assert_eq!(code(&output), 2);
    assert!(
        said(&output).contains("matrix.embb: ") && said(&output).contains("rate.csv:3: "),
        "{}",
        said(&output)
    );
    let page = write("page.json", "{\n\"schema\": \"hvc-page/1\",\n\"objects\": [\n{\"start_ms\": -1}]}");
    let file = write("page.toml", &SMALL.replace("p05", &page));
    let output = run(lab(&["run", &file], folder.path()));
    assert_eq!(code(&output), 2);
    let place = "page.json:4: objects[0].start_ms: ";
    assert!(said(&output).contains("page.pages: ") && said(&output).contains(place), "{}", said(&output));
    assert!(!folder.path().join("small.jsonl").exists());
}

#[test]
fn a_cell_with_outages_is_replayed_alone() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("outages.jsonl");
    let file = json.to_str().unwrap();
    let output = run(["lab", "outages", "--cell", "gateway-urllc-14s", "--policies", "hvc", "--json", file]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("| hvc | 1 |"), "{table}{}", said(&output));
    let text = fs::read_to_string(&json).unwrap();
    let outcome: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(outcome["cell"], "gateway-urllc-14s");
    assert!(outcome["embb_ms"].is_null() && outcome["urllc_ms"].as_f64() > Some(14_000.0), "{text}");
    let output = run(["lab", "outages", "--cell", "moon"]);
    assert_eq!(code(&output), 2);
    assert!(said(&output).contains("gateway-urllc-3s"), "{}", said(&output));
}

#[test]
fn the_figures_of_the_papers_are_listed() {
    let output = run(["lab", "list"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("nsdi-figure-3") && text.contains("NSDI 2023, Table 5"), "{text}");
}
