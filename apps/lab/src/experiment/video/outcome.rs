//! The results of a viewer. All of it follows from the run's seed.

use super::curve::area;
use super::scheme::VideoScheme;
use crate::experiment::pages::ChannelUse;
use crate::workload::video::Arrival;
use hvq_emulation::samples::quantile;
use hvq_video::clip::Clip;
use hvq_video::freeze::Freezes;
use hvq_video::layers::LAYERS;
use hvq_video::playout::{Adaptive, Gaps, Playout, Wait};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The measurements of a run, as a line of JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct VideoOutcome {
    /// The name of the channels.
    pub channels: String,
    /// The scheme.
    pub scheme: VideoScheme,
    /// The repetition, counted from 0: the same stretch of a trace for every scheme.
    pub repetition: u32,
    /// The duration of the video, in seconds.
    pub seconds: f64,
    /// The mean quality by the time that a viewer waits, in steps of 10 ms: no receiver's choice is in it.
    #[serde(default)]
    pub curve: Vec<f64>,
    /// The view of the paper's receiver, which waits for 60 ms.
    pub paper: Viewing,
    /// The view of a receiver that waits for as long as it is of use.
    pub adaptive: Viewing,
    /// The traffic over eMBB.
    pub embb: ChannelUse,
    /// The traffic over URLLC.
    pub urllc: ChannelUse,
    /// Layers that were taken back because they were late.
    pub withdrawn: u64,
    /// The reason for which the video ended early, if it did.
    pub failure: Option<String>,
}

/// The view of one receiver.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Viewing {
    /// From the capture of each frame to its decoding, in milliseconds, in the order of the frames.
    pub latency_ms: Vec<f64>,
    /// The likeness of each of these frames to its source (SSIM).
    pub ssim: Vec<f64>,
    /// The numbers of frames that have one, two and all layers.
    pub depths: [u32; LAYERS],
    /// Frames that were never shown.
    pub missing: u32,
    /// Freezes by the W3C's definition.
    pub freezes: u32,
    /// The total duration of freezes, in milliseconds.
    pub frozen_ms: f64,
    /// The longest time between two frames that were shown one after another, in milliseconds.
    #[serde(default)]
    pub longest_gap_ms: f64,
}

impl VideoOutcome {
    /// Returns the values for a line of results, by name: those of the paper's receiver, which has no quota of late frames,
    /// and the area under the curve of quality against latency.
    pub fn values(&self) -> BTreeMap<String, f64> {
        let mut values = self.paper.values(self.seconds);
        values.insert("quality_percent".to_owned(), (area(&self.curve) * 1e3).round() / 1e3);
        values
    }
}

impl Viewing {
    /// Returns the view of a receiver of `frames` of `clip` that waits as `wait` says, given the arrivals of layers.
    pub(super) fn of(arrivals: &[Arrival], clip: &Clip, frames: u32, (wait, gaps): (Wait, Gaps)) -> Self {
        let mut playout = Playout::new(wait, gaps);
        let (mut viewing, mut freezes) = (Self::default(), Freezes::default());
        let mut arrivals = arrivals.iter().peekable();
        let mut last = None;
        loop {
            let next = arrivals.peek().map(|(at, _)| *at);
            let Some(now) = [playout.deadline(), next].into_iter().flatten().min() else { break };
            while let Some((at, header)) = arrivals.next_if(|(at, _)| *at <= now) {
                playout.on_layer(header, *at);
            }
            while let Some(decoded) = playout.poll(now) {
                if let Some(shown) = decoded.depth.checked_sub(1) {
                    viewing.latency_ms.push((decoded.latency().as_secs_f64() * 1e5).round() / 100.0);
                    let ssim = clip.frame(decoded.frame).ssim;
                    viewing.ssim.push(ssim[shown]);
                    // A receiver has both pictures, so it knows about as much.
                    if shown > 0 {
                        playout.learn(ssim[shown] - ssim[0]);
                    }
                    viewing.depths[shown] += 1;
                    freezes.on_shown(decoded.at);
                    let gap = last.replace(decoded.at).map(|last| decoded.at.saturating_sub(last));
                    let gap = gap.map_or(0.0, |gap| (gap.as_secs_f64() * 1e5).round() / 100.0);
                    viewing.longest_gap_ms = viewing.longest_gap_ms.max(gap);
                }
            }
        }
        viewing.missing = frames.saturating_sub(viewing.latency_ms.len() as u32);
        viewing.freezes = freezes.count();
        viewing.frozen_ms = freezes.total().as_secs_f64() * 1e3;
        viewing
    }

    /// Returns the values for a line of results, by name, if it is of a video of `seconds`.
    pub fn values(&self, seconds: f64) -> BTreeMap<String, f64> {
        let mut sorted = self.latency_ms.clone();
        sorted.sort_by(f64::total_cmp);
        let latency = |share| quantile(&sorted, share).unwrap_or(0.0);
        let shown = self.latency_ms.len().max(1) as f64;
        let rounded = |value: f64| (value * 1e4).round() / 1e4;
        let values = [
            ("latency_p50_ms", latency(0.5)),
            ("latency_p95_ms", latency(0.95)),
            ("latency_p99_ms", latency(0.99)),
            ("latency_p999_ms", latency(0.999)),
            ("longest_gap_ms", self.longest_gap_ms),
            ("ssim", rounded(self.ssim.iter().sum::<f64>() / shown)),
            ("freezes", f64::from(self.freezes)),
            ("frozen_percent", rounded(self.frozen_ms / 10.0 / seconds)),
            ("base_only_percent", rounded(100.0 * f64::from(self.depths[0]) / shown)),
            ("missing_frames", f64::from(self.missing)),
        ];
        values.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Returns the views of both receivers.
    pub(super) fn both(arrivals: &[Arrival], clip: &Clip, frames: u32, gaps: Gaps) -> (Self, Self) {
        let fixed = Wait::Fixed(Wait::PAPER);
        let adaptive = Wait::Adaptive(Adaptive::new(Adaptive::MOST));
        (Self::of(arrivals, clip, frames, (fixed, gaps)), Self::of(arrivals, clip, frames, (adaptive, gaps)))
    }
}
