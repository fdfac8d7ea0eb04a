//! The measurements of a run. All of it follows from the run's seed.

use super::arrangement::Arrangement;
use hvq_emulation::Summary;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The measurements of a run, as a line of JSON. Rates are in Mbit/s, times in milliseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ControllerOutcome {
    /// The name of the setting.
    pub setting: String,
    /// eMBB in its text form.
    pub embb: String,
    /// URLLC in its text form.
    pub urllc: String,
    /// The controller.
    pub controller: String,
    /// The arrangement.
    pub arrangement: Arrangement,
    /// The duration of the run, in seconds.
    pub seconds: f64,
    /// The seed.
    pub seed: u64,
    /// The mean rate of the channels in use.
    pub capacity: f64,
    /// True if that rate is steady: they lose nothing and do not vary.
    pub capacity_is_steady: bool,
    /// Bytes of the stream that the client read.
    pub goodput: f64,
    /// UDP payload that reached the client, over both channels.
    pub throughput: f64,
    /// The share of it that came over URLLC.
    pub urllc_share: f64,
    /// Round-trip times of data on the path that carries the bulk (the only one, or eMBB).
    pub rtt: Milliseconds,
    /// The downlink queue of eMBB.
    pub embb_queue: Queue,
    /// The downlink queue of URLLC.
    pub urllc_queue: Queue,
    /// Packets that the server declared lost.
    pub lost: u64,
    /// Packets of these that were acknowledged after all.
    pub spurious: u64,
    /// Over time.
    pub series: Series,
    /// The reason for which the connection ended too early, if it did.
    pub failure: Option<String>,
}

/// A distribution of times.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Milliseconds {
    /// The median.
    pub p50: f64,
    /// 95 % were no longer.
    pub p95: f64,
    /// 99 % were no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// A bottleneck.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Queue {
    /// The length of the queue that packets found, in time.
    pub delay: Milliseconds,
    /// Packets that found it full.
    pub overflowed: u64,
    /// Packets lost at random.
    pub lost: u64,
}

/// Measurements over time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Series {
    /// Milliseconds from one value to the next.
    pub step: f64,
    /// Goodput.
    pub goodput: Vec<f64>,
    /// The least, the mean and the largest round-trip time; none where nothing was measured.
    pub rtt: Vec<Option<[f64; 3]>>,
}

impl From<Summary> for Milliseconds {
    fn from(summary: Summary) -> Self {
        let Summary { p50, p95, p99, max, .. } = summary;
        let [p50, p95, p99, max] = [p50, p95, p99, max].map(milliseconds);
        Self { p50, p95, p99, max }
    }
}

impl Milliseconds {
    /// The distribution of `times`.
    pub(super) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let quantile = |share: f64| {
            let index = ((times.len().max(1) - 1) as f64 * share).round() as usize;
            times.get(index).copied().map_or(0.0, milliseconds)
        };
        Self { p50: quantile(0.5), p95: quantile(0.95), p99: quantile(0.99), max: quantile(1.0) }
    }
}

/// `time` in milliseconds, to the microsecond.
pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

/// `bytes` within `time` in Mbit/s, to three places.
pub(super) fn megabits(bytes: u64, time: Duration) -> f64 {
    let rate = bytes as f64 * 8.0 / time.as_secs_f64().max(f64::MIN_POSITIVE) / 1e6;
    (rate * 1e3).round() / 1e3
}
