//! The mutants of a crate, as cargo-mutants enumerates them.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The version of cargo-mutants whose names the triage file uses; `scripts/mutants.sh` installs it.
pub const VERSION: &str = "25.3.1";

/// The names that stay the same when lines move.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Key {
    /// The file, from the root of the repository.
    pub file: String,
    /// The mutation as cargo-mutants names it, without its place.
    pub mutation: String,
    /// The line of the source that the mutation changes, without indentation.
    pub line: String,
    /// The number among equal mutations of equal lines of the file, from 0.
    #[serde(default)]
    pub ordinal: usize,
}

/// The kind of a mutation, which says how its switch looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Genre {
    /// A function returns a value at once.
    FnValue,
    /// Another operator between two operands.
    BinaryOperator,
    /// No operator before an operand.
    UnaryOperator,
    /// An arm of a match is never taken.
    MatchArm,
    /// A guard of an arm is constant.
    MatchArmGuard,
    /// Anything that this version of the program does not know.
    #[serde(other)]
    Other,
}

/// One small fault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mutant {
    /// The number of its switch.
    pub number: u32,
    /// The name that files have for it.
    pub key: Key,
    /// The kind of the mutation.
    pub genre: Genre,
    /// The first byte of what is replaced, in the file.
    pub start: usize,
    /// The text that replaces it.
    pub replacement: String,
}

#[derive(Deserialize)]
struct Listed {
    file: String,
    genre: Genre,
    replacement: String,
    span: Span,
}

#[derive(Deserialize)]
struct Span {
    start: Place,
}

#[derive(Deserialize)]
struct Place {
    line: usize,
    column: usize,
}

/// All mutants of `package` in the repository at `root`, in the order of cargo-mutants.
///
/// # Errors
///
/// If cargo-mutants is not there, has another version, or lists what this program cannot read.
pub fn list(root: &Path, package: &str) -> Result<Vec<Mutant>> {
    let version = ask(root, &["--version"])?;
    ensure!(version.trim().ends_with(VERSION), "cargo-mutants {VERSION} is needed, not {version}");
    let listed: Vec<Listed> = serde_json::from_str(&ask(root, &["--list", "--json", "--package", package])?)?;
    let names = ask(root, &["--list", "--line-col=false", "--package", package])?;
    let names: Vec<&str> = names.lines().collect();
    ensure!(names.len() == listed.len(), "{} names for {} mutants", names.len(), listed.len());
    let mut sources = BTreeMap::new();
    let mut seen = BTreeMap::new();
    let mut mutants = Vec::new();
    for (number, (listed, name)) in listed.into_iter().zip(names).enumerate() {
        if !sources.contains_key(&listed.file) {
            sources.insert(listed.file.clone(), fs::read_to_string(root.join(&listed.file))?);
        }
        let prefix = format!("{}: ", listed.file);
        let mutation = name.strip_prefix(&prefix).with_context(|| format!("{name} is not in {prefix}"))?;
        let (start, line) = place(&sources[&listed.file], &listed.span.start)?;
        let mut key = Key { file: listed.file, mutation: mutation.into(), line, ordinal: 0 };
        let count = seen.entry(key.clone()).or_insert(0_usize);
        key.ordinal = *count;
        *count += 1;
        let number = u32::try_from(number)?;
        mutants.push(Mutant { number, key, genre: listed.genre, start, replacement: listed.replacement });
    }
    Ok(mutants)
}

fn ask(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("cargo").arg("mutants").args(arguments).current_dir(root).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo mutants {}: {said}", arguments.join(" "));
    Ok(String::from_utf8(output.stdout)?)
}

/// The byte at a line and a column, which count characters from 1, and the text of the line.
fn place(source: &str, place: &Place) -> Result<(usize, String)> {
    let line = source.split_inclusive('\n').nth(place.line - 1).context("no such line")?;
    let before: usize = source.split_inclusive('\n').take(place.line - 1).map(str::len).sum();
    let column: usize = line.chars().take(place.column - 1).map(char::len_utf8).sum();
    Ok((before + column, line.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_characters_and_not_bytes() {
        let source = "one\n    \u{e9} == x\n";
        let found = place(source, &Place { line: 2, column: 7 }).expect("it is there");
        assert_eq!(found, (11, "\u{e9} == x".to_owned()));
        assert!(source[found.0..].starts_with("=="));
    }
}
