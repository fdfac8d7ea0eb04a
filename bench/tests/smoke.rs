//! The program as people run it, with little to transfer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::Value;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hvq-bench")).args(arguments).output().unwrap()
}

#[test]
fn every_contender_transfers_and_every_figure_is_there() {
    let output = bench(&["--quick", "--json", "--size", "1", "--rounds", "1"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(errors.contains("bench 4/4"), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["bulk"].as_array().unwrap();
    let contenders: Vec<_> = rows.iter().map(|row| row["contender"].as_str().unwrap()).collect();
    assert_eq!(contenders, ["hvq", "quinn", "quiche", "hvq-two-paths"]);
    for row in rows {
        assert!(row["mbit"]["median"].as_f64().unwrap() > 1.0, "{row}");
        assert!(row["hvq_cpu_ratio"]["median"].as_f64().unwrap() > 0.0, "{row}");
    }
    for sample in report["samples"].as_array().unwrap() {
        let datagrams = sample["sender"]["datagrams_sent"].as_u64().unwrap();
        assert!((1 << 20) / 1200 < datagrams, "{sample}");
    }
    assert_eq!(report["decisions"].as_array().unwrap().len(), 10);
}

#[test]
fn one_contender_can_be_measured_alone() {
    let output = bench(&[
        "--only",
        "bulk",
        "--contender",
        "quinn",
        "--size",
        "1",
        "--rounds",
        "2",
        "--datagram",
        "1452",
    ]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1452-byte datagrams, 2 rounds"), "{text}");
    assert!(text.contains("quinn") && !text.contains("One scheduling decision"), "{text}");
}

#[test]
fn wrong_arguments_are_refused_with_a_message() {
    for wrong in [["--datagram", "1199"], ["--contender", "tcp"], ["--size", "0"], ["work", "nothing"]] {
        let output = bench(&wrong);
        assert!(!output.status.success() && !output.stderr.is_empty(), "{wrong:?}");
        assert!(output.stdout.is_empty(), "{wrong:?}");
    }
}
