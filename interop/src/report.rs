//! What was exchanged, as a table and as JSON.

use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// What a row exchanged.
#[derive(Debug, Serialize)]
pub struct Exchange {
    /// Bytes of content that arrived, both directions together.
    pub bytes: u64,
    /// The paths that hvq used; empty if the row does not see them.
    pub paths: Vec<PathUse>,
    /// The peer and its version.
    pub peer: String,
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

/// How a row ended.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// The row's number.
    pub row: u8,
    /// Who did what.
    pub what: &'static str,
    /// The version of hvq.
    pub hvq: String,
    /// How long it took.
    pub seconds: f64,
    /// What was exchanged, unless the row failed.
    pub exchange: Option<Exchange>,
    /// Why the row failed.
    pub failure: Option<String>,
}

impl Entry {
    /// The result of a row that took `elapsed`.
    pub fn new(row: u8, what: &'static str, result: anyhow::Result<Exchange>, elapsed: Duration) -> Self {
        let (exchange, failure) = match result {
            Ok(exchange) => (Some(exchange), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let hvq = format!("hvq {}", locked_version("hvq"));
        Self { row, what, hvq, seconds: elapsed.as_secs_f64(), exchange, failure }
    }

    fn cells(&self) -> [String; 7] {
        let verdict = if self.failure.is_some() { "FAIL" } else { "ok" };
        let (bytes, paths, peer) = match &self.exchange {
            Some(exchange) => (megabytes(exchange.bytes), paths(&exchange.paths), exchange.peer.clone()),
            None => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
        };
        let versions = format!("{} / {peer}", self.hvq);
        let time = format!("{:.2} s", self.seconds);
        [self.row.to_string(), self.what.to_owned(), bytes, paths, versions, time, verdict.to_owned()]
    }
}

const HEAD: [&str; 7] =
    ["row", "exchange", "content", "UDP bytes of hvq by path (sent+received)", "versions", "time", "result"];

/// The table of all rows, and below it why rows failed.
pub fn table(entries: &[Entry]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(entries.iter().map(Entry::cells));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        text.push_str(line(row, &widths).trim_end());
        text.push('\n');
        if index == 0 {
            text.push_str(&line(&widths.map(|width| "-".repeat(width)), &widths));
            text.push('\n');
        }
    }
    for entry in entries {
        if let Some(failure) = &entry.failure {
            writeln!(text, "row {}: {failure}", entry.row).expect("a string takes all");
        }
    }
    text
}

fn line(cells: &[String; 7], widths: &[usize; 7]) -> String {
    let padded = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}", width = *width));
    padded.collect::<Vec<_>>().join("  ")
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn paths(paths: &[PathUse]) -> String {
    if paths.is_empty() {
        return "not told".to_owned();
    }
    let one = |path: &PathUse| format!("{}: {}+{}", path.id, megabytes(path.sent), megabytes(path.received));
    paths.iter().map(one).collect::<Vec<_>>().join(", ")
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
        let exchange = Exchange { bytes: 3_000_000, paths, peer: "other 1.0".to_owned() };
        let good = Entry::new(1, "a", Ok(exchange), Duration::from_millis(1500));
        let bad = Entry::new(2, "b", Err(anyhow::anyhow!("it broke")), Duration::ZERO);
        let text = table(&[good, bad]);
        assert!(text.contains("0: 1.0 MB+2.5 MB") && text.contains("1.50 s  ok"), "{text}");
        assert!(text.contains("FAIL") && text.ends_with("row 2: it broke\n"), "{text}");
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        assert_eq!(locked_version("noq"), "1.4.0");
        assert_eq!(locked_version("nothing-of-that-name"), "?");
    }
}
