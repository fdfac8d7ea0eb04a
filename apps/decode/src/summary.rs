//! A summary: the numbers of packets, bytes and frames of each kind on each path.

use crate::packet::{Packet, Problem};
use crate::text::role;
use hvq_transport::PathId;
use hvq_transport::connection::Role;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// The traffic that one end sent on one path.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SummaryRow {
    /// Packets.
    pub packets: u64,
    /// Bytes of packets.
    pub bytes: u64,
    /// Frames by kind: how many, and how many bytes.
    pub frames: BTreeMap<&'static str, (u64, u64)>,
    /// Packets that could not be opened.
    pub closed: u64,
}

/// Sums over a capture.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    rows: BTreeMap<(usize, PathId, bool), SummaryRow>,
    problems: HashMap<Problem, u64>,
}

impl Summary {
    /// Counts `packet`.
    pub fn add(&mut self, packet: &Packet) {
        if let Some(problem) = &packet.contents.problem {
            *self.problems.entry(problem.clone()).or_default() += 1;
        }
        let (Some(connection), Some(path), Some(sender)) = (packet.connection, packet.path, packet.sender)
        else {
            return;
        };
        let row = self.rows.entry((connection, path, sender == Role::Server)).or_default();
        row.packets += 1;
        row.bytes += packet.bytes as u64;
        row.closed += u64::from(packet.number.is_none());
        for frame in &packet.contents.frames {
            let (count, bytes) = row.frames.entry(frame.kind()).or_default();
            *count += 1;
            *bytes += frame.encoded_size() as u64;
        }
    }

    /// Returns the traffic of `sender` on `path` of connection number `connection`.
    pub fn row(&self, connection: usize, path: PathId, sender: Role) -> Option<&SummaryRow> {
        self.rows.get(&(connection, path, sender == Role::Server))
    }

    /// The problems that there were, the most frequent first.
    pub fn problems(&self) -> Vec<(&Problem, u64)> {
        let mut problems: Vec<_> = self.problems.iter().map(|(problem, count)| (problem, *count)).collect();
        problems.sort_by_key(|(problem, count)| (std::cmp::Reverse(*count), problem.to_string()));
        problems
    }

    /// A table for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut last = None;
        for ((connection, path, from_server), row) in &self.rows {
            if last.replace(*connection) != Some(*connection) {
                let _ = writeln!(text, "connection {connection}");
            }
            let sender = end(*from_server);
            let _ =
                write!(text, "  path {path} {sender} →  {:>8} packets {:>12} bytes", row.packets, row.bytes);
            let _ = match row.closed {
                0 => writeln!(text),
                closed => writeln!(text, "  {closed} not opened"),
            };
            for (kind, (count, bytes)) in &row.frames {
                let _ = writeln!(text, "      {kind:<26} {count:>8} {bytes:>20} bytes");
            }
        }
        text
    }

    /// One object of JSON for each row.
    pub fn json(&self) -> Vec<Value> {
        let row = |((connection, path, from_server), row): (&(usize, PathId, bool), &SummaryRow)| {
            let frames: serde_json::Map<_, _> = row
                .frames
                .iter()
                .map(|(kind, (count, bytes))| ((*kind).to_owned(), json!({ "count": count, "bytes": bytes })))
                .collect();
            json!({
                "connection": connection,
                "path": path.0,
                "from": end(*from_server),
                "packets": row.packets,
                "bytes": row.bytes,
                "not_opened": row.closed,
                "frames": frames,
            })
        };
        self.rows.iter().map(row).collect()
    }
}

fn end(from_server: bool) -> &'static str {
    role(if from_server { Role::Server } else { Role::Client })
}
