//! The table of path states (RFC 10069 §3).

use crate::time::Instant;
use std::time::Duration;

/// The reason for which a path is abandoned (RFC 10069 §4.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AbandonReason {
    /// No error, or an answer to the peer's PATH_ABANDON.
    NoError,
    /// The application asked for it.
    Application,
    /// Resources are lacking.
    ResourceLimit,
    /// The interface is unstable, the path performs poorly, or its validation failed.
    UnstableOrPoor,
    /// The peer gave no connection ID for the path.
    NoConnectionId,
}

impl AbandonReason {
    /// The code in PATH_ABANDON.
    pub const fn code(self) -> u64 {
        match self {
            Self::NoError => 0,
            Self::Application => 0x3e,
            Self::ResourceLimit => 0x3e75,
            Self::UnstableOrPoor => 0x3e76,
            Self::NoConnectionId => 0x3e77,
        }
    }
}

/// The state of a path ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LifecycleState {
    /// Nothing was sent or received under it.
    Unused,
    /// This endpoint sent on it and the peer has not been heard there.
    Opening,
    /// The peer was heard on it; its address is not validated yet.
    Validating,
    /// The address is validated.
    Open,
    /// This endpoint sent PATH_ABANDON and waits for the answer, until the instant if the peer has got it by then.
    Abandoning {
        /// The time at which the path is freed without an answer.
        until: Instant,
    },
    /// Both endpoints sent PATH_ABANDON. Late packets are still taken in and acknowledged, until the instant.
    Abandoned {
        /// The time at which the path is freed.
        until: Instant,
    },
    /// It is over and never comes back.
    Freed,
}

/// An event of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LifecycleEvent {
    /// This endpoint opens it; only a client does (RFC 10069 §3).
    Opened,
    /// An authentic packet arrived on it.
    Heard,
    /// Its address was validated, or is known from another path.
    Validated,
    /// This endpoint gives it up, for instance because validation failed (RFC 10069 §3.1).
    Abandon {
        /// The reason.
        reason: AbandonReason,
        /// Three probe timeouts: how long an answer is waited for.
        keep: Duration,
    },
    /// PATH_ABANDON arrived.
    PeerAbandon {
        /// Three probe timeouts: how long late packets are waited for (RFC 10069 §3.4).
        keep: Duration,
    },
    /// The time of the state is over.
    Expired,
}

impl LifecycleState {
    /// The state after `event` at `now`.
    #[must_use]
    pub fn after(self, event: LifecycleEvent, now: Instant) -> Self {
        use LifecycleState::{Abandoned, Abandoning, Freed, Open, Opening, Unused, Validating};
        match (self, event) {
            (Unused, LifecycleEvent::Opened) => Opening,
            (Unused | Opening, LifecycleEvent::Heard) => Validating,
            (Unused | Opening | Validating, LifecycleEvent::Validated) => Open,
            (Unused | Opening | Validating | Open, LifecycleEvent::Abandon { keep, .. }) => {
                Abandoning { until: now + keep }
            }
            (
                Unused | Opening | Validating | Open | Abandoning { .. },
                LifecycleEvent::PeerAbandon { keep },
            ) => Abandoned { until: now + keep },
            (Abandoning { .. } | Abandoned { .. }, LifecycleEvent::Expired) => Freed,
            (
                Opening | Validating | Open | Abandoning { .. } | Abandoned { .. } | Freed,
                LifecycleEvent::Opened,
            )
            | (Validating | Open | Abandoning { .. } | Abandoned { .. } | Freed, LifecycleEvent::Heard)
            | (Open | Abandoning { .. } | Abandoned { .. } | Freed, LifecycleEvent::Validated)
            | (Abandoning { .. } | Abandoned { .. } | Freed, LifecycleEvent::Abandon { .. })
            | (Abandoned { .. } | Freed, LifecycleEvent::PeerAbandon { .. })
            | (Unused | Opening | Validating | Open | Freed, LifecycleEvent::Expired) => self,
        }
    }

    /// Returns true if one of the endpoints gave the path up.
    pub fn is_abandoned(self) -> bool {
        matches!(self, Self::Abandoning { .. } | Self::Abandoned { .. } | Self::Freed)
    }

    /// Returns the time at which the state ends by itself.
    pub fn until(self) -> Option<Instant> {
        match self {
            Self::Abandoning { until } | Self::Abandoned { until } => Some(until),
            Self::Unused | Self::Opening | Self::Validating | Self::Open | Self::Freed => None,
        }
    }
}
