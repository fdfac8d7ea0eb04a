//! Errors of page descriptions, and of a caller's reports to the loader.

use crate::pages::ObjectId;

/// The reason for which a page description cannot be used; each says where.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// The file, as it was given.
        file: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text is not JSON.
    #[error("{file}:{}: not valid JSON: {source}", source.line())]
    Syntax {
        /// The file, as it was given.
        file: String,
        /// The error of the JSON parser, with line and column.
        source: serde_json::Error,
    },
    /// A field is missing or makes no sense.
    #[error("{file}:{line}: {field}: {problem}")]
    Field {
        /// The file, as it was given.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The field, as in `objects[3].size_bytes`.
        field: String,
        /// The value that was expected, and the one that was found.
        problem: String,
    },
}

/// The reason for which the loader does not accept a caller's report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadError {
    /// The page has no such object.
    #[error("the page has no object {0}")]
    Unknown(ObjectId),
    /// Bytes of an object that was not requested yet.
    #[error("object {0} was not requested yet")]
    NotRequested(ObjectId),
}
