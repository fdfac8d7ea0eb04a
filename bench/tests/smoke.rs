//! The program as people run it, with little to transfer.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::Value;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hvq-bench")).args(arguments).output().unwrap()
}

/// Returns the table's values of one measure, by contender.
fn row<'a>(report: &'a Value, measure: &str) -> Vec<(&'a str, f64)> {
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["measure"] == measure).unwrap_or_else(|| panic!("no {measure}"));
    let cells = row["cells"].as_array().unwrap().iter();
    cells
        .map(|cell| (cell["contender"].as_str().unwrap(), cell["value"]["median"].as_f64().unwrap()))
        .collect()
}

#[test]
fn every_contender_is_measured_in_every_way_it_can() {
    let output = bench(&["--quick", "--json", "--size", "1", "--rounds", "1"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = |measure| row(&report, measure).iter().map(|(name, _)| *name).collect::<Vec<_>>();
    let all = ["hvq", "quinn", "noq", "quiche", "s2n-quic", "hvq-two-paths", "tcp-tls", "floor"];
    assert_eq!(names("one stream, 1200-byte datagrams: Mbit/s"), all);
    assert_eq!(names("upload, 1350-byte datagrams: Mbit/s"), all[..7]);
    assert_eq!(names("server's memory an idle connection: KiB"), all[..6]);
    assert_eq!(names("client's memory an idle connection: KiB"), all[..6]);
    assert_eq!(names("requests/s, 100 in flight"), all[..5]);
    assert_eq!(names("handshakes/s"), all[..5]);
    assert_eq!(names("pipe: requests a CPU second"), ["hvq", "quinn", "noq", "quiche", "hvq-two-paths"]);
    assert_eq!(names("pipe: CPU µs a handshake, X25519MLKEM768"), ["hvq"]);
    assert_eq!(names("goodput ÷ rate of equal emulated channels"), ["hvq", "hvq-two-paths"]);
    assert_eq!(names("goodput ÷ rate of 200 and 50 Mbit/s together"), ["hvq-two-paths"]);
    for figure in report["figures"].as_array().unwrap() {
        let may_be_none = figure["measure"].as_str().unwrap().ends_with("% of datagrams lost");
        assert!(figure["value"].as_f64().unwrap() > 0.0 || may_be_none, "{figure}");
    }
    for sample in report["samples"].as_array().unwrap() {
        let counts = ["hvq", "quinn", "noq", "quiche"].contains(&sample["contender"].as_str().unwrap());
        if sample["job"]["Bulk"].is_object() && counts {
            let least = (1 << 20) / sample["datagram"].as_u64().unwrap();
            assert!(least < sample["server"]["datagrams_sent"].as_u64().unwrap(), "{sample}");
        }
    }
    assert_eq!(report["decisions"].as_array().unwrap().len() % 2, 0);
}

#[test]
fn one_figure_of_one_contender_can_be_measured_alone() {
    let output = bench(&["--quick", "--only", "handshakes", "--contender", "quinn", "--rounds", "2"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("| handshakes/s | "), "{text}");
    assert!(!text.contains("Mbit/s") && !text.contains("scheduling decision"), "{text}");
}

#[test]
fn a_table_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let [marked, unmarked] = ["marked.md", "unmarked.md"].map(|name| folder.path().join(name));
    let text = "a\n<!-- bench: begin -->\nold\n<!-- bench: end -->\nb\n";
    std::fs::write(&marked, text).unwrap();
    std::fs::write(&unmarked, "no marks").unwrap();
    for (file, more) in
        [(&marked, &["--only", "aead"][..]), (&unmarked, &[]), (&folder.path().join("none"), &[])]
    {
        let output = bench(&[&["--write", file.to_str().unwrap()], more].concat());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
    }
    assert_eq!(std::fs::read_to_string(&marked).unwrap(), text);
    let brief =
        ["--quick", "--only", "aead", "--only", "pipe-handshakes", "--contender", "hvq", "--rounds", "1"];
    let output = bench(&[&["--write", marked.to_str().unwrap()], &brief[..]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = std::fs::read_to_string(&marked).unwrap();
    assert!(written.contains("CPU µs a handshake") && !written.contains("old"), "{written}");
}

#[test]
fn wrong_arguments_are_refused_with_a_message() {
    for wrong in [["--datagram", "1199"], ["--contender", "tcp"], ["--size", "0"], ["work", "nothing"]] {
        let output = bench(&wrong);
        assert!(!output.status.success() && !output.stderr.is_empty(), "{wrong:?}");
        assert!(output.stdout.is_empty(), "{wrong:?}");
    }
}
