//! Errors in the file of an experiment.

use super::check::Place;
use std::ops::Range;

/// An error in the file of an experiment, with its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DefinitionError {
    /// The file cannot be read.
    #[error("{file}: {problem}")]
    Unreadable {
        /// The file.
        file: String,
        /// The error of the operating system.
        problem: String,
    },
    /// The text does not say what it should.
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
}

impl DefinitionError {
    /// `problem` at `span` of `text`, which is that of `file`.
    pub(super) fn at(file: &str, text: &str, span: Option<Range<usize>>, problem: impl Into<String>) -> Self {
        let start = span.map_or(0, |span| span.start).min(text.len());
        let before = text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let problem = problem.into();
        Self::Field { file: file.to_owned(), line, field: field(text, line), problem }
    }

    /// `problem` in `place` of `text`, which is that of `file`.
    pub(super) fn in_place(file: &str, text: &str, place: &Place, problem: String) -> Self {
        match place {
            Place::Span(span) => Self::at(file, text, Some(span.clone()), problem),
            Place::Field(name) => {
                let lines = 1..=text.lines().count();
                let line = lines.into_iter().find(|line| field(text, *line) == *name).unwrap_or(1);
                Self::Field { file: file.to_owned(), line, field: (*name).to_owned(), problem }
            }
        }
    }
}

/// The field that `line` of `text` belongs to: the last key up to there, in the last table up to there.
fn field(text: &str, line: usize) -> String {
    let (mut table, mut key) = ("", "");
    for line in text.lines().take(line) {
        let trimmed = line.trim();
        if let Some(name) = trimmed.strip_prefix('[').filter(|_| line.starts_with('[')) {
            (table, key) = (name.trim_matches(['[', ']', ' ']), "");
        } else if let Some((name, _)) = trimmed.split_once('=')
            && line.starts_with(|first: char| first.is_ascii_alphabetic())
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
}
