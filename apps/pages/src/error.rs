//! What can be wrong with a page description, and with what a caller tells the loader.

use crate::ObjectId;

/// Why a page description cannot be used; each says where.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// The file, as it was given.
        file: String,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// The text is not JSON.
    #[error("{file}:{}: not valid JSON: {source}", source.line())]
    Syntax {
        /// The file, as it was given.
        file: String,
        /// What the JSON parser says, with line and column.
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
        /// What was expected and what was found.
        problem: String,
    },
}

/// Why the loader does not accept what it was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadError {
    /// The page has no such object.
    #[error("the page has no object {0}")]
    Unknown(ObjectId),
    /// Bytes of an object that was not requested yet.
    #[error("object {0} was not requested yet")]
    NotRequested(ObjectId),
}
