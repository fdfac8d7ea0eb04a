//! The outcome of a cell with one policy, beside each channel alone.

use super::cell::OutageCell;
use super::outage::OutageKind;
use crate::experiment::pages::Ending;
use hvq_scheduler::Policy;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The time by which two channels may end later than [`SHARE`] of the better one alone.
pub const GRACE: Duration = Duration::from_millis(300);
/// The factor on the time of the better channel alone.
pub const SHARE: f64 = 1.1;

/// The most that two channels may take where the better one alone takes `better`.
pub fn allowed(better: Duration) -> Duration {
    better.mul_f64(SHARE) + GRACE
}

/// The verdict on two channels in a cell.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutageVerdict {
    /// In time, or neither channel alone ends.
    InTime,
    /// Late, but no later than is allowed beside the policy's own time without outages and what outages cost the better channel
    /// alone.
    SlowAnyway,
    /// Later than is allowed beside the better channel alone.
    Late,
    /// Never, though one channel alone ends.
    Never,
}

impl OutageVerdict {
    /// Returns true if the cell has failed.
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Late | Self::Never)
    }
}

impl fmt::Display for OutageVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InTime => "in time",
            Self::SlowAnyway => "slow anyway",
            Self::Late => "late",
            Self::Never => "never",
        })
    }
}

/// The times over each channel alone; `None` if it never ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Times {
    pub(super) embb: Option<Duration>,
    pub(super) urllc: Option<Duration>,
}

impl Times {
    /// The time of the better channel alone, if one ends.
    pub(super) fn better(self) -> Option<Duration> {
        self.embb.into_iter().chain(self.urllc).min()
    }
}

/// The outcome of a cell with one policy, as a line of JSON. Times are in milliseconds, `null` for never.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OutageOutcome {
    /// The cell's number or name.
    pub cell: String,
    /// The family of its outages.
    pub kind: OutageKind,
    /// The load, the channels and the outages.
    pub setting: String,
    /// The policy.
    pub policy: String,
    /// Over eMBB alone.
    pub embb_ms: Option<f64>,
    /// Over URLLC alone.
    pub urllc_ms: Option<f64>,
    /// Over both.
    pub both_ms: Option<f64>,
    /// The most that is allowed; `null` if neither channel alone ends.
    pub allowed_ms: Option<f64>,
    /// The verdict.
    pub verdict: OutageVerdict,
    /// The reason that the load over both ended without its page, if a connection was over.
    pub failure: Option<String>,
    /// A description of the network where the load stood still.
    #[serde(skip)]
    pub scene: Option<String>,
}

impl OutageOutcome {
    pub(super) fn new(cell: &OutageCell, policy: Policy, alone: Times, both: Ending) -> Self {
        let (time, failure, scene) = match both {
            Ending::Loaded(time) => (Some(time), None, None),
            Ending::Failed(failure) => (None, Some(failure), None),
            Ending::Stuck(scene) => (None, None, Some(scene)),
        };
        let allowed = alone.better().map(allowed);
        let verdict = match (time, allowed) {
            (_, None) => OutageVerdict::InTime,
            (None, Some(_)) => OutageVerdict::Never,
            (Some(time), Some(allowed)) if time > allowed => OutageVerdict::Late,
            (Some(_), Some(_)) => OutageVerdict::InTime,
        };
        Self {
            cell: cell.name.clone(),
            kind: cell.kind,
            setting: cell.describe(),
            policy: policy.to_string(),
            embb_ms: alone.embb.map(milliseconds),
            urllc_ms: alone.urllc.map(milliseconds),
            both_ms: time.map(milliseconds),
            allowed_ms: allowed.map(milliseconds),
            verdict,
            failure,
            scene,
        }
    }

    /// Excuses a late end by the policy's own price: `price` is what the policy took without outages and what outages cost the
    /// better channel alone, together.
    pub(super) fn excuse(&mut self, price: Option<Duration>) {
        let most = price.map(|price| milliseconds(allowed(price)));
        if self.both_ms.zip(most).is_some_and(|(both, most)| both <= most) {
            self.verdict = OutageVerdict::SlowAnyway;
        }
    }

    /// The time by which it is later than allowed, in milliseconds.
    pub fn excess_ms(&self) -> Option<f64> {
        Some(self.both_ms? - self.allowed_ms?)
    }

    /// The order of the worst: what never ends first, and of that what one channel ends soonest; then what is late, by how
    /// many times over.
    pub fn badness(&self) -> f64 {
        let allowed = self.allowed_ms.unwrap_or(f64::MAX).max(1.0);
        match (self.verdict, self.both_ms) {
            (OutageVerdict::Never, _) | (_, None) => 1e9 / allowed,
            (_, Some(both)) => both / allowed,
        }
    }
}

/// `time` in milliseconds, to the microsecond.
fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}
