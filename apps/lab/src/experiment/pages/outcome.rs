//! The measurements of a page load. All of it follows from the run's seed.

use super::scheme::Scheme;
use hvq_emulation::Direction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The measurements of a page load, as a line of JSON.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PageOutcome {
    /// The page.
    pub page: String,
    /// The name of the channels.
    pub channels: String,
    /// The scheme.
    pub scheme: Scheme,
    /// The repetition, counted from 0: the same stretch of a trace for every scheme.
    pub repetition: u32,
    /// The page load time in milliseconds, unless the load failed.
    pub plt_ms: Option<f64>,
    /// The traffic over eMBB.
    pub embb: ChannelUse,
    /// The traffic over URLLC.
    pub urllc: ChannelUse,
    /// Further measurements, by names that say the unit.
    #[serde(default)]
    pub noted: BTreeMap<String, f64>,
    /// The times since the start of the load, in milliseconds, at which the first byte of the content and each twentieth of it had
    /// arrived.
    #[serde(default)]
    pub progress_ms: Vec<f64>,
    /// The times since the start of the load, in milliseconds, at which its objects were complete.
    #[serde(default)]
    pub ends_ms: Vec<f64>,
    /// The reason for which the load failed, if it did.
    pub failure: Option<String>,
}

/// Bytes of UDP payload that a channel delivered during the load; what is open before it has cost what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ChannelUse {
    /// From the client.
    pub up: u64,
    /// To the client.
    pub down: u64,
}

impl ChannelUse {
    /// Returns the bytes that were delivered since it was `before`.
    pub const fn since(self, before: Self) -> Self {
        Self { up: self.up.saturating_sub(before.up), down: self.down.saturating_sub(before.down) }
    }

    /// Returns the bytes in `direction`.
    pub const fn towards(self, direction: Direction) -> u64 {
        match direction {
            Direction::Up => self.up,
            Direction::Down => self.down,
        }
    }

    /// Both directions.
    pub const fn bytes(self) -> u64 {
        self.up + self.down
    }
}
