//! PCC Vivace as published (Dong et al., NSDI 2018), with the latency utility: the rate climbs the gradient of a utility
//! that experiments measure.
//!
//! Time is cut into monitor intervals of a round trip. A pair of them tries a rate a little above and one a little below the
//! present one; the utility of each, which rewards rate and punishes losses and growing delay, says which way to go and how
//! far (§4.2). If the higher rate seems to lose less, where a twentieth is lost, a second pair checks that (§4.3).
//!
//! Some things differ because this is QUIC: delays are compared only among samples of one return path (see `monitor`).
//! Intervals that the application left idle say nothing. Two round trips' worth may be in flight, so that a path which
//! stops answering is not flooded; its probe timeouts and persistent congestion take the place of the paper's timeout of an
//! interval (RFC 9002 §6.2, §7.6). In the starting phase a queue that empties is no merit: it is that of the initial window,
//! which leaves in a burst (§7.2). A mark counts as a loss (§7.1). A loss that turns out spurious is taken off its
//! interval while that is not judged yet; a judgement stands, for the next trials correct what it changed.
//!
//! [`VivaceRadio`] is the variant for channels whose delay varies by itself: intervals are the same, the decisions are others.

mod monitor;
mod published;
mod radio;
mod rate;
mod step;

use super::{Controller, LossSample, MarkSample, Sample, Sending, SpuriousSample};
use crate::Bandwidth;
use crate::recovery::persistent::Persistence;
use crate::time::Instant;
use monitor::{Monitor, Monitors, Purpose};
pub use published::Published;
pub use radio::Radio;
use rate::SendingRate;
use std::fmt;
use step::RateStep;

/// Trials are this share above and below the rate (ε; §4.2).
const TRIAL: f64 = 0.05;

/// The rate, and the intervals that measure it.
#[derive(Clone, Debug)]
pub struct Intervals {
    rate: SendingRate,
    step: RateStep,
    monitors: Monitors,
}

impl Intervals {
    fn new(rate: SendingRate) -> Self {
        Self { rate, step: RateStep::default(), monitors: Monitors::default() }
    }
}

/// The decisions of a variant: which rates are tried, and what follows from the results.
pub(super) trait Decisions: Clone + Default + Send + fmt::Debug + 'static {
    /// The name of the controller.
    const NAME: &'static str;

    /// Returns true in the starting phase.
    fn is_starting(&self) -> bool;

    /// The next interval and its rate: a trial if one is due, else one at the rate itself until the results are in.
    fn next(&mut self, intervals: &Intervals, rate: f64) -> (f64, Purpose);

    /// Learns from an interval all of whose packets are accounted for.
    fn learn(&mut self, intervals: &mut Intervals, monitor: &Monitor, now: Instant);

    /// A packet is about to count as sent.
    fn on_sending(&mut self, _intervals: &mut Intervals, _sending: &Sending) {}

    /// Packets were acknowledged, and nothing was learnt from it yet.
    fn on_sample(&mut self, _intervals: &mut Intervals) {}

    /// Packets were acknowledged, and what followed from complete intervals is learnt.
    fn on_sampled(&mut self, _intervals: &mut Intervals, _sample: &Sample) {}
}

/// The controller of Dong et al. with the decisions of the paper, or with those of a variant.
#[derive(Clone, Debug)]
pub struct Vivace<D = Published> {
    intervals: Intervals,
    decisions: D,
}

/// The controller of Dong et al., for radios.
pub type VivaceRadio = Vivace<Radio>;

impl<D: Decisions> Vivace<D> {
    /// The initial state for datagrams of `datagram_size` bytes.
    pub fn new(datagram_size: usize) -> Self {
        Self::with(SendingRate::new(datagram_size))
    }

    fn with(rate: SendingRate) -> Self {
        Self { intervals: Intervals::new(rate), decisions: D::default() }
    }

    fn begin_interval(&mut self, now: Instant) {
        let Some(rate) = self.intervals.rate.get() else { return };
        let (rate, purpose) = self.decisions.next(&self.intervals, rate);
        let interval = self.intervals.rate.interval(rate);
        self.intervals.monitors.begin(Monitor::new(purpose, rate, now, interval));
    }
}

impl<D: Decisions> Controller for Vivace<D> {
    fn on_sent(&mut self, sending: &Sending) {
        self.decisions.on_sending(&mut self.intervals, sending);
        if self.intervals.rate.get().is_some() && self.intervals.monitors.is_over(sending.now) {
            self.begin_interval(sending.now);
        }
        self.intervals.monitors.on_sent(sending.bytes);
    }

    fn on_acknowledged(&mut self, sample: &Sample) {
        self.decisions.on_sample(&mut self.intervals);
        if !self.intervals.rate.on_sample(sample) {
            return;
        }
        self.intervals.monitors.on_sample(sample);
        // Losses show up to an eighth of a round trip after what was sent next (RFC 9002 §6.1.2).
        while let Some(monitor) = self.intervals.monitors.complete(sample.sent_at, sample.smoothed_rtt / 8) {
            self.decisions.learn(&mut self.intervals, &monitor, sample.now);
        }
        self.decisions.on_sampled(&mut self.intervals, sample);
    }

    fn on_lost(&mut self, sample: &LossSample) {
        if sample.persistent == Persistence::Persistent {
            // RFC 9002 §7.6.2: two datagrams, and then from the beginning as if nothing were known.
            *self = Self::with(self.intervals.rate.collapsed());
            return;
        }
        self.intervals.monitors.on_lost(sample.largest_sent_at, sample.bytes);
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        // RFC 9002 §7.1: a mark counts as a loss.
        self.intervals.monitors.on_lost(sample.sent_at, self.intervals.rate.datagram_size());
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        self.intervals.monitors.on_spurious(sample.sent_at, sample.bytes);
    }

    fn window(&self) -> usize {
        self.intervals.rate.window()
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        let rate = self.intervals.monitors.rate().or(self.intervals.rate.get())?;
        Some(Bandwidth::from_bits_per_second(rate as u64))
    }

    fn name(&self) -> &'static str {
        D::NAME
    }

    fn in_slow_start(&self) -> bool {
        self.decisions.is_starting()
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.intervals.rate.set_datagram_size(datagram_size);
    }
}
