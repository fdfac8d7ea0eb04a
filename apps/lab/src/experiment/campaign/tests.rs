use super::*;
use crate::experiment::definition::Definition;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const TEXT: &str = r#"
name = "small"
title = "A page over two channels"
source = "none"
schemes = ["embb", "below:dchannel", "hvc"]
stretches = 2

[page]
pages = ["p05"]
sizes = "captured"

[matrix]
embb = ["LB-S", { label = "20 ms", is = "rtt=20ms,rate=200mbit" }]
"#;

fn definition() -> Definition {
    Definition::parse("small.toml", TEXT).expect("it is well-formed")
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for temporary files")
}

fn run(folder: &Path, scope: Scope, jobs: usize) -> (Tally, Vec<Record>) {
    let definition = definition();
    let store = Store::open(&definition, folder).expect("the folder can be written");
    let session = Session::new(&definition, scope, store);
    let tally = session.tally;
    (tally, session.run(jobs, &Stop::default(), |_| ()).expect("the traces are compiled in"))
}

fn bytes(folder: &Path) -> Vec<u8> {
    fs::read(folder.join("small.jsonl")).expect("the results are there")
}

#[test]
fn an_interrupted_experiment_goes_on_where_it_was_and_ends_with_the_same_bytes() {
    let (one, other) = (folder(), folder());
    let (whole, parts) = (one.path(), other.path());
    let (tally, records) = run(whole, Scope::default(), 2);
    assert_eq!((tally, records.len()), (Tally { runs: 12, kept: 0 }, 12));
    assert!(records.iter().all(|record| record.failure.is_none() && record.values["plt_ms"] > 50.0));
    // The second half, in another order, with a line that was cut off.
    let text = String::from_utf8(bytes(whole)).expect("JSON is text");
    let mut lines: Vec<&str> = text.lines().skip(6).collect();
    lines.reverse();
    let cut = format!("{}\n{}", lines.join("\n"), &text[..40]);
    fs::write(parts.join("small.jsonl"), cut).expect("it can be written");
    let (tally, _) = run(parts, Scope::default(), 1);
    assert_eq!(tally, Tally { runs: 12, kept: 6 });
    assert_eq!(bytes(whole), bytes(parts));
    let definition = definition();
    assert_eq!(read(&definition, parts).expect("it can be read").records.len(), 12);
}

#[test]
fn a_stop_lets_runs_come_to_their_end_and_begins_no_more() {
    let folder = folder();
    let definition = definition();
    let store = Store::open(&definition, folder.path()).expect("the folder can be written");
    let stop = Stop::default();
    let session = Session::new(&definition, Scope::default(), store);
    let records = session.run(1, &stop, |_| stop.order()).expect("the traces are compiled in");
    assert_eq!(records.len(), 1);
    assert_eq!(run(folder.path(), Scope::default(), 2).0, Tally { runs: 12, kept: 1 });
}

#[test]
fn results_of_another_build_of_the_program_do_not_count() {
    let folder = folder();
    let (_, records) = run(folder.path(), Scope::Repetitions(1), 1);
    let text = String::from_utf8(bytes(folder.path())).expect("JSON is text");
    let basis = &records[0].basis;
    let (build, digest) = basis.split_once('-').expect("a build and a digest");
    assert_eq!((build.len(), digest.len()), (16, 16), "{basis}");
    let other = format!("{}-{digest}", "0".repeat(16));
    fs::write(folder.path().join("small.jsonl"), text.replacen(basis.as_str(), &other, 2))
        .expect("it can be written");
    let definition = definition();
    let Found { records, stale } = read(&definition, folder.path()).expect("it can be read");
    assert_eq!((records.len(), stale), (4, 2));
    let store = Store::open(&definition, folder.path()).expect("the folder can be written");
    assert_eq!(Session::new(&definition, Scope::Quick, store).tally, Tally { runs: 6, kept: 4 });
}

#[test]
fn results_over_other_channels_are_run_again() {
    let folder = folder();
    run(folder.path(), Scope::Repetitions(1), 1);
    let other =
        Definition::parse("small.toml", &TEXT.replace("200mbit", "100mbit")).expect("it is well-formed");
    let store = Store::open(&other, folder.path()).expect("the folder can be written");
    assert_eq!(Session::new(&other, Scope::Quick, store).tally, Tally { runs: 6, kept: 0 });
    assert_eq!(bytes(folder.path()), b"");
}

#[test]
fn every_scheme_meets_the_same_stretch() {
    let tasks = tasks(&definition(), Scope::default());
    let stretches: Vec<u32> = tasks.iter().map(|task| task.key.stretch).collect();
    assert_eq!(stretches, [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]);
}

#[test]
fn shares_of_a_run_come_together_to_the_same_bytes() {
    let whole = folder();
    run(whole.path(), Scope::default(), 2);
    let definition = definition();
    let shares: Vec<TempDir> = (1..=3)
        .map(|number| {
            let share = folder();
            let store = Store::open(&definition, share.path()).expect("the folder can be written");
            let part = (Scope::default(), Shard { number, of: 3 });
            let session = Session::of_shard(&definition, part, store);
            assert_eq!(session.tally.runs, 4);
            session.run(1, &Stop::default(), |_| ()).expect("the traces are compiled in");
            share
        })
        .collect();
    let together = folder();
    let from: Vec<_> = shares.iter().rev().map(|share| share.path().to_owned()).collect();
    let found = merge(&definition, &from, together.path()).expect("all can be read");
    assert_eq!((found.records.len(), found.stale), (12, 0));
    assert_eq!(bytes(together.path()), bytes(whole.path()));
    assert!(["0/3", "4/3", "1", "a/b"].iter().all(|text| text.parse::<Shard>().is_err()));
    assert_eq!("2/3".parse(), Ok(Shard { number: 2, of: 3 }));
}
