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
    /// The speed in per cent of that of the best link alone.
    Single,
    /// The speed in per cent of that of the best scheme without help from the network: a link alone, or a policy of paths.
    Best,
    /// The speed in per cent of that of all links at once, each as quick as alone: the content of the link alone that has
    /// arrived is added up.
    Sum,
    /// The share of the gain over eMBB alone that true knowledge at both ends gives, in per cent.
    Knowledge,
    /// The difference from the same with the other order of channels, in per cent.
    Exchange,
    /// The difference by which it is slower than `hvc`, in per cent: of a variant, what `hvc` earns by the rest.
    Behind,
    /// The mean of another value that runs note under this name.
    Noted(String),
}

/// The names under which runs of any workload note values.
const NOTED: [&str; 29] = [
    "plt_ms",
    "time_ms",
    "exchange_ms",
    "exchange_p95_ms",
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
    "latency_p999_ms",
    "longest_gap_ms",
    "quality_percent",
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
            Self::Single => "single",
            Self::Best => "best",
            Self::Sum => "sum",
            Self::Knowledge => "knowledge",
            Self::Exchange => "exchange",
            Self::Behind => "behind",
            Self::Noted(name) => name,
        }
    }

    /// Returns true if it is in per cent.
    pub fn is_percent(&self) -> bool {
        match self {
            Self::Gain
            | Self::Gap
            | Self::Worst
            | Self::Urllc
            | Self::Failed
            | Self::Single
            | Self::Best
            | Self::Sum
            | Self::Knowledge
            | Self::Exchange
            | Self::Behind => true,
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
            "single" => Self::Single,
            "best" => Self::Best,
            "sum" => Self::Sum,
            "knowledge" => Self::Knowledge,
            "exchange" => Self::Exchange,
            "behind" => Self::Behind,
            noted if NOTED.contains(&noted) => Self::Noted(name),
            _ => {
                return Err(format!(
                    "{name:?} is no measure: choose gain, gap, mean, median, p95, worst, urllc, failed, single, best, \
                     sum, knowledge, exchange or behind, or what runs note: {}",
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
            Self::Single => "speed beside the best link alone",
            Self::Best => "speed beside the best policy",
            Self::Sum => "speed beside all links at once",
            Self::Knowledge => "share of the gain of full knowledge",
            Self::Exchange => "difference from the other order of channels",
            Self::Behind => "slower than hvc",
            other => return formatter.write_str(&other.name().replace('_', " ")),
        })
    }
}
