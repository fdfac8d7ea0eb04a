//! The times at which something arrived, and the lines that tell of them.

use anyhow::Result;
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;

/// Times on a line at most.
const TOGETHER: usize = 1_000;

/// A line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Said<'a> {
    /// The server listens.
    Ready,
    /// Each load had an answer.
    Begun,
    /// Something of a load arrived at these times.
    Arrived { load: Load, at: &'a [u64] },
    /// The peer acknowledged something that went over the link at these times.
    Acknowledged { link: &'a str, at: &'a [u64] },
    /// Bytes of the download, and requests that ended without an answer.
    Played { delivered: u64, failures: u64 },
    /// Bytes that were sent for the download.
    Served { sent: u64 },
}

/// A load.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Requests, each after the answer to the one before.
    Requests,
    /// A download without end.
    Download,
    /// Datagrams, which come back.
    Datagrams,
}

/// Prints a line.
pub fn say(said: &Said<'_>) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{}", serde_json::to_string(said)?)?;
    Ok(output.flush()?)
}

/// CLOCK_MONOTONIC in nanoseconds.
fn now() -> u64 {
    // Linux has had the clock for ever, and it is not negative.
    let reading = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(nix::sys::time::TimeSpec::new(0, 0));
    u64::try_from(reading.tv_sec()).unwrap_or_default() * 1_000_000_000
        + u64::try_from(reading.tv_nsec()).unwrap_or_default()
}

/// The times of a client. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Record(Rc<RefCell<Times>>);

#[derive(Debug, Default)]
struct Times {
    loads: BTreeMap<Load, Vec<u64>>,
    links: BTreeMap<String, Vec<u64>>,
    delivered: u64,
    failures: u64,
}

impl Record {
    /// Something of `load` arrived now.
    pub fn arrived(&self, load: Load) {
        self.0.borrow_mut().loads.entry(load).or_default().push(now());
    }

    /// The peer acknowledged now something that went over `link`.
    pub fn acknowledged(&self, link: &str) {
        self.0.borrow_mut().links.entry(link.to_owned()).or_default().push(now());
    }

    /// Notes `bytes` of the download, which arrived now.
    pub fn delivered(&self, bytes: usize) {
        self.arrived(Load::Download);
        self.0.borrow_mut().delivered += bytes as u64;
    }

    /// A request ended without an answer.
    pub fn failed(&self) {
        self.0.borrow_mut().failures += 1;
    }

    /// Returns true if each load had an answer.
    pub fn has_begun(&self) -> bool {
        self.0.borrow().loads.len() == [Load::Requests, Load::Download, Load::Datagrams].len()
    }

    /// Prints everything.
    pub fn tell(&self) -> Result<()> {
        self.lines(say)
    }

    fn lines(&self, mut say: impl FnMut(&Said<'_>) -> Result<()>) -> Result<()> {
        let times = self.0.borrow();
        for (load, at) in &times.loads {
            at.chunks(TOGETHER).try_for_each(|at| say(&Said::Arrived { load: *load, at }))?;
        }
        for (link, at) in &times.links {
            at.chunks(TOGETHER).try_for_each(|at| say(&Said::Acknowledged { link, at }))?;
        }
        say(&Said::Played { delivered: times.delivered, failures: times.failures })
    }
}

/// A number of bytes. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Counter(Rc<Cell<u64>>);

impl Counter {
    /// The number.
    pub fn get(&self) -> u64 {
        self.0.get()
    }

    /// Makes it `bytes`.
    pub fn set(&self, bytes: u64) {
        self.0.set(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_told_in_lines_that_the_lab_reads() {
        let record = Record::default();
        let before = now();
        record.arrived(Load::Requests);
        record.acknowledged("wifi");
        assert!(!record.has_begun());
        record.arrived(Load::Datagrams);
        (0..=TOGETHER).for_each(|_| record.delivered(2));
        record.failed();
        assert!(record.has_begun());
        let mut lines = Vec::new();
        let told = record.lines(|said| {
            lines.push(serde_json::to_value(said)?);
            Ok(())
        });
        assert!(told.is_ok());
        let heads: Vec<_> =
            lines.iter().map(|line| (line["event"].as_str(), line["load"].as_str())).collect();
        let arrived = |load| (Some("arrived"), Some(load));
        let downloads = [arrived("download"); 2];
        assert_eq!(heads[0], arrived("requests"));
        assert_eq!(heads[1..3], downloads, "a line has a thousand times at most");
        assert_eq!(heads[3..], [arrived("datagrams"), (Some("acknowledged"), None), (Some("played"), None)]);
        let at = lines[0]["at"][0].as_u64();
        assert!(at.is_some_and(|at| (before..=now()).contains(&at)), "{lines:?}");
        assert_eq!(lines[4]["link"], "wifi");
        let played = "{\"event\":\"played\",\"delivered\":2002,\"failures\":1}";
        assert_eq!(lines[5], serde_json::from_str::<serde_json::Value>(played).unwrap_or_default());
    }
}
