//! What the program says, and how loudly.

use crate::arguments::Arguments;
use crate::failure::{Exit, Failure, OrFail};
use std::io::{self, Write};
use tracing_subscriber::EnvFilter;

/// How much is said on standard error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Voice {
    /// Errors only.
    Quiet,
    /// What a person wants to know.
    Normal,
    /// Everything worth knowing.
    Verbose,
}

impl Voice {
    /// As the arguments ask.
    pub(crate) fn of(arguments: &Arguments) -> Self {
        match (arguments.quiet, arguments.verbose) {
            (true, _) => Self::Quiet,
            (false, 0) => Self::Normal,
            (false, _) => Self::Verbose,
        }
    }

    /// Says a line that a person wants to know.
    pub(crate) fn say(self, line: impl AsRef<str>) {
        if self >= Self::Normal {
            eprintln!("{}", line.as_ref());
        }
    }

    /// Says a line that is told with `-v` only.
    pub(crate) fn detail(self, line: impl FnOnce() -> String) {
        if self >= Self::Verbose {
            eprintln!("{}", line());
        }
    }
}

/// Writes a line to standard output, at once.
pub(crate) fn print(line: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    let written = writeln!(output, "{line}").and_then(|()| output.flush());
    written.or_fail(Exit::Runtime, || "cannot write to standard output".to_owned())
}

/// Starts the log on standard error, with what `filter` says, or else the environment variable RUST_LOG.
pub(crate) fn start_log(filter: Option<&str>) -> Result<(), Failure> {
    let text = match filter {
        Some(filter) => filter.to_owned(),
        None => std::env::var("RUST_LOG").unwrap_or_else(|_| "off".to_owned()),
    };
    let filter = EnvFilter::try_new(&text).or_fail(Exit::Usage, || format!("{text:?} is no log filter"))?;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).init();
    Ok(())
}

/// A number of bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} MB", count as f64 / 1e6),
        _ => format!("{:.2} GB", count as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_said_in_the_unit_that_fits() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_500), "1.5 kB");
        assert_eq!(bytes(2_340_000), "2.34 MB");
        assert_eq!(bytes(7_000_000_000), "7.00 GB");
    }
}
