//! Videos with one scheme over one pair of channels, taken together.

use crate::experiment::video::{VideoOutcome, VideoScheme, Viewing};
use hvq_emulation::samples::nearest_rank;
use hvq_video::layers::LAYERS;

/// The receiver whose view it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReceiverView {
    /// The paper's, which waits for 60 ms.
    Paper,
    /// One that waits for as long as it is of use.
    Adaptive,
}

impl ReceiverView {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Paper, Self::Adaptive];

    /// Returns the receiver's name, for a heading.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Paper => "60 ms wait",
            Self::Adaptive => "adaptive wait",
        }
    }

    fn viewing(self, outcome: &VideoOutcome) -> &Viewing {
        match self {
            Self::Paper => &outcome.paper,
            Self::Adaptive => &outcome.adaptive,
        }
    }
}

/// The distribution of many values: the mean and percentiles.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Distribution {
    /// The mean.
    pub mean: f64,
    /// 5 % are less.
    pub p5: f64,
    /// The median.
    pub p50: f64,
    /// 5 % are more.
    pub p95: f64,
    /// 1 % is more.
    pub p99: f64,
}

impl Distribution {
    /// Returns the distribution of `sorted`; zeros if there is nothing.
    fn of(sorted: &[f64]) -> Self {
        let mean = sorted.iter().sum::<f64>() / sorted.len().max(1) as f64;
        let [p5, p50, p95, p99] = [0.05, 0.5, 0.95, 0.99].map(|share| quantile(sorted, share));
        Self { mean, p5, p50, p95, p99 }
    }
}

/// The smallest of `sorted` that is not exceeded by this share of them; 0 if there is nothing.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    nearest_rank(sorted, share).unwrap_or_default()
}

/// The view of a receiver with one scheme.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The name of the channels.
    pub channels: String,
    /// The scheme.
    pub scheme: VideoScheme,
    /// Latency of the frames that are shown, in milliseconds.
    pub latency: Distribution,
    /// Their likeness to their sources.
    pub ssim: Distribution,
    /// Shares of the frames that are shown with one, two and all layers.
    pub depths: [f64; LAYERS],
    /// The share of all frames that are never shown.
    pub missing: f64,
    /// Freezes a minute, by the W3C's definition.
    pub freezes_a_minute: f64,
    /// The share of the time that is frozen.
    pub frozen: f64,
    /// The share of bytes that came over URLLC.
    pub urllc_share: f64,
    /// All latencies and all SSIM, ascending.
    pub(super) sorted: [Vec<f64>; 2],
}

/// A row for each pair of channels and scheme, in the order of the outcomes.
pub fn rows(outcomes: &[VideoOutcome], receiver: ReceiverView) -> Vec<Row> {
    let mut keys: Vec<(&str, VideoScheme)> = Vec::new();
    for outcome in outcomes {
        let key = (outcome.channels.as_str(), outcome.scheme);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let of = |(channels, scheme)| {
        outcomes.iter().filter(move |outcome| outcome.channels == channels && outcome.scheme == scheme)
    };
    keys.into_iter().map(|key| row(&of(key).collect::<Vec<_>>(), key, receiver)).collect()
}

fn row(outcomes: &[&VideoOutcome], (channels, scheme): (&str, VideoScheme), receiver: ReceiverView) -> Row {
    let views: Vec<&Viewing> = outcomes.iter().map(|outcome| receiver.viewing(outcome)).collect();
    let sorted = |of: fn(&Viewing) -> &Vec<f64>| {
        let mut values: Vec<f64> = views.iter().flat_map(|view| of(view)).copied().collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (latency, ssim) = (sorted(|view| &view.latency_ms), sorted(|view| &view.ssim));
    let shown = latency.len().max(1) as f64;
    let sum = |of: &dyn Fn(&Viewing) -> f64| views.iter().map(|view| of(view)).sum::<f64>();
    let missing = sum(&|view| f64::from(view.missing));
    let seconds = outcomes.iter().map(|outcome| outcome.seconds).sum::<f64>().max(f64::MIN_POSITIVE);
    let bytes = |of: fn(&VideoOutcome) -> u64| outcomes.iter().map(|outcome| of(outcome)).sum::<u64>() as f64;
    let (embb, urllc) = (bytes(|o| o.embb.up + o.embb.down), bytes(|o| o.urllc.up + o.urllc.down));
    Row {
        channels: channels.to_owned(),
        scheme,
        latency: Distribution::of(&latency),
        ssim: Distribution::of(&ssim),
        depths: std::array::from_fn(|depth| sum(&|view| f64::from(view.depths[depth])) / shown),
        missing: missing / (missing + latency.len() as f64).max(1.0),
        freezes_a_minute: sum(&|view| f64::from(view.freezes)) / seconds * 60.0,
        frozen: sum(&|view| view.frozen_ms) / 1e3 / seconds,
        urllc_share: urllc / (embb + urllc).max(1.0),
        sorted: [latency, ssim],
    }
}
