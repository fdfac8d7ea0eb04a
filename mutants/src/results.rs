//! Outcomes of mutants, kept between runs.

use crate::catalogue::Key;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The outcome of trying a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A test failed.
    Caught,
    /// A test had no end, which counts as caught.
    TimedOut,
    /// It does not compile.
    Unviable,
    /// It stands where no switch can be: constants, chains of `let`.
    Unswitchable,
    /// No test asks for it.
    Unreached,
    /// All tests that ask for it passed.
    Survived,
    /// The tests that there was time for passed.
    Unfinished,
}

impl Outcome {
    /// Returns whether no test noticed it.
    pub fn survives(self) -> bool {
        matches!(self, Self::Unreached | Self::Survived | Self::Unfinished)
    }
}

/// A mutant and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The mutant.
    #[serde(flatten)]
    pub key: Key,
    /// The outcome of trying it.
    pub outcome: Outcome,
    /// The test that noticed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
}

/// All results so far.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Results(pub BTreeMap<Key, Entry>);

impl Results {
    /// Reads a file; nothing if there is none.
    ///
    /// # Errors
    ///
    /// If the file holds something else.
    pub fn load(path: &Path) -> Result<Self> {
        let Ok(text) = fs::read_to_string(path) else { return Ok(Self::default()) };
        let entries: Vec<Entry> = serde_json::from_str(&text)?;
        Ok(Self(entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect()))
    }

    /// Writes all to a file.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let entries: Vec<&Entry> = self.0.values().collect();
        let text = serde_json::to_string_pretty(&entries)?;
        let new = path.with_extension("new");
        fs::write(&new, text)?;
        Ok(fs::rename(new, path)?)
    }

    /// Adds or replaces an entry.
    pub fn put(&mut self, entry: Entry) {
        self.0.insert(entry.key.clone(), entry);
    }
}
