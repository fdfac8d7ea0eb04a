//! How fast a link sends.

use std::sync::Arc;
use std::time::Duration;

use crate::channel::Direction;
use crate::quantity::Bandwidth;
use crate::spec::Replay;
use crate::trace::{RateTrace, TraceError, TraceSource};

/// The rate of a link's bottleneck.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// Packets take no time to send.
    #[default]
    Unlimited,
    /// Always the same.
    Constant(Bandwidth),
    /// One value a second, say, from the column of the link's direction.
    Trace(TraceSource),
}

/// A time that never comes: the end of a rate trace that holds zero.
pub(crate) const NEVER: Duration = Duration::MAX;

/// A rate ready for use.
#[derive(Clone, Debug)]
pub(crate) enum RateModel {
    Unlimited,
    Constant(Bandwidth),
    Trace { trace: Arc<RateTrace>, direction: Direction, replay: Replay },
}

impl RateModel {
    pub(crate) fn load(rate: &Rate, direction: Direction, replay: Replay) -> Result<Self, TraceError> {
        Ok(match rate {
            Rate::Unlimited => Self::Unlimited,
            Rate::Constant(bandwidth) => Self::Constant(*bandwidth),
            Rate::Trace(source) => Self::Trace { trace: source.rate()?, direction, replay },
        })
    }

    /// When the last of `bytes` has been sent if the first begins at `start`; maybe [`NEVER`].
    pub(crate) fn sent_at(&self, start: Duration, bytes: usize) -> Duration {
        match self {
            _ if start == NEVER => NEVER,
            Self::Unlimited => start,
            Self::Constant(bandwidth) => {
                let rate = u128::from(bandwidth.bits_per_second().max(1));
                let nanoseconds = (bytes as u128 * 8 * 1_000_000_000).div_ceil(rate);
                start.saturating_add(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
            }
            Self::Trace { trace, direction, replay } => {
                let sent_at =
                    trace.sent_at(*direction, start.saturating_add(replay.offset), bytes, replay.end);
                sent_at.map_or(NEVER, |at| at.saturating_sub(replay.offset))
            }
        }
    }
}
