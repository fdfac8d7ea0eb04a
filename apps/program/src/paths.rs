//! Figures of a connection's paths and frames, for people and programs.

use hvq::{Connection, PathInfo, PathOptions};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of one path.
#[derive(Clone, Debug, Serialize)]
pub struct PathFigures {
    /// The name of the path, or its number.
    pub name: String,
    /// Its ID.
    pub id: u32,
    /// The local address.
    pub local: String,
    /// The remote address.
    pub remote: String,
    /// `validating`, `validated` or `silent`.
    pub state: &'static str,
    /// The smoothed round-trip time in milliseconds.
    pub rtt_ms: f64,
    /// The smallest round-trip time in milliseconds.
    pub min_rtt_ms: f64,
    /// Bytes of UDP payload sent.
    pub bytes_sent: u64,
    /// Bytes of UDP payload received.
    pub bytes_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// The congestion controller.
    pub congestion: &'static str,
    /// The congestion window in bytes.
    pub window: usize,
    /// Frames by kind.
    pub frames: BTreeMap<&'static str, FrameFigures>,
}

/// Frames of one kind on one path.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct FrameFigures {
    /// Frames sent.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames received.
    pub received: u64,
}

/// The figures of all open paths, those of the end if the connection ended.
pub fn figures(connection: &Connection) -> Vec<PathFigures> {
    let stats = connection.stats();
    connection.paths().into_iter().map(|path| figures_of(path, &stats.frames)).collect()
}

fn figures_of(path: PathInfo, frames: &[hvq::stats::FrameCounter]) -> PathFigures {
    let counters = path.stats.counters;
    let state = state_name(path.state);
    let frames = frames.iter().filter(|frame| frame.path == path.id).map(|frame| {
        (
            frame.kind,
            FrameFigures { sent: frame.sent, sent_bytes: frame.sent_bytes, received: frame.received },
        )
    });
    PathFigures {
        name: path.name.unwrap_or_else(|| path.id.to_string()),
        id: path.id.0,
        local: path.stats.tuple.local.to_string(),
        remote: path.stats.tuple.remote.to_string(),
        state,
        rtt_ms: path.stats.rtt.as_secs_f64() * 1e3,
        min_rtt_ms: path.stats.min_rtt.as_secs_f64() * 1e3,
        bytes_sent: counters.bytes_sent,
        bytes_received: counters.bytes_received,
        packets_lost: counters.packets_lost,
        congestion: path.stats.controller,
        window: path.stats.window,
        frames: frames.collect(),
    }
}

/// The name of a path's state in output for programs.
pub(crate) const fn state_name(state: hvq::PathState) -> &'static str {
    match state {
        hvq::PathState::Validating => "validating",
        hvq::PathState::Validated => "validated",
        hvq::PathState::Silent => "silent",
    }
}

/// One line about where a path is to go.
pub fn destination(path: &PathOptions) -> String {
    let remote = path.remote.map_or_else(|| "where path 0 ends".to_owned(), |remote| remote.to_string());
    format!("path {} goes from {} to {remote}", path.name, path.local)
}

/// One line about a path.
pub fn line(path: &PathFigures) -> String {
    format!(
        "path {} ({}): {} > {}, {}, rtt {:.1} ms (min {:.1}), {} sent, {} received, {} packets lost, {} window {}",
        path.id,
        path.name,
        path.local,
        path.remote,
        path.state,
        path.rtt_ms,
        path.min_rtt_ms,
        crate::output::bytes(path.bytes_sent),
        crate::output::bytes(path.bytes_received),
        path.packets_lost,
        path.congestion,
        crate::output::bytes(path.window as u64),
    )
}
