//! The table of results by module, for the documents.

use crate::catalogue::Key;
use crate::modules::{MODULES, Module};
use crate::results::{Outcome, Results};
use crate::triage::Triage;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The document with the table.
const TABLE: &str = "docs/results/mutants.md";
/// The document with one row.
const README: &str = "README.md";
/// The question of the row in the README's table of figures.
const QUESTION: &str = "| Would tests notice a small fault? |";

/// Counts of one module, or of all.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Count {
    /// Mutants that cargo-mutants lists.
    pub listed: usize,
    /// Those that a test noticed.
    pub caught: usize,
    /// Those with which a test had no end.
    pub timed_out: usize,
    /// Those that do not compile.
    pub unviable: usize,
    /// Those that have no switch.
    pub unswitchable: usize,
    /// Those that survive for a written reason.
    pub explained: usize,
    /// Those that survive without one.
    pub unexplained: usize,
}

impl Count {
    /// Counts the mutants of `keys` that `wanted` selects.
    pub fn of(keys: &[Key], results: &Results, triage: &Triage, wanted: impl Fn(&Key) -> bool) -> Self {
        let mut count = Self::default();
        for key in keys.iter().filter(|key| wanted(key)) {
            count.listed += 1;
            let Some(outcome) = results.get(key) else { continue };
            let field = match outcome {
                Outcome::Caught => &mut count.caught,
                Outcome::TimedOut => &mut count.timed_out,
                Outcome::Unviable => &mut count.unviable,
                Outcome::Unswitchable => &mut count.unswitchable,
                _ if triage.reason(key).is_some() => &mut count.explained,
                _ => &mut count.unexplained,
            };
            *field += 1;
        }
        count
    }

    /// Mutants that were tried.
    pub fn run(&self) -> usize {
        let ended = self.caught + self.timed_out + self.unviable + self.unswitchable;
        ended + self.explained + self.unexplained
    }

    fn row(&self, name: &str) -> String {
        let Self { listed, caught, timed_out, unviable, unswitchable, explained, unexplained } = self;
        if self.run() == 0 {
            return format!("| {name} | {listed} | not run | | | | | | |\n");
        }
        let left = listed - self.run();
        format!(
            "| {name} | {listed} | {caught} | {timed_out} | {unviable} | {unswitchable} | {explained} | {unexplained} | {left} |\n"
        )
    }
}

/// The table, and a list of what survives without a reason by file.
pub fn table(keys: &[Key], results: &Results, triage: &Triage) -> String {
    let mut text = String::from(
        "| module | mutants | caught | timed out | do not compile | no switch | survive for a reason | survive without | not run |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for module in &MODULES {
        let count = Count::of(keys, results, triage, |key| module.contains(&key.file));
        text.push_str(&count.row(&format!("`{}`", module.name)));
    }
    text.push_str(&Count::of(keys, results, triage, |key| Module::of(&key.file).is_some()).row("all"));
    text
}

fn document(keys: &[Key], results: &Results, triage: &Triage) -> String {
    let mut text = String::from(
        "# Mutants\n\n\
         `make mutants` writes this table. cargo-mutants lists small faults of each function; each is tried with those tests of its\n\
         crate that reach it, for some seconds; tests of other crates (`tests/`, real sockets) are asked only with `--deep`.\n\
         \"Timed out\" counts as caught; \"no switch\" are those in constants and chains of `let`. `mutants/triage.toml` has the reasons.\n\
         An outcome counts while the code of its file stays as it was (`mutants/outcomes.txt`); after a change it is \"not run\".\n\n",
    );
    text.push_str(&table(keys, results, triage));
    let all = Count::of(keys, results, triage, |key| Module::of(&key.file).is_some());
    let _ = writeln!(
        text,
        "\n{} mutants compile and have a switch, and tests notice {} of them.",
        all.run() - all.unviable - all.unswitchable,
        all.caught + all.timed_out
    );
    let unexplained = |key: &&Key| {
        let survives = results.get(key).is_some_and(Outcome::survives);
        survives && triage.reason(key).is_none() && Module::of(&key.file).is_some()
    };
    let left: Vec<&Key> = keys.iter().filter(unexplained).collect();
    if !left.is_empty() {
        text.push_str("\n## Survivors without a reason, by file\n\n| file | mutants |\n| --- | ---: |\n");
        let mut files: Vec<&str> = left.iter().map(|key| key.file.as_str()).collect();
        files.sort_unstable();
        for group in files.chunk_by(|one, other| one == other) {
            let _ = writeln!(text, "| `{}` | {} |", group[0], group.len());
        }
    }
    text
}

/// Writes the table and the row of the README of the repository at `root`.
///
/// # Errors
///
/// If the README has no such row, or a file cannot be written.
pub fn write(root: &Path, keys: &[Key], results: &Results, triage: &Triage) -> Result<()> {
    fs::write(root.join(TABLE), document(keys, results, triage))?;
    let all = Count::of(keys, results, triage, |key| Module::of(&key.file).is_some());
    let noticed = all.caught + all.timed_out;
    let line = format!(
        "{QUESTION} {noticed} of {} that compile, so far; {} survive for a reason, {} without; {} were not tried yet | [mutants]({TABLE}) |",
        all.run() - all.unviable - all.unswitchable,
        all.explained,
        all.unexplained,
        all.listed - all.run(),
    );
    let readme = fs::read_to_string(root.join(README))?;
    let old =
        readme.lines().find(|line| line.starts_with(QUESTION)).context("README.md has no row for mutants")?;
    Ok(fs::write(root.join(README), readme.replacen(old, &line, 1))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(file: &str, ordinal: usize) -> Key {
        Key { file: file.into(), mutation: "replace < with > in f".into(), line: "a < b".into(), ordinal }
    }

    #[test]
    fn a_module_that_was_not_tried_is_told_as_that_and_not_as_without_survivors() {
        let keys = [key("transport/core/src/wire/a.rs", 0), key("transport/core/src/wire/a.rs", 1)];
        let keys = [&keys[..], &[key("transport/core/src/path/b.rs", 0), key("other.rs", 0)]].concat();
        let mut results = Results::default();
        results.begin(0, [&keys[0], &keys[1]]);
        results.put(&keys[0], Outcome::Unreached);
        let text = table(&keys, &results, &Triage::default());
        assert!(text.contains("| `wire` | 2 | 0 | 0 | 0 | 0 | 0 | 1 | 1 |"), "{text}");
        assert!(text.contains("| `path` | 1 | not run |"), "{text}");
        assert!(text.contains("| all | 3 | 0 | 0 | 0 | 0 | 0 | 1 | 2 |"), "{text}");
    }
}
