//! A report on a capture: a line for each packet, or a summary, as text or JSON.

use crate::choice::Choice;
use crate::packet::Packet;
use crate::summary::Summary;
use crate::text::{describe, json};
use std::io::{self, Write};
use std::time::Duration;

/// The extent of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// A line for each packet.
    Packets,
    /// Sums for each path.
    Summary,
}

/// The format of a report's lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lines {
    /// Text for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The state of whoever reads a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reader {
    /// It takes more.
    Reads,
    /// It has closed the pipe, as `head` does.
    HasEnough,
}

/// A report that is written while a capture is decoded.
#[derive(Debug)]
pub struct Report<W> {
    choice: Choice,
    extent: Extent,
    lines: Lines,
    output: W,
    summary: Summary,
    /// Packets that were asked for.
    shown: u64,
    /// The time at which the first packet was captured.
    start: Option<Duration>,
}

impl<W: Write> Report<W> {
    /// A report on what `choice` chooses, to `output`.
    pub fn new(choice: Choice, extent: Extent, lines: Lines, output: W) -> Self {
        Self { choice, extent, lines, output, summary: Summary::default(), shown: 0, start: None }
    }

    /// Takes note of a packet, and writes its line if it was asked for.
    ///
    /// # Errors
    /// The output takes no more, though somebody reads it.
    pub fn take(&mut self, packet: Packet) -> io::Result<Reader> {
        let start = *self.start.get_or_insert(packet.at);
        let Some(packet) = self.choice.choose(packet) else { return Ok(Reader::Reads) };
        self.summary.add(&packet);
        self.shown += 1;
        match (self.extent, self.lines) {
            (Extent::Summary, _) => Ok(Reader::Reads),
            (Extent::Packets, Lines::Json) => self.write(&json(&packet).to_string()),
            (Extent::Packets, Lines::Text) => self.write(&describe(&packet, start)),
        }
    }

    /// Writes the summary, if it was asked for, and the rest of the lines.
    ///
    /// # Errors
    /// The output takes no more, though somebody reads it.
    pub fn finish(&mut self) -> io::Result<()> {
        if self.extent == Extent::Summary {
            let lines: Vec<String> = match self.lines {
                Lines::Json => self.summary.json().iter().map(ToString::to_string).collect(),
                Lines::Text => self.summary.text().lines().map(str::to_owned).collect(),
            };
            for line in lines {
                if self.write(&line)? == Reader::HasEnough {
                    return Ok(());
                }
            }
        }
        match self.output.flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    /// The number of packets that were asked for.
    pub fn shown(&self) -> u64 {
        self.shown
    }

    /// Returns true if there was any packet of QUIC.
    pub fn has_seen_packets(&self) -> bool {
        self.start.is_some()
    }

    /// The sums over the packets that were asked for.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    fn write(&mut self, line: &str) -> io::Result<Reader> {
        match writeln!(self.output, "{line}") {
            Ok(()) => Ok(Reader::Reads),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Reader::HasEnough),
            Err(error) => Err(error),
        }
    }
}
