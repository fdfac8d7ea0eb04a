//! The figures of a viewer.

use crate::freeze::Freezes;
use crate::layers::LAYERS;
use crate::message::LayerHeader;
use crate::playout::Decoded;
use hvq_emulation::samples::{nearest_rank, sorted};
use hvq_program::paths::PathFigures;
use serde_json::{Value, json};
use std::time::Duration;

/// Latencies that are kept of one kind: an hour of video.
const MOST: usize = 30 * 3600;

/// Figures of one video.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// From capture to arrival of each layer, in milliseconds.
    flights: [Vec<f64>; LAYERS],
    /// From capture to decoding of each frame.
    latency: Vec<f64>,
    /// Frames with so many layers.
    depths: [u32; LAYERS],
    freezes: Freezes,
    /// Frames that the decoder had no time for.
    pub(super) overrun: u32,
    /// Frames that could not be decoded.
    pub(super) damaged: u32,
    /// Messages and datagrams that were no layer.
    pub(super) malformed: u32,
}

impl Figures {
    /// A layer is complete at `at`.
    pub(super) fn on_layer(&mut self, header: &LayerHeader, at: Duration) {
        keep(&mut self.flights[header.layer], at.saturating_sub(header.captured));
    }

    /// A frame is shown.
    pub(super) fn on_decoded(&mut self, decoded: &Decoded) {
        if let Some(shown) = decoded.depth.checked_sub(1) {
            self.depths[shown] += 1;
            keep(&mut self.latency, decoded.latency());
            self.freezes.on_shown(decoded.at);
        }
    }

    /// For people.
    pub(super) fn lines(&self) -> Vec<String> {
        let [p50, p95, p99] = quantiles(&self.latency);
        let [base, middle, all] = self.depths;
        let mut lines = vec![format!(
            "{} frames, {all} with all layers, {middle} with two, {base} with the base layer; latency p50 {p50:.1} \
             ms, p95 {p95:.1} ms, p99 {p99:.1} ms; {} freezes, {:.1} s",
            self.latency.len(),
            self.freezes.count(),
            self.freezes.total().as_secs_f64()
        )];
        if self.damaged + self.overrun > 0 {
            lines.push(format!(
                "{} frames could not be decoded, for {} there was no time",
                self.damaged, self.overrun
            ));
        }
        if self.malformed > 0 {
            lines.push(format!("{} messages or datagrams were no layers", self.malformed));
        }
        for (layer, flights) in self.flights.iter().enumerate() {
            let [p50, p95, p99] = quantiles(flights);
            lines.push(format!(
                "layer {layer}: {} arrived, after p50 {p50:.1} ms, p95 {p95:.1} ms, p99 {p99:.1} ms",
                flights.len()
            ));
        }
        lines
    }

    /// For programs: of the whole video.
    pub(super) fn json(&self, paths: &[PathFigures]) -> Value {
        self.latest(usize::MAX, paths)
    }

    /// For programs, with latencies of the last `most` frames.
    pub(super) fn latest(&self, most: usize, paths: &[PathFigures]) -> Value {
        let distribution = |values: &[f64]| {
            let [p50, p95, p99] = quantiles(&values[values.len().saturating_sub(most)..]);
            json!({ "count": values.len(), "p50_ms": p50, "p95_ms": p95, "p99_ms": p99 })
        };
        json!({
            "frames": self.latency.len(),
            "depths": self.depths,
            "latency": distribution(&self.latency),
            "layers": self.flights.each_ref().map(|flights| distribution(flights)),
            "freezes": self.freezes.count(),
            "frozen_ms": self.freezes.total().as_secs_f64() * 1e3,
            "overrun": self.overrun,
            "damaged": self.damaged,
            "malformed": self.malformed,
            "paths": paths,
        })
    }
}

fn keep(values: &mut Vec<f64>, time: Duration) {
    if values.len() < MOST {
        values.push(time.as_secs_f64() * 1e3);
    }
}

/// The median, and what 5 % and 1 % exceed.
fn quantiles(values: &[f64]) -> [f64; 3] {
    let sorted = sorted(values);
    [0.5, 0.95, 0.99].map(|share| nearest_rank(&sorted, share).unwrap_or_default())
}
