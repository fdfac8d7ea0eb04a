//! The guides' commands, word by word, as a newcomer types them.
//!
//! Each page runs in a network of its own; where the system permits none, that is said and the page is skipped.

use crate::support::said;
use std::path::Path;
use std::process::{Command, Stdio};

/// The exit code of `scripts/guide.py` where it cannot run a page.
const NOT_RUN: i32 = 75;

/// Runs the page `name` of docs/guides with the program under test.
fn follow(name: &str) {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let output = Command::new("python3")
        .arg(root.join("scripts/guide.py"))
        .arg("--apart")
        .arg(root.join("docs/guides").join(name))
        .env("HVQ_BIN", env!("CARGO_BIN_EXE_hvq"))
        .env_remove("RUST_LOG")
        .env_remove("SSLKEYLOGFILE")
        .env_remove("QLOGDIR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    match output.status.code() {
        Some(NOT_RUN) => eprintln!("SKIPPED: {}", said(&output)),
        code => assert_eq!(code, Some(0), "{}", said(&output)),
    }
}

#[test]
fn an_operators_first_hour_goes_as_its_page_says() {
    follow("first-hour.md");
}

#[test]
fn a_researchers_first_experiment_goes_as_its_page_says() {
    follow("first-experiment.md");
}

#[test]
fn two_links_at_home_go_as_their_page_says() {
    follow("two-links.md");
}
