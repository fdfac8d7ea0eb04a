//! Startup and Drain (draft, "Startup" and "Drain").

use super::state::BbrState;
use super::volume::Bound;
use super::{Bbr, Report};

/// Separate losses within a round that end Startup (draft, BBRStartupFullLossCnt).
const LOSSES_OF_A_FULL_PIPE: u32 = 6;

/// Drain lasts this many rounds at most (draft, CheckDrainDone).
const DRAIN_ROUNDS: u64 = 3;

impl Bbr {
    /// Draft, CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, report: &Report) {
        self.check_startup_high_loss(report);
        if self.state == BbrState::Startup && self.full_pipe.was_full() {
            self.enter_drain();
        }
    }

    /// Ends Startup when a full round trip of recovery lost too much (draft, "Exiting Startup Based on Packet Loss").
    fn check_startup_high_loss(&mut self, report: &Report) {
        let judged = self.losses.ends_round() && self.losses.in_recovery();
        if self.state == BbrState::Startup
            && judged
            && self.losses.events() >= LOSSES_OF_A_FULL_PIPE
            && super::loss::is_too_high(report.delivery.lost, report.delivery.tx_in_flight)
        {
            self.losses.note_exit_from(BbrState::Startup);
            self.declare_pipe_full();
        }
    }

    /// Congestion says that the pipe is full: what was delivered within a round trip is safe.
    pub(super) fn declare_pipe_full(&mut self) {
        self.full_pipe.declare_full();
        let safe = self.bandwidth_delay_product().max(self.volumes.latest);
        self.volumes.long_term = Some(Bound::new(safe, self.regime()));
    }

    /// Draft, EnterStartup.
    pub(super) fn enter_startup(&mut self) {
        self.state = BbrState::Startup;
    }

    /// Draft, EnterDrain.
    pub(super) fn enter_drain(&mut self) {
        self.state = BbrState::Drain;
        self.cycle.drain_began = self.rounds.count();
        self.aggregation.remember_longer();
    }

    /// Draft, CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, report: &Report) {
        let drained = report.in_flight <= self.inflight(self.bandwidths.bounded());
        let late = self.rounds.count() > self.cycle.drain_began.saturating_add(DRAIN_ROUNDS);
        if self.state == BbrState::Drain && (drained || late) {
            self.start_down(report.now);
        }
    }
}
