//! Survivors that stay, each with the reason why: `mutants/triage.toml`.

use crate::catalogue::Key;
use crate::results::{Outcome, Results};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// The file.
pub const FILE: &str = "mutants/triage.toml";

/// All reasons.
#[derive(Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Triage {
    /// The reasons.
    #[serde(default, rename = "reason")]
    pub reasons: Vec<Reason>,
}

/// A reason, and the mutants for which it holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The reason why no test has to notice them.
    pub because: String,
    /// The mutants.
    pub survivors: Vec<Survivor>,
}

/// A mutant by name.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survivor {
    /// The file, from the root of the repository.
    pub file: String,
    /// The mutation as cargo-mutants names it.
    pub mutation: String,
    /// The line that it changes, where several have such a mutation.
    pub line: Option<String>,
}

impl Survivor {
    /// Returns whether `key` is meant.
    pub fn is(&self, key: &Key) -> bool {
        let line = self.line.as_ref().is_none_or(|line| *line == key.line);
        self.file == key.file && self.mutation == key.mutation && line
    }
}

impl Triage {
    /// The file of the repository at `root`; nothing if there is none.
    ///
    /// # Errors
    ///
    /// If it is malformed.
    pub fn load(root: &Path) -> Result<Self> {
        let Ok(text) = fs::read_to_string(root.join(FILE)) else { return Ok(Self::default()) };
        toml::from_str(&text).with_context(|| FILE.to_owned())
    }

    /// The reason for which `key` may survive.
    pub fn reason(&self, key: &Key) -> Option<&str> {
        let found = self.reasons.iter().find(|reason| reason.survivors.iter().any(|one| one.is(key)));
        found.map(|reason| reason.because.as_str())
    }

    /// Entries that are about none of the mutants `known`, and those about mutants of which all were noticed.
    pub fn stale(&self, known: &[Key], results: &Results) -> Vec<String> {
        let mut findings = Vec::new();
        for survivor in self.reasons.iter().flat_map(|reason| &reason.survivors) {
            let meant: Vec<&Key> = known.iter().filter(|key| survivor.is(key)).collect();
            let name = format!("{}: {}", survivor.file, survivor.mutation);
            if meant.is_empty() {
                findings.push(format!("{name}: there is no such mutant"));
            } else if meant.iter().all(|key| results.get(key) == Some(Outcome::Caught)) {
                findings.push(format!("{name}: a test notices it, no reason is needed"));
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(line: &str) -> Key {
        Key { file: "a.rs".into(), mutation: "replace < with <= in f".into(), line: line.into(), ordinal: 0 }
    }

    #[test]
    fn an_entry_is_about_its_line_and_refused_once_that_is_gone_or_noticed() {
        let text = "[[reason]]\nbecause = \"equal\"\nsurvivors = [{ file = \"a.rs\", mutation = \"replace < with <= in f\", line = \"x < y\" }]";
        let triage: Triage = toml::from_str(text).expect("it is well-formed");
        assert_eq!((triage.reason(&key("x < y")), triage.reason(&key("z < y"))), (Some("equal"), None));
        let mut results = Results::default();
        assert!(triage.stale(&[key("x < y")], &results).is_empty());
        assert_eq!(triage.stale(&[key("z < y")], &results).len(), 1);
        results.begin(0, [&key("x < y")]);
        results.put(&key("x < y"), Outcome::Caught);
        assert_eq!(triage.stale(&[key("x < y")], &results).len(), 1);
    }
}
