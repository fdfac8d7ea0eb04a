//! ProbeRTT: now and then the queue is emptied to measure the round-trip time (draft, "ProbeRTT").

use super::round_trips::Probe;
use super::state::BbrState;
use super::{Bbr, Report};
use crate::time::Instant;
use std::time::Duration;

/// The time for which little is in flight (draft, BBR.ProbeRTTDuration).
const DURATION: Duration = Duration::from_millis(200);

/// The progress of a probe.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// The time since which little enough is in flight.
    emptied_at: Option<Instant>,
    /// True once a round trip has passed since (draft, BBR.probe_rtt_round_done).
    round_done: bool,
}

impl Bbr {
    /// Draft, CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, report: &Report, probe: Probe) {
        if self.state != BbrState::ProbeRtt && probe == Probe::Due && !self.idle_restart {
            // Before the state changes: what is saved is the window without the probe.
            self.save_window();
            self.state = BbrState::ProbeRtt;
            self.probe_rtt = ProbeRtt::default();
            self.cycle.stop_probing();
            self.rounds.restart();
        }
        if self.state == BbrState::ProbeRtt {
            self.handle_probe_rtt(report);
        }
        if report.delivery.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Draft, HandleProbeRTT.
    fn handle_probe_rtt(&mut self, report: &Report) {
        if self.probe_rtt.emptied_at.is_none() {
            if report.in_flight <= self.probe_rtt_window() {
                self.probe_rtt = ProbeRtt { emptied_at: Some(report.now), round_done: false };
                self.rounds.restart();
            }
            return;
        }
        self.probe_rtt.round_done |= self.rounds.started();
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(report.now);
        }
    }

    /// Draft, CheckProbeRTTDone and ExitProbeRTT.
    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        let Some(emptied_at) = self.probe_rtt.emptied_at.filter(|at| now > *at + DURATION) else { return };
        self.round_trips.on_queue_empty(emptied_at, now);
        self.probe_rtt = ProbeRtt::default();
        self.restore_window();
        self.reset_short_term();
        if self.full_pipe.was_full() {
            self.start_down(now);
            self.start_cruise();
        } else {
            self.enter_startup();
        }
    }
}
