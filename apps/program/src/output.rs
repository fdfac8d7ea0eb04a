//! The program's output, and its verbosity.

use crate::failure::{Exit, Failure, OrFail};
use crate::logging::Limit;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// The verbosity on standard error.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Console {
    /// Errors only.
    Quiet,
    /// Messages that a person wants to know.
    Normal,
    /// Everything worth knowing.
    Verbose,
}

impl Console {
    /// Says a line that a person wants to know.
    pub fn say(self, line: impl AsRef<str>) {
        if self >= Self::Normal {
            eprintln!("{}", line.as_ref());
        }
    }

    /// Says a line that is told with `-v` only.
    pub fn detail(self, line: impl FnOnce() -> String) {
        if self >= Self::Verbose {
            eprintln!("{}", line());
        }
    }
}

/// The format of results on standard output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultFormat {
    /// Text for people.
    Text,
    /// JSON for programs, one object a line.
    Json,
}

/// Writes a line to standard output, at once.
pub fn print(line: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    let written = writeln!(output, "{line}").and_then(|()| output.flush());
    written.map_err(unwritten)
}

/// Returns the failure for a standard output that takes no more.
pub fn unwritten(error: io::Error) -> Failure {
    Failure::new(Exit::Runtime, format!("cannot write to standard output: {error}"))
}

/// Fails if something stands twice among the `values` of `flag`: it would count twice.
pub fn check_distinct<T: PartialEq + Display>(flag: &str, values: &[T]) -> Result<(), Failure> {
    let again = values.iter().enumerate().find(|(index, value)| values[..*index].contains(value));
    match again {
        Some((_, value)) => Err(Failure::new(Exit::Usage, format!("{flag}: {value} stands there twice"))),
        None => Ok(()),
    }
}

/// Fails unless the file at `path` can be written, which is better known before there is something to write. A file
/// that exists stays as it is.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let there = path.metadata().ok();
    // What reads from a pipe would take this for the end.
    if there.as_ref().is_some_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    let opened = File::options().append(true).create(true).open(path);
    opened.or_fail(Exit::Usage, || format!("cannot write {}", path.display()))?;
    if there.is_none() {
        // Nothing is left behind by runs that are stopped before they write.
        let _removed = std::fs::remove_file(path);
    }
    Ok(())
}

/// Starts the log on standard error, with what `filter` says, or else the environment variable RUST_LOG, or else what is lost:
/// lines of logs, key logs and sessions that cannot be written.
pub fn start_log(filter: Option<&str>, console: Console) -> Result<(), Failure> {
    let unasked = if console == Console::Quiet { "hvq=error" } else { "hvq=warn" };
    let text = match filter {
        Some(filter) => filter.to_owned(),
        None => std::env::var("RUST_LOG").unwrap_or_else(|_| unasked.to_owned()),
    };
    // Nothing here has spans, by which another filter could choose with regular expressions.
    let filter = text.parse::<Targets>().or_fail(Exit::Usage, || format!("{text:?} is no log filter"))?;
    let colours = colours(io::stderr().is_terminal(), std::env::var_os("NO_COLOR").as_deref());
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(colours);
    // The limit counts what the filter lets through.
    tracing_subscriber::registry().with(lines.with_filter(Limit::default()).with_filter(filter)).init();
    Ok(())
}

/// Returns true if the log may have colours: on a terminal, unless the environment has a NO_COLOR that is not empty.
fn colours(terminal: bool, no_color: Option<&OsStr>) -> bool {
    terminal && no_color.is_none_or(OsStr::is_empty)
}

/// A number of bytes for people.
pub fn bytes(count: u64) -> String {
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
    fn a_file_is_tried_without_changing_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        check_writable(&file).unwrap();
        assert!(!file.exists());
        std::fs::write(&file, "precious").unwrap();
        check_writable(&file).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
        for path in [folder.path().to_owned(), file.join("below"), folder.path().join("no/file")] {
            let failure = check_writable(&path).unwrap_err();
            assert_eq!(failure.exit(), Exit::Usage);
            assert!(failure.line().contains(&*path.to_string_lossy()), "{}", failure.line());
        }
    }

    #[test]
    fn what_stands_twice_is_named() {
        check_distinct("--schemes", &["a", "b"]).unwrap();
        let failure = check_distinct("--schemes", &["a", "b", "a"]).unwrap_err();
        assert_eq!(
            (failure.exit(), failure.line().as_str()),
            (Exit::Usage, "--schemes: a stands there twice")
        );
    }

    #[test]
    fn colours_are_for_terminals_that_want_them() {
        assert!(colours(true, None) && colours(true, Some(OsStr::new(""))));
        assert!(!colours(true, Some(OsStr::new("1"))) && !colours(false, None));
    }

    #[test]
    fn bytes_are_said_in_the_unit_that_fits() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1_500), "1.5 kB");
        assert_eq!(bytes(2_340_000), "2.34 MB");
        assert_eq!(bytes(7_000_000_000), "7.00 GB");
    }
}
