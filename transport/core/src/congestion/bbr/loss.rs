//! Losses and congestion signals (draft, "Updating the Model Upon Packet Loss").

use super::recent::RecentLosses;
use super::state::BbrState;
use super::volume::Volumes;
use super::{Bbr, Report};
use crate::Bandwidth;
use crate::congestion::{LostPacket, MarkSample, SpuriousSample};
use crate::time::Instant;

/// The loss rate of a round trip that is too high, as one in so many (draft, BBR.LossThresh: 2 %).
const ONE_IN: u64 = 50;

/// The strongest signal of congestion in the current round (draft, BBR.is_loss_in_round).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum Signal {
    #[default]
    Clear,
    Loss,
    Mark,
}

/// Rounds of losses, recovery and what to undo.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Losses {
    signal: Signal,
    /// The round of losses ends when something sent after this many bytes were delivered is acknowledged.
    round_ends_at: u64,
    /// True if the last acknowledgement ended one (draft, BBR.loss_round_start).
    ends_round: bool,
    /// Separate losses in the round.
    events: u32,
    last_lost: Option<u64>,
    recovery: Option<Instant>,
    undo: Option<Undo>,
    recent: RecentLosses,
}

/// The state that a spurious recovery restores (draft, "Undo State").
#[derive(Clone, Copy, Debug)]
struct Undo {
    since: Instant,
    left: Option<BbrState>,
    short_term: Option<Bandwidth>,
    volumes: Volumes,
    lost: u64,
    spurious: u64,
}

/// Returns true if losing `lost` of `in_flight` bytes says that too much was in flight (draft, IsInflightTooHigh).
pub(super) fn is_too_high(lost: u64, in_flight: u64) -> bool {
    lost > in_flight / ONE_IN
}

/// Returns the bytes in flight when losses crossed the threshold (draft, InflightAtLoss).
fn inflight_at_loss(packet: &LostPacket) -> u64 {
    let size = packet.bytes as u64;
    let before = packet.tx_in_flight.saturating_sub(size);
    let lost_before = packet.lost.saturating_sub(size);
    let threshold = 1.0 / ONE_IN as f64;
    let prefix = (before as f64 * threshold - lost_before as f64) / (1.0 - threshold);
    (before as f64 + prefix).max(0.0) as u64
}

impl Losses {
    /// Returns true if the last acknowledgement ended a round of losses.
    pub(super) fn ends_round(&self) -> bool {
        self.ends_round
    }

    /// Separate losses in the round.
    pub(super) fn events(&self) -> u32 {
        self.events
    }

    /// Returns true if packets that left before the last loss was found are still out.
    pub(super) fn in_recovery(&self) -> bool {
        self.recovery.is_some()
    }

    /// Draft, ResetCongestionSignals.
    pub(super) fn reset(&mut self) {
        self.signal = Signal::Clear;
    }

    /// A packet that left at `sent_at` was acknowledged; whether that ends the recovery (RFC 9002 §7.3.2).
    pub(super) fn leave_recovery(&mut self, sent_at: Instant) -> bool {
        let left = self.recovery.is_some_and(|started| sent_at > started);
        if left {
            self.recovery = None;
        }
        left
    }

    /// Notes that losses make the flow leave `state`, to which it returns when they prove spurious (draft,
    /// BBR.undo_state).
    pub(super) fn note_exit_from(&mut self, state: BbrState) {
        if let Some(undo) = &mut self.undo {
            undo.left = Some(state);
        }
    }

    /// A packet is not lost; whether all losses of the recovery were none.
    pub(super) fn on_spurious(&mut self, sample: &SpuriousSample) -> bool {
        let Some(undo) = self.undo.as_mut().filter(|undo| undo.since <= sample.lost_at) else {
            return false;
        };
        undo.spurious = undo.spurious.saturating_add(sample.bytes as u64);
        undo.spurious >= undo.lost
    }

    /// Counts ranges of numbers that were lost together once.
    fn count(&mut self, number: u64) {
        if self.last_lost.is_none_or(|last| last.checked_add(1) != Some(number)) {
            self.events = self.events.saturating_add(1);
        }
        self.last_lost = Some(number);
    }
}

impl Bbr {
    /// Draft, HandleLostPacket.
    pub(super) fn handle_lost_packet(&mut self, packet: &LostPacket) {
        self.note_loss(packet);
        if !self.cycle.is_answered_by_losses() || !self.are_excessive(packet.lost, packet.tx_in_flight) {
            return;
        }
        let tx_in_flight = (!packet.app_limited).then(|| inflight_at_loss(packet));
        self.handle_inflight_too_high(packet.now, tx_in_flight);
    }

    /// Draft, NoteLoss and SaveStateUponLoss, the latter when recovery begins.
    fn note_loss(&mut self, packet: &LostPacket) {
        if self.losses.recovery.is_none() {
            self.save_window();
            self.losses.recovery = Some(packet.now);
            self.losses.undo = Some(Undo {
                since: packet.now,
                left: None,
                short_term: self.bandwidths.short_term(),
                volumes: self.volumes,
                lost: 0,
                spurious: 0,
            });
        }
        if let Some(undo) = &mut self.losses.undo {
            undo.lost = undo.lost.saturating_add(packet.bytes as u64);
        }
        self.losses.recent.on_lost(packet.bytes as u64);
        self.note_congestion(Signal::Loss, packet.total_delivered);
        self.losses.count(packet.number);
    }

    /// Returns true if losing `lost` of `in_flight` bytes of a round trip is too much (draft, IsInflightTooHigh), and
    /// was so for longer if acknowledgements return over another path than the data's.
    fn are_excessive(&self, lost: u64, in_flight: u64) -> bool {
        is_too_high(lost, in_flight) && self.losses.recent.confirms(is_too_high)
    }

    /// The round had congestion: it ends a round trip after the first signal.
    fn note_congestion(&mut self, signal: Signal, delivered: u64) {
        if self.losses.signal == Signal::Clear {
            self.losses.round_ends_at = delivered;
        }
        self.losses.signal = self.losses.signal.max(signal);
    }

    /// A CE mark ends a probe at once, and lowers the short-term bounds once a round otherwise (draft, "ECN": it MUST
    /// be treated as congestion). No spurious loss takes it back.
    pub(super) fn handle_mark(&mut self, sample: &MarkSample) {
        self.losses.undo = None;
        self.note_congestion(Signal::Mark, self.rounds.delivered());
        if self.state == BbrState::Startup {
            self.declare_pipe_full();
            self.enter_drain();
        } else if self.cycle.is_answered_by_losses() {
            let safe = self.bandwidth_delay_product().max(self.volumes.latest);
            self.handle_inflight_too_high(sample.now, Some(safe));
        }
    }

    /// Draft, UpdateLatestDeliverySignals.
    pub(super) fn update_latest(&mut self, report: &Report) {
        let longest = self.round_trips.longest().unwrap_or_default();
        self.losses.recent.on_acknowledged(report, longest);
        self.bandwidths.on_sample(&report.delivery);
        self.volumes.latest = self.volumes.latest.max(report.delivery.delivered);
        self.losses.ends_round = report.delivery.prior_delivered >= self.losses.round_ends_at;
        if self.losses.ends_round {
            self.losses.round_ends_at = report.delivery.total_delivered;
        }
    }

    /// Draft, UpdateCongestionSignals and AdaptLowerBoundsFromCongestion.
    ///
    /// The draft lowers the bounds after every round with a loss, which at 1 % of loss costs a sixth of the rate on a path
    /// of 50 ms. Here losses of a round count once they exceed the threshold that the draft has for probes.
    pub(super) fn update_congestion_signals(&mut self, report: &Report) {
        if !self.losses.ends_round {
            return;
        }
        let delivery = &report.delivery;
        let congested = match self.losses.signal {
            Signal::Clear => false,
            Signal::Loss => self.are_excessive(delivery.lost, delivery.tx_in_flight),
            Signal::Mark => true,
        };
        if congested && !self.state.is_probing() {
            self.bandwidths.on_congestion();
            let regime = self.regime();
            self.volumes.on_congestion(self.window, regime);
        }
        self.losses.signal = Signal::Clear;
    }

    /// Draft, AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest(&mut self, report: &Report) {
        if self.losses.ends_round {
            self.bandwidths.start_round(&report.delivery);
            self.volumes.latest = report.delivery.delivered;
            self.losses.events = 0;
        }
    }

    /// Draft, ResetShortTermModel.
    pub(super) fn reset_short_term(&mut self) {
        self.bandwidths.forget_short_term();
        self.volumes.short_term = None;
    }

    /// Draft, HandleSpuriousLossDetection.
    pub(super) fn handle_spurious_losses(&mut self) {
        let Some(undo) = self.losses.undo.take() else { return };
        self.restore_window();
        self.losses.reset();
        self.full_pipe.look_again(Bandwidth::default());
        self.bandwidths.restore(undo.short_term);
        let regime = self.regime();
        self.volumes.restore(&undo.volumes, regime);
        match undo.left {
            Some(BbrState::Startup) if self.state != BbrState::Startup => {
                self.full_pipe.retract();
                if self.state != BbrState::ProbeRtt {
                    self.enter_startup();
                }
            }
            Some(BbrState::Up) if !matches!(self.state, BbrState::Up | BbrState::ProbeRtt) => {
                self.start_refill()
            }
            _ => {}
        }
    }
}
