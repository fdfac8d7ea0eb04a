//! Packet-timed round trips (draft, "BBR.round_count: Tracking Packet-Timed Round Trips").

use crate::recovery::rate::RateSample;

/// Counts round trips by delivered data, which neither idleness nor a change of the return path disturbs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundCounter {
    count: u64,
    ends_at: u64,
    delivered: u64,
    started: bool,
    /// The last round in which the window was used up.
    limited_in: Option<u64>,
}

impl RoundCounter {
    /// Takes an acknowledgement (draft, UpdateRound).
    pub(super) fn on_acknowledged(&mut self, sample: &RateSample) {
        self.delivered = sample.total_delivered;
        self.started = sample.prior_delivered >= self.ends_at;
        if self.started {
            self.restart();
            self.count += 1;
        }
    }

    /// The current round ends when something that is sent from now on is acknowledged (draft, StartRound).
    pub(super) fn restart(&mut self) {
        self.ends_at = self.delivered;
    }

    /// Returns true if the last acknowledgement began a round.
    pub(super) fn started(&self) -> bool {
        self.started
    }

    /// Rounds so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes delivered as of the last acknowledgement.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Sending filled the window.
    pub(super) fn on_window_used_up(&mut self) {
        self.limited_in = Some(self.count);
    }

    /// Returns true if the window was used up within the last round (draft, C.is_cwnd_limited).
    pub(super) fn is_window_limited(&self) -> bool {
        self.limited_in.is_some_and(|round| round + 1 >= self.count)
    }
}
