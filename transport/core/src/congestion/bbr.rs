//! BBR version 3 (draft-ietf-ccwg-bbr), made aware of return paths.
//!
//! The code follows the pseudocode of the draft; each function names what it corresponds to. The differences:
//!
//! - the round-trip time of the model is kept per return path (`round_trips`), bounds of the volume in flight move with
//!   the mix of return paths (`volume`), and the rate sampler takes the difference of return delays out of its samples;
//! - losses of a round lower the short-term bounds only if they exceed 2 % (`loss`), and, while acknowledgements return
//!   over another path than the data's, count as excessive only if they are so for longer than a round trip (`recent`);
//! - packets with the CE mark count as losses that end a probe ("ECN" leaves the response open);
//! - persistent congestion takes the place of the retransmission timeout (RFC 9002 §7.6.2).

mod aggregation;
mod bandwidth;
mod control;
mod cycle;
mod full_pipe;
mod loss;
mod probe_rtt;
mod recent;
mod round_trips;
mod rounds;
mod startup;
mod state;
mod volume;

use super::{
    Controller, LossSample, LostPacket, MarkSample, Sample, Sending, SpuriousSample, initial_window,
    minimum_window,
};
use crate::recovery::persistent::Persistence;
use crate::recovery::rate::RateSample;
use crate::time::Instant;
use crate::{Bandwidth, PathId};
use aggregation::{Aggregation, Expected};
use bandwidth::Bandwidths;
use cycle::Cycle;
use full_pipe::FullPipe;
use loss::Losses;
use probe_rtt::ProbeRtt;
use round_trips::RoundTrips;
use rounds::RoundCounter;
use state::BbrState;
use std::time::Duration;
use volume::{Regime, Volumes};

/// A reduction of a short-term bound is no stronger than that (draft, BBR.Beta).
const BETA: f64 = 0.7;

/// Windows do not grow beyond this, so that arithmetic on them cannot overflow.
const LARGEST_WINDOW: u64 = (usize::MAX / 4) as u64;

/// The controller of draft-ietf-ccwg-bbr.
#[derive(Clone, Debug)]
pub struct Bbr {
    datagram_size: u64,
    state: BbrState,
    /// Draft, C.cwnd.
    window: u64,
    /// The last window that neither losses nor a probe of the round-trip time had reduced (draft, BBR.prior_cwnd).
    prior_window: u64,
    /// Draft, C.pacing_rate.
    pacing_rate: Option<Bandwidth>,
    rounds: RoundCounter,
    bandwidths: Bandwidths,
    volumes: Volumes,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    round_trips: RoundTrips,
    cycle: Cycle,
    losses: Losses,
    probe_rtt: ProbeRtt,
    /// True while the flow restarts after being idle (draft, BBR.idle_restart).
    idle_restart: bool,
}

/// An acknowledgement as the parts of the model see it.
#[derive(Clone, Copy, Debug)]
struct Report {
    now: Instant,
    data_path: PathId,
    over: PathId,
    rtt: Option<Duration>,
    sent_at: Instant,
    in_flight: u64,
    delivery: RateSample,
}

impl Bbr {
    /// The initial state for datagrams of `datagram_size` bytes (draft, OnInit).
    pub fn new(datagram_size: usize) -> Self {
        Self {
            datagram_size: datagram_size.max(1) as u64,
            state: BbrState::Startup,
            window: initial_window(datagram_size) as u64,
            prior_window: 0,
            pacing_rate: None,
            rounds: RoundCounter::default(),
            bandwidths: Bandwidths::default(),
            volumes: Volumes::default(),
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::default(),
            round_trips: RoundTrips::default(),
            cycle: Cycle::default(),
            losses: Losses::default(),
            probe_rtt: ProbeRtt::default(),
            idle_restart: false,
        }
    }

    /// Returns the regime on which volumes in flight depend now.
    fn regime(&self) -> Regime {
        Regime { rate: self.bandwidths.bounded(), shift: self.round_trips.shift() }
    }

    /// The long-term bound in bytes, in the regime of now.
    fn long_term(&self) -> Option<u64> {
        self.volumes.long_term.map(|bound| bound.at(self.regime()))
    }

    /// Draft, UpdateModelAndState.
    fn update_model(&mut self, report: &Report) {
        self.rounds.on_acknowledged(&report.delivery);
        self.update_latest(report);
        self.update_congestion_signals(report);
        let expected = Expected { rate: self.bandwidths.bounded(), window: self.window };
        self.aggregation.on_acknowledged(report, self.rounds.count(), expected, &self.round_trips);
        if self.rounds.started() {
            self.full_pipe.on_round(&report.delivery);
        }
        self.check_startup_done(report);
        self.check_drain_done(report);
        self.update_cycle(report);
        let probe = self.round_trips.on_acknowledged(report);
        self.check_probe_rtt(report, probe);
        self.advance_latest(report);
        if self.losses.leave_recovery(report.sent_at) {
            self.restore_window();
        }
    }
}

impl Controller for Bbr {
    /// Draft, OnTransmit and HandleRestartFromIdle.
    fn on_sent(&mut self, sending: &Sending) {
        let in_flight = sending.in_flight as u64;
        if in_flight <= sending.bytes as u64 && sending.app_limited {
            self.idle_restart = true;
            self.aggregation.restart(sending.now);
            if self.state.is_probe_bw() {
                self.set_pacing_rate(1.0);
            } else if self.state == BbrState::ProbeRtt {
                self.check_probe_rtt_done(sending.now);
            }
        }
        if in_flight.saturating_add(self.datagram_size) > self.window {
            self.rounds.on_window_used_up();
        }
    }

    /// Draft, UpdateOnACK.
    fn on_acknowledged(&mut self, sample: &Sample) {
        let Some(delivery) = sample.delivery else { return };
        if self.pacing_rate.is_none() {
            self.initialise_pacing_rate(sample.smoothed_rtt);
        }
        let report = Report {
            now: sample.now,
            data_path: sample.data_path,
            over: sample.acknowledged_over,
            rtt: sample.rtt,
            sent_at: sample.sent_at,
            in_flight: sample.in_flight as u64,
            delivery,
        };
        self.update_model(&report);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_window(&report);
    }

    fn on_packet_lost(&mut self, packet: &LostPacket) {
        self.handle_lost_packet(packet);
    }

    fn on_lost(&mut self, sample: &LossSample) {
        if sample.persistent == Persistence::Persistent {
            // RFC 9002 §7.6.2; draft, OnEnterRTO.
            self.save_window();
            self.window = minimum_window(self.datagram_size as usize) as u64;
        }
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        self.handle_mark(sample);
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        if self.losses.on_spurious(sample) {
            self.handle_spurious_losses();
        }
    }

    fn window(&self) -> usize {
        usize::try_from(self.window.min(LARGEST_WINDOW)).unwrap_or(usize::MAX)
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        self.pacing_rate
    }

    /// Draft, HandleProbeRTT: samples of a flow that empties the queue tell nothing about the bandwidth.
    fn withholds(&self) -> bool {
        self.state == BbrState::ProbeRtt
    }

    fn name(&self) -> &'static str {
        "bbr"
    }

    fn in_slow_start(&self) -> bool {
        self.state == BbrState::Startup
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.datagram_size = datagram_size.max(1) as u64;
        self.window = self.window.max(minimum_window(datagram_size) as u64);
    }
}

#[cfg(test)]
mod tests;
