//! Outcomes of mutants, kept in the repository between runs: `mutants/outcomes.txt`.
//!
//! An outcome counts for as long as the code of the file that the mutant is in stays as it was. Comments, empty lines and tests at the end
//! of the file may change. What a test noticed, which is most, is not written: of a file that is listed, only the rest is.

use crate::catalogue::{Key, VERSION};
use anyhow::{Context, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The file.
pub const FILE: &str = "mutants/outcomes.txt";
/// The lines that the file begins with, before the version of cargo-mutants.
const HEAD: &str = "\
# Outcomes of mutants, written by `make mutants`: each file with a digest of its code, and below it the mutants that no test noticed.
# All others of the file were noticed. The digest is FNV-1a of the file's lines, without comments, empty lines and `mod tests`.
";
/// The word for what was not tried.
const NOT_RUN: &str = "not-run";
/// The words of the file for outcomes.
const WORDS: [(Outcome, &str); 7] = [
    (Outcome::Caught, "caught"),
    (Outcome::TimedOut, "timed-out"),
    (Outcome::Unviable, "unviable"),
    (Outcome::Unswitchable, "unswitchable"),
    (Outcome::Unreached, "unreached"),
    (Outcome::Survived, "survived"),
    (Outcome::Unfinished, "unfinished"),
];

/// The outcome of trying a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
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

    fn word(self) -> &'static str {
        WORDS.iter().find(|(outcome, _)| *outcome == self).map_or(NOT_RUN, |(_, word)| word)
    }
}

/// A mutant and what became of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Entry {
    /// The mutant.
    #[serde(flatten)]
    pub key: Key,
    /// The outcome of trying it.
    pub outcome: Outcome,
    /// The test that noticed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
}

/// The outcomes of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Record {
    /// The digest of its code at the time.
    digest: u64,
    /// The mutants that no test failed for; without an outcome those that were not tried.
    rest: BTreeMap<Key, Option<Outcome>>,
}

/// All outcomes that are about the code as it is.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Results(BTreeMap<String, Record>);

impl Results {
    /// Reads what is kept in the repository at `root`, without files whose code has changed; nothing if there is none.
    ///
    /// # Errors
    ///
    /// If it is malformed.
    pub fn load(root: &Path) -> Result<Self> {
        let Ok(text) = fs::read_to_string(root.join(FILE)) else { return Ok(Self::default()) };
        let mut results = Self::parse(&text)?;
        results.0.retain(|file, record| {
            fs::read_to_string(root.join(file)).is_ok_and(|source| digest(&source) == record.digest)
        });
        Ok(results)
    }

    /// Writes all into the repository at `root`.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn save(&self, root: &Path) -> Result<()> {
        let new = root.join(FILE).with_extension("new");
        fs::write(&new, self.text())?;
        Ok(fs::rename(new, root.join(FILE))?)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut files: BTreeMap<String, Record> = BTreeMap::new();
        // Another version lists other mutants: what is not named might be one that nobody tried.
        if !text.lines().any(|line| line == version()) {
            return Ok(Self::default());
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let malformed = || format!("{FILE}: {line}");
            if let Some(named) = line.strip_prefix('\t') {
                let mut last = files.last_entry().with_context(malformed)?;
                let file = last.key().clone();
                let (key, outcome) = named_mutant(file, named).with_context(malformed)?;
                last.get_mut().rest.insert(key, outcome);
            } else {
                let (file, digest) = line.split_once(' ').with_context(malformed)?;
                let digest = u64::from_str_radix(digest, 16).with_context(malformed)?;
                files.insert(file.to_owned(), Record { digest, rest: BTreeMap::new() });
            }
        }
        Ok(Self(files))
    }

    fn text(&self) -> String {
        let mut text = format!("{HEAD}{}\n", version());
        for (file, Record { digest, rest }) in &self.0 {
            let _ = writeln!(text, "{file} {digest:016x}");
            for (Key { mutation, line, ordinal, .. }, outcome) in rest {
                let word = outcome.map_or(NOT_RUN, Outcome::word);
                let _ = writeln!(text, "\t{word}\t{ordinal}\t{mutation}\t{line}");
            }
        }
        text
    }

    /// Adds the file of `keys`, which are all of its mutants, none of them tried, unless it is there already. `digest` is that of
    /// its code.
    pub fn begin<'a>(&mut self, digest: u64, keys: impl IntoIterator<Item = &'a Key>) {
        let mut keys = keys.into_iter().peekable();
        let Some(file) = keys.peek().map(|key| key.file.clone()) else { return };
        self.0
            .entry(file)
            .or_insert_with(|| Record { digest, rest: keys.map(|key| (key.clone(), None)).collect() });
    }

    /// The outcome of a mutant, if it was tried since the code of its file last changed.
    pub fn get(&self, key: &Key) -> Option<Outcome> {
        self.0.get(&key.file)?.rest.get(key).copied().unwrap_or(Some(Outcome::Caught))
    }

    /// Notes the outcome of a mutant of a file that was begun.
    pub fn put(&mut self, key: &Key, outcome: Outcome) {
        let Some(record) = self.0.get_mut(&key.file) else { return };
        if outcome == Outcome::Caught {
            record.rest.remove(key);
        } else {
            record.rest.insert(key.clone(), Some(outcome));
        }
    }
}

fn version() -> String {
    format!("# cargo-mutants {VERSION}")
}

/// A mutant of `file` and its outcome, as in `survived⇥0⇥replace < with <= in f⇥a < b`.
fn named_mutant(file: String, text: &str) -> Option<(Key, Option<Outcome>)> {
    let mut parts = text.splitn(4, '\t');
    let word = parts.next()?;
    let ordinal = parts.next()?.parse().ok()?;
    let mutation = parts.next()?.to_owned();
    let line = parts.next()?.to_owned();
    let known = WORDS.iter().find(|(_, known)| *known == word).map(|(outcome, _)| *outcome);
    (known.is_some() || word == NOT_RUN).then_some((Key { file, mutation, line, ordinal }, known))
}

/// The FNV-1a digest of the lines of `source` that say what the program does.
pub fn digest(source: &str) -> u64 {
    let code = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(source);
    let says = |line: &&str| !line.trim_start().starts_with("//") && !line.trim().is_empty();
    let bytes = code.lines().filter(says).flat_map(|line| line.bytes().chain([b'\n']));
    bytes
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn f() -> bool {\n    a < b\n}\n";

    fn key(mutation: &str, ordinal: usize) -> Key {
        Key { file: "a.rs".into(), mutation: mutation.into(), line: "a < b || '\t' == c".into(), ordinal }
    }

    #[test]
    fn outcomes_come_back_from_the_text_and_what_is_not_named_was_noticed() {
        let keys: Vec<Key> =
            (0..WORDS.len() + 1).map(|ordinal| key("replace | with ^ in f", ordinal)).collect();
        let mut results = Results::default();
        results.begin(digest(SOURCE), &keys);
        for (key, (outcome, _)) in keys.iter().zip(WORDS) {
            results.put(key, outcome);
        }
        let read = Results::parse(&results.text()).expect("it was written");
        assert_eq!(read, results);
        let outcomes: Vec<_> = keys.iter().map(|key| read.get(key)).collect();
        let tried = WORDS.map(|(outcome, _)| Some(outcome));
        assert_eq!(outcomes, [&tried[..], &[None]].concat(), "the last was not tried");
        assert!(!results.text().contains("\tcaught"), "{}", results.text());
        assert_eq!(read.get(&Key { file: "b.rs".into(), ..keys[0].clone() }), None, "nobody began that file");
    }

    #[test]
    fn an_outcome_that_is_found_again_takes_the_place_of_the_old_one() {
        let mut results = Results::default();
        results.begin(digest(SOURCE), [&key("one", 0)]);
        results.put(&key("one", 0), Outcome::Survived);
        results.begin(digest(SOURCE), [&key("one", 0)]);
        assert_eq!(results.get(&key("one", 0)), Some(Outcome::Survived), "it is not begun again");
        results.put(&key("one", 0), Outcome::Caught);
        assert_eq!(results.get(&key("one", 0)), Some(Outcome::Caught));
    }

    #[test]
    fn only_a_change_of_the_code_makes_outcomes_void() {
        let same = "//! Says more.\n\nfn f() -> bool {\n    // Why.\n    a < b\n}\n\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        assert_eq!(digest(same), digest(SOURCE));
        assert_ne!(digest(&SOURCE.replace('<', "<=")), digest(SOURCE));
        assert_eq!(digest(""), 0xcbf2_9ce4_8422_2325, "the offset basis of FNV-1a");
        assert_eq!(digest("a"), 0x089b_dc07_b544_e7b2, "FNV-1a of the letter and the end of its line");
    }

    #[test]
    fn what_another_version_listed_does_not_count() {
        let mut results = Results::default();
        results.begin(digest(SOURCE), [&key("one", 0)]);
        let old = results.text().replace(VERSION, "1.2.3");
        assert_eq!(Results::parse(&old).expect("it is well-formed"), Results::default());
        assert!(Results::parse(&format!("{}\tlost", results.text())).is_err());
    }

    #[test]
    fn a_file_that_changed_is_forgotten_when_outcomes_are_read() {
        let root = std::env::temp_dir().join(format!("hvq-mutants-{}", std::process::id()));
        fs::create_dir_all(root.join("mutants")).expect("a folder");
        fs::write(root.join("a.rs"), SOURCE).expect("a file");
        let mut results = Results::default();
        results.begin(digest(SOURCE), [&key("one", 0)]);
        results.save(&root).expect("a file");
        assert_eq!(Results::load(&root).expect("it was written"), results);
        fs::write(root.join("a.rs"), SOURCE.replace('<', ">")).expect("a file");
        let read = Results::load(&root);
        fs::remove_dir_all(&root).expect("it is ours");
        assert_eq!(read.expect("it was written"), Results::default());
    }
}
