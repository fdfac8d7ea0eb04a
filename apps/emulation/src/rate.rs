//! The rate at which a link sends.

use std::sync::Arc;
use std::time::Duration;

use crate::channel::Direction;
use crate::mobility::Changing;
use crate::quantity::{Bandwidth, nanoseconds};
use crate::spec::{LinkSpec, Replay};
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
    Trace {
        trace: Arc<RateTrace>,
        direction: Direction,
        replay: Replay,
    },
    /// One of the others, changed.
    Changing(Box<Changing>),
}

impl RateModel {
    pub(crate) fn load(spec: &LinkSpec, direction: Direction) -> Result<Self, TraceError> {
        let base = match &spec.rate {
            Rate::Unlimited => Self::Unlimited,
            Rate::Constant(bandwidth) => Self::Constant(*bandwidth),
            Rate::Trace(source) => Self::Trace { trace: source.rate()?, direction, replay: spec.replay },
        };
        if spec.collapses.is_empty() && spec.extra.is_none() {
            return Ok(base);
        }
        let (collapses, extra) = (spec.collapses.clone(), spec.extra);
        Ok(Self::Changing(Box::new(Changing { base, collapses, extra })))
    }

    /// The rate in bits per second at `time`, in nanoseconds since the start of the channel, and until when it holds;
    /// `None` means for ever.
    pub(crate) fn stretch(&self, time: u64) -> (u64, Option<u64>) {
        match self {
            // So much that it takes no time, and can be added to.
            Self::Unlimited | Self::Changing(_) => (u64::MAX / 4, None),
            Self::Constant(bandwidth) => (bandwidth.bits_per_second(), None),
            Self::Trace { trace, direction, replay } => {
                let offset = nanoseconds(replay.offset);
                let (rate, until) = trace.stretch(*direction, time.saturating_add(offset), replay.end);
                (rate, until.map(|until| until.saturating_sub(offset)))
            }
        }
    }

    /// Returns the time at which the last of `bytes` has been sent if the first begins at `start`; maybe [`NEVER`].
    pub(crate) fn sent_at(&self, start: Duration, bytes: usize) -> Duration {
        match self {
            _ if start == NEVER => NEVER,
            Self::Unlimited => start,
            Self::Constant(bandwidth) => {
                let rate = u128::from(bandwidth.bits_per_second().max(1));
                let nanoseconds = (bytes as u128 * 8 * 1_000_000_000).div_ceil(rate);
                start.saturating_add(Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
            }
            Self::Changing(changing) => changing.sent_at(start, bytes),
            Self::Trace { trace, direction, replay } => {
                let sent_at =
                    trace.sent_at(*direction, start.saturating_add(replay.offset), bytes, replay.end);
                sent_at.map_or(NEVER, |at| at.saturating_sub(replay.offset))
            }
        }
    }
}
