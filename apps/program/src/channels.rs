//! The statistics of emulated channels, as a table or as JSON.

use crate::duration::milliseconds;
use crate::output::bytes;
use hvq_emulation::relay::RelayStatistics;
use hvq_emulation::{DropReason, LinkStatistics, Summary};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The statistics of one emulated channel.
#[derive(Clone, Debug)]
pub struct ChannelFigures {
    /// Its name.
    pub name: String,
    /// The time for which it ran.
    pub elapsed: Duration,
    /// Its statistics.
    pub statistics: RelayStatistics,
}

/// The names of the reasons for which packets are dropped.
const REASONS: [(DropReason, &str); 5] = [
    (DropReason::Queue, "queue"),
    (DropReason::Random, "random"),
    (DropReason::Burst, "burst"),
    (DropReason::Blackout, "blackout"),
    (DropReason::Memory, "memory"),
];

/// A table for people.
pub fn table(figures: &[ChannelFigures]) -> String {
    let mut lines = vec![heading()];
    for ChannelFigures { name, elapsed, statistics } in figures {
        for (way, link) in [("up", &statistics.up), ("down", &statistics.down)] {
            lines.push(row(name, way, *elapsed, link));
        }
        let lateness = statistics.lateness;
        lines.push(format!(
            "{name:<12} {} clients, sent later than planned by {} at p99, {} refused, {} unsent",
            statistics.clients,
            milliseconds(lateness.p99),
            statistics.refused.packets,
            statistics.unsent.packets
        ));
    }
    lines.join("\n")
}

/// The line above [`row`]s.
pub fn heading() -> String {
    format!(
        "{:<12} {:<4} {:>9} {:>10} {:>9} {:>10} {:>10} {:>10}  {}",
        "channel", "way", "packets", "bytes", "rate", "delay p50", "p98", "max", "dropped"
    )
}

/// Returns a row with the statistics of a link, `way`, while it ran for `elapsed`.
pub fn row(name: &str, way: &str, elapsed: Duration, link: &LinkStatistics) -> String {
    let delays = link.delays();
    let megabits = link.left.bytes as f64 * 8e-6 / elapsed.as_secs_f64().max(1e-3);
    let dropped: Vec<String> = REASONS
        .iter()
        .map(|(reason, name)| (link.dropped(*reason).packets, name))
        .filter(|(packets, _)| *packets > 0)
        .map(|(packets, name)| format!("{packets} ({name})"))
        .collect();
    format!(
        "{name:<12} {way:<4} {:>9} {:>10} {:>6.2} Mb {:>10} {:>10} {:>10}  {}",
        link.left.packets,
        bytes(link.left.bytes),
        megabits,
        milliseconds(delays.p50),
        milliseconds(delays.p98),
        milliseconds(delays.max),
        if dropped.is_empty() { "0".to_owned() } else { dropped.join(", ") }
    )
}

/// One object for programs.
pub fn json(figures: &[ChannelFigures]) -> Value {
    let channels = figures.iter().map(|ChannelFigures { name, elapsed, statistics }| {
        json!({
            "name": name,
            "seconds": elapsed.as_secs_f64(),
            "up": link(&statistics.up),
            "down": link(&statistics.down),
            "lateness_ms": summary(&statistics.lateness),
            "clients": statistics.clients,
            "refused_packets": statistics.refused.packets,
            "unsent_packets": statistics.unsent.packets,
        })
    });
    json!({ "channels": channels.collect::<Vec<_>>() })
}

/// Returns the statistics of a link for programs.
pub fn link(link: &LinkStatistics) -> Value {
    let dropped: Map<String, Value> = REASONS
        .iter()
        .map(|(reason, name)| ((*name).to_owned(), link.dropped(*reason).packets.into()))
        .collect();
    json!({
        "entered": { "packets": link.entered.packets, "bytes": link.entered.bytes },
        "left": { "packets": link.left.packets, "bytes": link.left.bytes },
        "dropped_packets": dropped,
        "most_queued_packets": link.most_queued_packets,
        "delay_ms": summary(&link.delays()),
    })
}

/// Times in milliseconds.
pub fn summary(summary: &Summary) -> Value {
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1e3;
    json!({
        "min": milliseconds(summary.min),
        "mean": milliseconds(summary.mean),
        "p50": milliseconds(summary.p50),
        "p98": milliseconds(summary.p98),
        "p99": milliseconds(summary.p99),
        "max": milliseconds(summary.max),
    })
}
