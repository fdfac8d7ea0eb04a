//! Errors that keep an experiment from running.

use std::io;

/// The reason for which an experiment cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The system fails.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
    /// A program is not there.
    #[error("{program} is not there: {remedy}")]
    Missing {
        /// The program.
        program: &'static str,
        /// A way to get it.
        remedy: &'static str,
    },
    /// A program does not do what it should.
    #[error("{program}: {says}")]
    Program {
        /// The program.
        program: &'static str,
        /// The program's error message.
        says: String,
    },
}

/// Names what was tried when the system failed.
pub(crate) fn cannot(what: &'static str) -> impl FnOnce(io::Error) -> LiveError {
    move |error| LiveError::System(what, error)
}
