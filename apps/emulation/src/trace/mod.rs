//! Traces: CSV files with one row per sample, and how they are replayed.

mod delay;
mod mahimahi;
mod named;
mod rate;
mod rows;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

pub use delay::DelayTrace;
pub use named::TraceName;
pub use rate::RateTrace;

/// The continuation after the last row of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceEnd {
    /// The first row again, one sampling step after the last.
    #[default]
    Loop,
    /// The last value, for ever.
    Hold,
}

/// The origin of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceSource {
    /// One of the six that are compiled in.
    Named(TraceName),
    /// A CSV file.
    File(PathBuf),
    /// A link trace of Mahimahi, for the rate of one direction.
    Mahimahi(PathBuf),
}

impl TraceSource {
    /// Loads the round-trip or one-way times, `time_ms,rtt_ms`.
    pub fn delay(&self) -> Result<Arc<DelayTrace>, TraceError> {
        match self {
            Self::Named(name) => Ok(name.delay()),
            Self::File(path) | Self::Mahimahi(path) => self
                .read(path)
                .and_then(|text| DelayTrace::parse(&path.display().to_string(), &text).map(Arc::new)),
        }
    }

    /// Loads the rates, `time_ms,down_mbps,up_mbps`.
    pub fn rate(&self) -> Result<Arc<RateTrace>, TraceError> {
        match self {
            Self::Named(name) => Ok(name.rate()),
            Self::File(path) => self
                .read(path)
                .and_then(|text| RateTrace::parse(&path.display().to_string(), &text).map(Arc::new)),
            Self::Mahimahi(path) => self
                .read(path)
                .and_then(|text| mahimahi::parse(&path.display().to_string(), &text).map(Arc::new)),
        }
    }

    fn read(&self, path: &std::path::Path) -> Result<String, TraceError> {
        std::fs::read_to_string(path).map_err(|error| TraceError {
            file: path.display().to_string(),
            line: 0,
            problem: TraceProblem::Unreadable(error.to_string()),
        })
    }
}

impl fmt::Display for TraceSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => write!(formatter, "trace:{name}"),
            Self::File(path) => write!(formatter, "file:{}", path.display()),
            Self::Mahimahi(path) => write!(formatter, "mahimahi:{}", path.display()),
        }
    }
}

/// A trace that cannot be used, and the line that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The file.
    pub file: String,
    /// The line, counted from 1; 0 if the file as a whole is at fault.
    pub line: usize,
    /// The problem.
    pub problem: TraceProblem,
}

impl fmt::Display for TraceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(formatter, "{}: {}", self.file, self.problem),
            line => write!(formatter, "{}:{line}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for TraceError {}

/// The problem of a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceProblem {
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Unreadable(String),
    /// The first line is not the header.
    #[error("the header must be `{0}`")]
    Header(&'static str),
    /// A row has too few or too many columns.
    #[error("expected {expected} columns, found {found}")]
    Columns {
        /// The number of columns that there must be.
        expected: usize,
        /// The number of columns that there are.
        found: usize,
    },
    /// A value is not a number from 0 to 10¹⁰.
    #[error("`{0}` is not a number from 0 to 1e10")]
    Number(String),
    /// A row's time is not after the one before.
    #[error("times must increase from row to row")]
    Order,
    /// There are no rows.
    #[error("there are no rows")]
    Empty,
    /// A column of rates is zero throughout, so that nothing would ever get through.
    #[error("the column `{0}` is zero throughout")]
    NoCapacity(&'static str),
}
