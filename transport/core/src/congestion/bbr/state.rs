//! The states of the draft and the gains that belong to each.

/// The state of the flow in its cycle (draft, "State Machine").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BbrState {
    /// Searches for the bandwidth, twice as fast each round trip.
    Startup,
    /// Drains the queue that the search left behind.
    Drain,
    /// Sends slower than the path delivers.
    Down,
    /// Sends as fast as the path delivers.
    Cruise,
    /// Fills the pipe before a probe.
    Refill,
    /// Probes for more bandwidth.
    Up,
    /// Empties the queue to measure the round-trip time.
    ProbeRtt,
}

impl BbrState {
    /// The factor between the estimated bandwidth and the pacing rate (draft, "Summary of Control Behavior in the State
    /// Machine").
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => 2.77,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
            Self::Up => 1.25,
        }
    }

    /// The factor between the bandwidth-delay product and the window (same table).
    pub(super) fn window_gain(self) -> f64 {
        match self {
            Self::Up => 2.25,
            Self::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    /// Returns true if it is one of the four states of ProbeBW (draft, IsInAProbeBWState).
    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Returns true if losses of this state are the price of a probe (draft, IsProbingBW).
    pub(super) fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}
