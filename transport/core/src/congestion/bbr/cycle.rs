//! The cycle of ProbeBW (draft, "ProbeBW").

use super::state::BbrState;
use super::volume::Bound;
use super::{Bbr, Report};
use crate::time::Instant;
use std::time::Duration;

/// The share of the long-term bound that is left to others (draft, BBR.Headroom).
const HEADROOM: f64 = 0.15;

/// No more than this many rounds between probes, to live with Reno (draft, "A Dual-Time-Scale Approach").
const MOST_ROUNDS: u64 = 63;

/// The shortest time between probes; up to a second is added (same section).
const SHORTEST_WAIT: Duration = Duration::from_secs(2);

/// The most doublings of the slope of a probe (draft, RaiseInflightLongtermSlope).
const MOST_DOUBLINGS: u32 = 30;

/// The phase of the probe that the arriving acknowledgements tell of (draft, BBR.ack_phase).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// The outcome of the last probe (draft, BBR.prev_probe_too_high and BBR.prev_probe_precautionary).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum LastProbe {
    #[default]
    Fine,
    /// With too many losses.
    TooHigh,
    /// Early, at the volume of the probe before, which had too many losses; no excessive losses since.
    Precautionary,
}

/// Tells whether losses that are found now answer a probe (draft, BBR.is_bw_probe_sample).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Answers {
    Probe,
    #[default]
    Nothing,
}

/// The state of the cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    acks: AckPhase,
    answers: Answers,
    last: LastProbe,
    /// Bytes acknowledged since the long-term bound grew (draft, BBR.bw_probe_up_acked).
    acknowledged: u64,
    /// Bytes to acknowledge before it grows; 0 while it does not grow (draft, BBR.probe_up_acked_per_inc).
    per_increase: u64,
    /// Draft, BBR.bw_probe_up_rounds.
    doublings: u32,
    /// The round in which the wait began, less a random round (draft, BBR.rounds_since_probe_up).
    waits_since: u64,
    /// Draft, BBR.bw_probe_wait.
    wait: Duration,
    /// Draft, BBR.cycle_stamp.
    started: Instant,
    /// The round in which Drain began (draft, BBR.drain_start_round).
    pub(super) drain_began: u64,
}

impl Cycle {
    /// Returns true if losses answer a probe to which there was no response yet.
    pub(super) fn is_answered_by_losses(&self) -> bool {
        self.answers == Answers::Probe
    }

    /// A probe of the round-trip time begins: what comes back answers no probe of the bandwidth soon.
    pub(super) fn stop_probing(&mut self) {
        self.acks = AckPhase::Stopping;
    }

    /// Draft, PickProbeWait. Uniformly distributed numbers from the time, for there is no other randomness here.
    fn pick_wait(&mut self, now: Instant, round: u64) {
        let random = mixed(now.as_nanos());
        self.waits_since = round.saturating_sub(random & 1);
        self.wait = SHORTEST_WAIT + Duration::from_nanos((random >> 1) % 1_000_000_000);
    }
}

/// Spreads `value` evenly over all numbers (the finaliser of SplitMix64).
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl Bbr {
    /// Draft, StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, now: Instant) {
        self.losses.reset();
        self.bandwidths.forget_latest();
        self.volumes.latest = 0;
        self.cycle.per_increase = 0;
        self.cycle.pick_wait(now, self.rounds.count());
        self.cycle.started = now;
        self.cycle.acks = AckPhase::Stopping;
        self.rounds.restart();
        self.state = BbrState::Down;
    }

    /// Draft, StartProbeBW_CRUISE.
    pub(super) fn start_cruise(&mut self) {
        self.state = BbrState::Cruise;
    }

    /// Draft, StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self) {
        self.reset_short_term();
        self.cycle.doublings = 0;
        self.cycle.acknowledged = 0;
        if self.cycle.last == LastProbe::Precautionary {
            self.cycle.last = LastProbe::Fine;
        }
        self.cycle.acks = AckPhase::Refilling;
        self.rounds.restart();
        self.state = BbrState::Refill;
    }

    /// Draft, StartProbeBW_UP.
    fn start_up(&mut self, report: &Report) {
        self.cycle.acks = AckPhase::Starting;
        self.rounds.restart();
        self.full_pipe.look_again(report.delivery.rate.unwrap_or_default());
        self.state = BbrState::Up;
        self.raise_slope();
    }

    /// Draft, UpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, report: &Report) {
        if !self.full_pipe.was_full() || self.adapt_long_term_model(report) {
            return;
        }
        match self.state {
            BbrState::Down | BbrState::Cruise if self.is_time_to_probe(report.now) => self.start_refill(),
            BbrState::Down if self.is_time_to_cruise(report) => self.start_cruise(),
            BbrState::Refill if self.rounds.started() => {
                self.cycle.answers = Answers::Probe;
                self.start_up(report);
            }
            BbrState::Up => self.check_time_to_go_down(report),
            _ => {}
        }
    }

    /// Draft, IsTimeToCruise.
    fn is_time_to_cruise(&self, report: &Report) -> bool {
        self.with_headroom().is_none_or(|most| report.in_flight <= most)
            && report.in_flight <= self.inflight(self.bandwidths.max())
    }

    /// Draft, IsTimeToProbeBW and IsRenoCoexistenceProbeTime.
    fn is_time_to_probe(&self, now: Instant) -> bool {
        let target = self.target_inflight() / self.datagram_size;
        let rounds = self.rounds.count().saturating_sub(self.cycle.waits_since);
        now > self.cycle.started + self.cycle.wait || rounds >= target.min(MOST_ROUNDS)
    }

    /// Draft, IsTimeToGoDown.
    fn check_time_to_go_down(&mut self, report: &Report) {
        let bound = self.long_term();
        if self.cycle.last == LastProbe::TooHigh && bound.is_some_and(|bound| report.in_flight >= bound) {
            self.cycle.last = LastProbe::Precautionary;
            return self.start_down(report.now);
        }
        if self.rounds.is_window_limited() && self.is_bound_by(bound) {
            self.full_pipe.look_again(report.delivery.rate.unwrap_or_default());
        } else if self.full_pipe.is_full_now() {
            self.cycle.last = LastProbe::Fine;
            self.start_down(report.now);
        }
    }

    /// Returns true if the window is as large as the long-term bound permits.
    fn is_bound_by(&self, bound: Option<u64>) -> bool {
        bound.is_some_and(|bound| self.window.saturating_add(self.datagram_size) > bound)
    }

    /// The long-term bound less what is left to others, in bytes (draft, InflightWithHeadroom).
    pub(super) fn with_headroom(&self) -> Option<u64> {
        let bound = self.long_term()?;
        let headroom = ((bound as f64 * HEADROOM) as u64).max(self.datagram_size);
        Some(bound.saturating_sub(headroom).max(self.least_window()))
    }

    /// Draft, RaiseInflightLongtermSlope.
    fn raise_slope(&mut self) {
        let growth = 1u64 << self.cycle.doublings;
        self.cycle.doublings = (self.cycle.doublings + 1).min(MOST_DOUBLINGS);
        self.cycle.per_increase = (self.window / growth).max(self.datagram_size);
    }

    /// Draft, ProbeInflightLongtermUpward.
    fn probe_upward(&mut self, report: &Report) {
        let Some(bound) = self.long_term() else { return };
        if !self.rounds.is_window_limited() || !self.is_bound_by(Some(bound)) {
            return;
        }
        let acknowledged = self.cycle.acknowledged.saturating_add(report.delivery.newly_acknowledged);
        let step = self.cycle.per_increase.max(1);
        self.cycle.acknowledged = acknowledged % step;
        let grown = bound.saturating_add((acknowledged / step).saturating_mul(self.datagram_size));
        self.volumes.long_term = Some(Bound::new(grown.min(super::LARGEST_WINDOW), self.regime()));
        if self.rounds.started() {
            self.raise_slope();
        }
    }

    /// Draft, AdaptLongTermModel; whether it decided a transition.
    fn adapt_long_term_model(&mut self, report: &Report) -> bool {
        if self.cycle.acks == AckPhase::Starting && self.rounds.started() {
            self.cycle.acks = AckPhase::Feedback;
        }
        if self.cycle.acks == AckPhase::Stopping && self.rounds.started() {
            self.cycle.answers = Answers::Nothing;
            self.cycle.acks = AckPhase::Init;
            if self.state.is_probe_bw() && !report.delivery.app_limited {
                self.bandwidths.advance();
            }
            if self.state.is_probe_bw() && self.cycle.last == LastProbe::Precautionary {
                self.start_refill();
                return true;
            }
        }
        let delivery = &report.delivery;
        if super::loss::is_too_high(delivery.lost, delivery.tx_in_flight) {
            return false;
        }
        if self.long_term().is_some_and(|bound| delivery.tx_in_flight > bound) {
            self.volumes.long_term = Some(Bound::new(delivery.tx_in_flight, self.regime()));
        }
        if self.state == BbrState::Up {
            self.probe_upward(report);
        }
        false
    }

    /// A probe put too much in flight, `tx_in_flight` bytes (draft, HandleInflightTooHigh).
    pub(super) fn handle_inflight_too_high(&mut self, now: Instant, tx_in_flight: Option<u64>) {
        self.cycle.last = LastProbe::TooHigh;
        self.cycle.answers = Answers::Nothing;
        if let Some(tx_in_flight) = tx_in_flight {
            let least = (self.target_inflight() as f64 * super::BETA) as u64;
            self.volumes.long_term = Some(Bound::new(tx_in_flight.max(least), self.regime()));
        }
        if self.state == BbrState::Up {
            self.losses.note_exit_from(BbrState::Up);
            self.start_down(now);
        }
    }
}
