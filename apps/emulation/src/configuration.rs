//! Files of settings in TOML: values that are written as text, and errors with their places.

use serde::{Deserialize, Deserializer, de};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// A value that is written as text, so that what is wrong with it is said at its place in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Text<T>(pub T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|error: T::Err| de::Error::custom(error))
    }
}

/// The error of a configuration, with its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{file}: {problem}")]
    Unreadable {
        /// The file.
        file: String,
        /// The error of the operating system.
        problem: String,
    },
    /// A field does not say what it should.
    #[error("{file}:{line}: {field}: {problem}")]
    Field {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The field, with the tables that it is in.
        field: String,
        /// The problem.
        problem: String,
    },
    /// Something is wrong or missing that no line of a file says.
    #[error("{0}")]
    Missing(String),
}

impl ConfigError {
    /// Returns the error for `problem` at `span` of `text`, which is that of `file`; without a span, at its first line.
    pub fn at(file: &str, text: &str, span: Option<Range<usize>>, problem: impl Into<String>) -> Self {
        let start = span.map_or(0, |span| span.start).min(text.len());
        let line = text.get(..start).unwrap_or_default().matches('\n').count() + 1;
        // The parser tells the line too, in several lines.
        let problem = problem.into().split_whitespace().collect::<Vec<_>>().join(" ");
        Self::Field { file: file.to_owned(), line, field: field(text, line), problem }
    }

    /// Returns the error for `problem` in the field `name` of `text`, which is that of `file`: at its first line if it is not there.
    pub fn in_field(file: &str, text: &str, name: &str, problem: String) -> Self {
        let line = (1..=text.lines().count()).find(|line| field(text, *line) == name).unwrap_or(1);
        Self::Field { file: file.to_owned(), line, field: name.to_owned(), problem }
    }
}

/// The field that `line` of `text` belongs to: the last key up to there, in the last table up to there.
fn field(text: &str, line: usize) -> String {
    let (mut table, mut key) = ("", "");
    for line in text.lines().take(line) {
        let trimmed = line.trim();
        if line.starts_with('[') {
            (table, key) = (trimmed.split(']').next().unwrap_or_default().trim_matches(['[', ' ']), "");
        } else if let Some((name, _)) = trimmed.split_once('=')
            && trimmed.starts_with(|first: char| first.is_ascii_alphabetic())
        {
            key = name.trim();
        }
    }
    let path = [table, key].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".");
    if path.is_empty() { "the file".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_named_with_its_table() {
        let text = "name = 'a'\n\n[page]\npages = [\n  'p1',\n  'p2',\n]\n[[goals]]\nnumber = 1\n";
        let fields = [(1, "name"), (3, "page"), (5, "page.pages"), (8, "goals"), (9, "goals.number")];
        for (line, name) in fields {
            assert_eq!(field(text, line), name, "line {line}");
        }
        assert_eq!(field("", 1), "the file");
    }

    #[test]
    fn an_error_in_a_field_is_at_the_line_of_that_field() {
        let text = "name = 'a'\n[page]\nrate = 1\n";
        let said = |name| ConfigError::in_field("a.toml", text, name, "no".to_owned()).to_string();
        assert_eq!(said("page.rate"), "a.toml:3: page.rate: no");
        assert_eq!(said("page.delay"), "a.toml:1: page.delay: no");
    }
}
