//! Measures: the numbers that are made of the results of a scheme.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A number for a scheme in a cell.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Measure {
    /// The gain: the difference by which the mean is less than with eMBB alone, on the same pages and stretches, in per
    /// cent.
    #[default]
    Gain,
    /// The share that this is of the gain of the ideal channel, in per cent.
    Gap,
    /// The mean of what the workload measures.
    Mean,
    /// The median of it.
    Median,
    /// 95 % were no more.
    P95,
    /// The difference by which the page that fares worst is slower than with eMBB alone, in per cent.
    Worst,
    /// The share of all bytes that went over URLLC, in per cent.
    Urllc,
    /// The share of runs that failed, in per cent.
    Failed,
    /// The mean of another value that runs note under this name.
    Noted(String),
}

/// The names under which runs of any workload note values.
const NOTED: [&str; 25] = [
    "plt_ms",
    "time_ms",
    "exchange_ms",
    "embb_bytes",
    "urllc_bytes",
    "goodput_mbit",
    "capacity_percent",
    "carried_percent",
    "rtt_p50_ms",
    "rtt_p95_ms",
    "lost_packets",
    "client_buffer_mean_bytes",
    "client_buffer_most_bytes",
    "proxy_buffer_mean_bytes",
    "proxy_buffer_most_bytes",
    "reward_error_p50_ms",
    "reward_error_p90_ms",
    "latency_p50_ms",
    "latency_p95_ms",
    "latency_p99_ms",
    "ssim",
    "freezes",
    "frozen_percent",
    "base_only_percent",
    "missing_frames",
];

impl Measure {
    /// Its name in files.
    pub fn name(&self) -> &str {
        match self {
            Self::Gain => "gain",
            Self::Gap => "gap",
            Self::Mean => "mean",
            Self::Median => "median",
            Self::P95 => "p95",
            Self::Worst => "worst",
            Self::Urllc => "urllc",
            Self::Failed => "failed",
            Self::Noted(name) => name,
        }
    }

    /// Returns true if it is in per cent.
    pub fn is_percent(&self) -> bool {
        match self {
            Self::Gain | Self::Gap | Self::Worst | Self::Urllc | Self::Failed => true,
            Self::Noted(name) => name.ends_with("percent"),
            Self::Mean | Self::Median | Self::P95 => false,
        }
    }
}

impl TryFrom<String> for Measure {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Ok(match name.as_str() {
            "gain" => Self::Gain,
            "gap" => Self::Gap,
            "mean" => Self::Mean,
            "median" => Self::Median,
            "p95" => Self::P95,
            "worst" => Self::Worst,
            "urllc" => Self::Urllc,
            "failed" => Self::Failed,
            noted if NOTED.contains(&noted) => Self::Noted(name),
            _ => {
                return Err(format!(
                    "{name:?} is no measure: choose gain, gap, mean, median, p95, worst, urllc or failed, or what runs \
                     note: {}",
                    NOTED.join(", ")
                ));
            }
        })
    }
}

impl From<Measure> for String {
    fn from(measure: Measure) -> Self {
        measure.name().to_owned()
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Gain => "gain over eMBB alone",
            Self::Gap => "share of the gap to the ideal closed",
            Self::Worst => "slowdown of the page that fares worst",
            Self::Urllc => "share of bytes on URLLC",
            Self::Failed => "runs that failed",
            other => return formatter.write_str(&other.name().replace('_', " ")),
        })
    }
}
