//! From the model to the pacing rate and the window (draft, "Updating Control Parameters").

use super::bandwidth::scaled;
use super::state::BbrState;
use super::{Bbr, LARGEST_WINDOW, Report};
use crate::Bandwidth;
use crate::congestion::initial_window;
use std::time::Duration;

/// The share of the bandwidth that is paced, so that queues drain (draft, BBR.PacingMarginPercent: 1 %).
const MARGIN: f64 = 0.99;

/// The time's worth of data that is sent together, and its limit in bytes (draft, SetSendQuantum).
const QUANTUM: Duration = Duration::from_millis(1);
const LARGEST_QUANTUM: u64 = 64 * 1024;

/// Datagrams for acknowledgements of every other one to keep the pipe busy (draft, BBR.MinPipeCwnd).
const PIPELINE: u64 = 4;

impl Bbr {
    /// Draft, InitPacingRate.
    pub(super) fn initialise_pacing_rate(&mut self, smoothed_rtt: Duration) {
        let nominal = Bandwidth::of(self.initial_window(), smoothed_rtt.max(Duration::from_micros(1)));
        let nominal = nominal.max(Bandwidth::from_bits_per_second(1));
        self.pacing_rate = Some(scaled(nominal, BbrState::Startup.pacing_gain()));
    }

    /// Draft, SetPacingRateWithGain.
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = scaled(self.bandwidths.bounded(), gain * MARGIN);
        if rate == Bandwidth::default() {
            return;
        }
        if self.full_pipe.was_full() || self.pacing_rate.is_none_or(|current| rate > current) {
            self.pacing_rate = Some(rate);
        }
    }

    fn initial_window(&self) -> u64 {
        initial_window(self.datagram_size as usize) as u64
    }

    /// Draft, BBR.MinPipeCwnd.
    pub(super) fn least_window(&self) -> u64 {
        self.datagram_size.saturating_mul(PIPELINE)
    }

    /// Draft, SetSendQuantum and UpdateOffloadBudget for QUIC.
    fn quantum(&self) -> u64 {
        let bytes = self.pacing_rate.map_or(0, |rate| rate.bytes_in(QUANTUM));
        bytes.min(LARGEST_QUANTUM).max(self.datagram_size.saturating_mul(2))
    }

    /// `gain` times `rate` for the time `rtt` (draft, BDPMultiple).
    fn multiple(&self, rate: Bandwidth, rtt: Option<Duration>, gain: f64) -> u64 {
        rtt.map_or(self.initial_window(), |rtt| (rate.bytes_in(rtt) as f64 * gain) as u64)
    }

    /// Draft, QuantizationBudget.
    fn quantized(&self, bytes: u64) -> u64 {
        let bytes = bytes.max(self.quantum()).max(self.least_window());
        let more = if self.state == BbrState::Up { self.datagram_size.saturating_mul(2) } else { 0 };
        bytes.saturating_add(more).min(LARGEST_WINDOW)
    }

    /// Returns the bandwidth-delay product in bytes, which fills the pipe without a queue (draft, BBR.bdp): the mean
    /// over the return paths.
    pub(super) fn bandwidth_delay_product(&self) -> u64 {
        self.multiple(self.bandwidths.bounded(), self.round_trips.mean(), 1.0)
    }

    /// Draft, Inflight with a gain of 1.
    pub(super) fn inflight(&self, rate: Bandwidth) -> u64 {
        self.quantized(self.multiple(rate, self.round_trips.mean(), 1.0))
    }

    /// Draft, TargetInflight.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bandwidth_delay_product().min(self.window)
    }

    /// Draft, ProbeRTTCwnd.
    pub(super) fn probe_rtt_window(&self) -> u64 {
        let (rate, gain) = (self.bandwidths.bounded(), BbrState::ProbeRtt.window_gain());
        self.multiple(rate, self.round_trips.mean(), gain).max(self.least_window())
    }

    /// Enough in flight for every return path in use lately (draft, UpdateMaxInflight).
    fn max_inflight(&self) -> u64 {
        let (rate, gain) = (self.bandwidths.bounded(), self.state.window_gain());
        let product = self.multiple(rate, self.round_trips.longest(), gain);
        self.quantized(product.saturating_add(self.aggregation.bytes()))
    }

    /// Draft, SetCwnd.
    pub(super) fn set_window(&mut self, report: &Report) {
        let most = self.max_inflight();
        let grown = self.window.saturating_add(report.delivery.newly_acknowledged);
        if self.full_pipe.was_full() {
            self.window = grown.min(most);
        } else if self.window < most || report.delivery.total_delivered < self.initial_window() {
            self.window = grown;
        }
        self.window = self.window.max(self.least_window()).min(LARGEST_WINDOW);
        if self.state == BbrState::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.bound_window();
    }

    /// Draft, BoundCwndForModel.
    fn bound_window(&mut self) {
        let long_term = match self.state {
            BbrState::Startup | BbrState::Drain => None,
            BbrState::ProbeRtt | BbrState::Cruise => self.with_headroom(),
            BbrState::Down | BbrState::Refill | BbrState::Up => self.long_term(),
        };
        let short_term = self.volumes.short_term.map(|bound| bound.at(self.regime()));
        if let Some(bound) = long_term.into_iter().chain(short_term).min() {
            self.window = self.window.min(bound.max(self.least_window()));
        }
    }

    /// Draft, SaveCwnd.
    pub(super) fn save_window(&mut self) {
        let reduced = self.losses.in_recovery() || self.state == BbrState::ProbeRtt;
        self.prior_window = if reduced { self.prior_window.max(self.window) } else { self.window };
    }

    /// Draft, RestoreCwnd.
    pub(super) fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }
}
