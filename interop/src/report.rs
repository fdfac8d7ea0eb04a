//! The exchanges, as a table and as JSON.

use crate::rows::Row;
use anyhow::Context;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// The exchange of a row.
#[derive(Debug, Default, Serialize)]
pub struct Exchange {
    /// Bytes of content that arrived, both directions together.
    pub bytes: u64,
    /// The paths that hvq used; empty if the row does not tell of them.
    pub paths: Vec<PathUse>,
    /// The peer and its version.
    pub peer: String,
    /// A remark.
    pub note: String,
}

/// Bytes on one path as hvq counts them: UDP payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PathUse {
    /// The path's ID (RFC 10069 §3).
    pub id: u32,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

/// The result of a row.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// The row's name.
    pub row: &'static str,
    /// The feature that was exercised.
    pub what: &'static str,
    /// The version of hvq.
    pub hvq: String,
    /// Its duration, in seconds.
    pub seconds: f64,
    /// The exchange, unless the row failed.
    pub exchange: Option<Exchange>,
    /// The reason for which the row failed.
    pub failure: Option<String>,
}

impl Entry {
    /// The result of `row`, which took `elapsed`.
    pub fn new(row: Row, result: anyhow::Result<Exchange>, elapsed: Duration) -> Self {
        let (exchange, failure) = match result {
            Ok(exchange) => (Some(exchange), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let hvq = format!("hvq {}", locked_version("hvq"));
        Self { row: row.name(), what: row.what(), hvq, seconds: elapsed.as_secs_f64(), exchange, failure }
    }

    fn cells(&self) -> [String; COLUMNS] {
        let verdict = if self.failure.is_some() { "**FAIL**" } else { "ok" };
        let (peer, moved) = match &self.exchange {
            Some(exchange) => (exchange.peer.clone(), exchange.moved()),
            None => (String::new(), String::new()),
        };
        let time = format!("{:.1} s", self.seconds);
        [self.row.to_owned(), peer, self.what.to_owned(), moved, time, verdict.to_owned()]
    }
}

impl Exchange {
    /// Returns the bytes on each path, or the remark.
    fn moved(&self) -> String {
        let one = |path: &PathUse| {
            format!("path {}: {} + {}", path.id, megabytes(path.sent), megabytes(path.received))
        };
        let mut parts: Vec<String> = self.paths.iter().map(one).collect();
        if !self.note.is_empty() {
            parts.push(self.note.clone());
        }
        parts.join(", ")
    }
}

const COLUMNS: usize = 6;
const HEAD: [&str; COLUMNS] =
    ["row", "peer", "exercised", "UDP bytes of hvq by path, sent + received", "time", "result"];

/// The table of all rows in Markdown, and below it why rows failed.
pub fn table(entries: &[Entry]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(entries.iter().map(Entry::cells));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        text.push_str(&line(row, &widths));
        if index == 0 {
            text.push_str(&line(&widths.map(|width| "-".repeat(width)), &widths));
        }
    }
    for entry in entries {
        if let Some(failure) = &entry.failure {
            writeln!(text, "\n{}: {failure}", entry.row).expect("a string takes all");
        }
    }
    text
}

fn line(cells: &[String; COLUMNS], widths: &[usize; COLUMNS]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}", width = *width));
    format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// The marks before and behind the table in a file that shows it.
const MARKS: [&str; 2] = ["<!-- interop: begin -->\n", "<!-- interop: end -->"];

/// `text` with `table` between the marks.
///
/// # Errors
/// The marks are not there.
pub fn with_table(text: &str, table: &str) -> anyhow::Result<String> {
    let [begin, end] = MARKS;
    let (before, rest) = text.split_once(begin).context("there is no mark where the table begins")?;
    let (_, after) = rest.split_once(end).context("there is no mark where the table ends")?;
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

/// The version of `package` that this program was built with, from its lock file.
pub fn locked_version(package: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let head = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != head).skip(1);
    let version = lines.next().and_then(|line| line.strip_prefix("version = \""));
    version.map_or("?", |version| version.trim_end_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_row_says_why_below_the_table() {
        let paths = vec![PathUse { id: 0, sent: 1_000_000, received: 2_500_000 }];
        let exchange =
            Exchange { bytes: 3_000_000, paths, peer: "other 1.0".to_owned(), ..Exchange::default() };
        let good = Entry::new(Row::Nginx, Ok(exchange), Duration::from_millis(1500));
        let bad = Entry::new(Row::H3spec, Err(anyhow::anyhow!("it broke")), Duration::ZERO);
        let text = table(&[good, bad]);
        assert!(text.contains("path 0: 1.0 MB + 2.5 MB") && text.contains("1.5 s"), "{text}");
        assert!(text.contains("FAIL") && text.ends_with("\nh3spec: it broke\n"), "{text}");
    }

    #[test]
    fn a_table_takes_the_place_of_the_one_before() {
        let file = "# a\n<!-- interop: begin -->\nold\n<!-- interop: end -->\nb\n";
        let replaced = with_table(file, "new\n").unwrap();
        assert_eq!(replaced, "# a\n<!-- interop: begin -->\nnew\n<!-- interop: end -->\nb\n");
        assert!(with_table("nothing", "new").is_err());
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        assert_eq!(locked_version("noq"), "1.4.0");
        assert_eq!(locked_version("nothing-of-that-name"), "?");
    }
}
