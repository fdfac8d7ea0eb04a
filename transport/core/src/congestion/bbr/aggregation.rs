//! Ack aggregation: the bytes that are acknowledged at once beyond those that the bandwidth explains (draft,
//! "BBR.extra_acked").

use super::Report;
use super::round_trips::RoundTrips;
use crate::recovery::windowed::WindowedMax;
use crate::time::Instant;
use crate::{Bandwidth, PathId};

/// Rounds for which an excess counts; in Startup one (draft, BBR.ExtraAckedFilterLen).
const ROUNDS: u64 = 10;

/// The excess of acknowledged data over what was expected.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    started_at: Instant,
    started_over: Option<PathId>,
    acknowledged: u64,
    filter: WindowedMax<u64>,
}

/// The rate and the window of the model, against which an excess is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) rate: Bandwidth,
    pub(super) window: u64,
}

impl Default for Aggregation {
    fn default() -> Self {
        Self { started_at: Instant::ZERO, started_over: None, acknowledged: 0, filter: WindowedMax::new(1) }
    }
}

impl Aggregation {
    /// Data to keep in flight besides the bandwidth-delay product, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.filter.get().unwrap_or(0)
    }

    /// The flow restarts from idle.
    pub(super) fn restart(&mut self, now: Instant) {
        self.started_at = now;
        self.started_over = None;
        self.acknowledged = 0;
    }

    /// The search for the bandwidth is over: from now on an excess counts for ten rounds.
    pub(super) fn remember_longer(&mut self) {
        self.filter = WindowedMax::new(ROUNDS);
    }

    /// Takes an acknowledgement in round `round` (draft, UpdateACKAggregation). The interval is counted as if all
    /// acknowledgements took the same return path, so that changing to a faster one is no aggregation.
    pub(super) fn on_acknowledged(
        &mut self,
        report: &Report,
        round: u64,
        model: Expected,
        times: &RoundTrips,
    ) {
        let Expected { rate, window } = model;
        let before = self.started_over.and_then(|over| times.min_over(over));
        let mut interval = report.now.since(self.started_at);
        if let (Some(before), Some(after)) = (before, times.min_over(report.over)) {
            interval = interval.saturating_add(before).saturating_sub(after);
        }
        let mut expected = rate.bytes_in(interval);
        if self.acknowledged <= expected {
            self.restart(report.now);
            self.started_over = Some(report.over);
            expected = 0;
        }
        self.acknowledged = self.acknowledged.saturating_add(report.delivery.newly_acknowledged);
        self.filter.offer(round, self.acknowledged.saturating_sub(expected).min(window));
    }
}
