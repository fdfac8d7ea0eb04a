//! CUBIC (RFC 9438): the window grows with the cube of the time since the last reduction, independent of the
//! round-trip time.

use super::hystart::{Advice, HyStart};
use super::period::Period;
use super::{
    Controller, LossSample, MarkSample, Sample, SpuriousSample, initial_window, minimum_window,
    slow_start_rate,
};
use crate::Bandwidth;
use crate::recovery::interruption::Cause;
use crate::recovery::persistent::Persistence;
use crate::time::Instant;
use std::time::Duration;

/// Aggressiveness, in datagrams per second cubed (RFC 9438 §5.1).
const C: f64 = 0.4;
/// The share of the window that a reduction leaves (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// Growth of the Reno-friendly estimate, in datagrams per window (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Windows do not grow beyond this.
const LARGEST_WINDOW: f64 = (1u64 << 48) as f64;

/// The controller of RFC 9438, with HyStart++ in the first slow start.
#[derive(Clone, Debug)]
pub struct Cubic {
    datagram_size: usize,
    /// Bytes; fractions accumulate.
    window: f64,
    slow_start_threshold: f64,
    /// The window before the last reduction, lowered by fast convergence (W_max).
    plateau: f64,
    /// The window before the last reduction (cwnd_prior).
    prior: f64,
    epoch: Option<Epoch>,
    recovery: Period<Before>,
    /// The time since which the application has had too little to send.
    limited_since: Option<Instant>,
    /// Only in the first slow start (RFC 9406 §4.3).
    hystart: Option<HyStart>,
    smoothed_rtt: Option<Duration>,
}

/// One stage of congestion avoidance (RFC 9438 §4.2).
#[derive(Clone, Copy, Debug)]
struct Epoch {
    started: Instant,
    /// Seconds until the plateau is reached again (K, Eq. 2).
    period: f64,
    plateau: f64,
    /// The window that Reno would have by now (W_est).
    estimate: f64,
}

/// The state that a reduction changes, so that a spurious one can be undone (RFC 9438 §4.9.2).
#[derive(Clone, Copy, Debug)]
struct Before {
    at: Instant,
    window: f64,
    slow_start_threshold: f64,
    plateau: f64,
    prior: f64,
    epoch: Option<Epoch>,
    hystart: Option<HyStart>,
}

impl Epoch {
    fn new(now: Instant, window: f64, plateau: f64, datagram: f64) -> Self {
        let plateau = plateau.max(window);
        let period = ((plateau - window) / datagram / C).cbrt();
        Self { started: now, period, plateau, estimate: window }
    }

    /// The window `seconds` after the start (W_cubic, Eq. 1), in bytes.
    fn window_at(&self, seconds: f64, datagram: f64) -> f64 {
        C * (seconds - self.period).powi(3) * datagram + self.plateau
    }
}

impl Cubic {
    /// The initial state for datagrams of `datagram_size` bytes.
    pub fn new(datagram_size: usize) -> Self {
        Self {
            datagram_size,
            window: initial_window(datagram_size) as f64,
            slow_start_threshold: f64::INFINITY,
            plateau: 0.0,
            prior: 0.0,
            epoch: None,
            recovery: Period::default(),
            limited_since: None,
            hystart: Some(HyStart::default()),
            smoothed_rtt: None,
        }
    }

    /// Returns the same controller with the slow start of RFC 9002 §7.3.1, which ends with the first loss.
    pub fn without_hystart(mut self) -> Self {
        self.hystart = None;
        self
    }

    fn datagram(&self) -> f64 {
        self.datagram_size.max(1) as f64
    }

    fn smallest(&self) -> f64 {
        minimum_window(self.datagram_size) as f64
    }

    fn set_window(&mut self, window: f64) {
        self.window = window.min(LARGEST_WINDOW).max(self.smallest());
    }

    fn grow_in_slow_start(&mut self, sample: &Sample) {
        let rtt = sample.rtt.map(|rtt| (sample.acknowledged_over, rtt));
        let advice = match &mut self.hystart {
            Some(hystart) => hystart.on_acknowledged(sample.now, sample.sent_at, sample.bytes, rtt),
            None => Advice::Grow(sample.bytes),
        };
        match advice {
            Advice::Grow(bytes) => self.set_window(self.window + bytes as f64),
            Advice::Leave => {
                self.slow_start_threshold = self.window;
                self.hystart = None;
            }
        }
    }

    /// Congestion avoidance (RFC 9438 §4.2 to §4.5).
    fn avoid(&mut self, sample: &Sample) {
        let (datagram, window) = (self.datagram(), self.window);
        let mut epoch = self.epoch.unwrap_or_else(|| Epoch::new(sample.now, window, self.plateau, datagram));
        let seconds = sample.now.since(epoch.started).as_secs_f64();
        let share = sample.bytes as f64 / window;
        // RFC 9438 §4.3: beyond the window of the last reduction the estimate grows as Reno does.
        let alpha = if epoch.estimate < self.prior { ALPHA } else { 1.0 };
        epoch.estimate = (epoch.estimate + alpha * share * datagram).min(LARGEST_WINDOW);
        let grown = if epoch.window_at(seconds, datagram) < epoch.estimate {
            window.max(epoch.estimate)
        } else {
            let ahead = seconds + sample.smoothed_rtt.as_secs_f64();
            let target = epoch.window_at(ahead, datagram).clamp(window, window * 1.5);
            // An acknowledgement of more than a window says no more than one of a window.
            window + (target - window) * share.min(1.0)
        };
        self.epoch = Some(epoch);
        self.set_window(grown);
    }

    /// Multiplicative decrease with fast convergence (RFC 9438 §4.6, §4.7).
    fn reduce(&mut self) {
        self.prior = self.window;
        self.plateau =
            if self.window < self.plateau { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.slow_start_threshold = (self.window * BETA).max(self.smallest());
        self.window = self.slow_start_threshold;
        self.epoch = None;
        self.hystart = None;
        self.limited_since = None;
    }

    /// Slow start leads back to the window of `before` an interruption, which was not too large, and beyond it if it had not
    /// ended yet. The window itself is reduced as for any loss.
    ///
    /// RFC 9438 §4.6 reduces the threshold, too: it knows no losses but those of congestion. RFC 4015 and RFC 5682 keep it
    /// likewise where a timeout turns out to be none of congestion.
    fn keep_threshold(&mut self, before: &Before) {
        self.slow_start_threshold = before.slow_start_threshold.max(before.window);
        self.plateau = before.plateau.max(before.window);
        self.hystart = before.hystart;
    }

    fn remember(&self, at: Instant) -> Before {
        Before {
            at,
            window: self.window,
            slow_start_threshold: self.slow_start_threshold,
            plateau: self.plateau,
            prior: self.prior,
            epoch: self.epoch,
            hystart: self.hystart,
        }
    }
}

impl Controller for Cubic {
    fn on_acknowledged(&mut self, sample: &Sample) {
        self.smoothed_rtt = Some(sample.smoothed_rtt);
        if sample.app_limited {
            // RFC 9002 §7.8, RFC 9438 §5.8: neither the window nor its clock advances.
            self.limited_since.get_or_insert(sample.now);
            return;
        }
        if let Some(since) = self.limited_since.take()
            && let Some(epoch) = &mut self.epoch
        {
            epoch.started += sample.now.since(since);
        }
        if self.recovery.covers(sample.sent_at) {
            return;
        }
        if self.in_slow_start() {
            self.grow_in_slow_start(sample);
        } else {
            self.avoid(sample);
        }
    }

    fn on_lost(&mut self, sample: &LossSample) {
        let before = self.remember(sample.now);
        if self.recovery.on_lost(sample, before) {
            self.reduce();
            if sample.cause == Cause::Interruption {
                self.keep_threshold(&before);
            }
        }
        if sample.persistent == Persistence::Persistent {
            // RFC 9002 §7.6.2; RFC 9438 §4.8.
            self.window = self.smallest();
            self.recovery = Period::default();
            self.epoch = None;
        }
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        if self.recovery.on_mark(sample) {
            self.reduce();
        }
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        // RFC 9438 §4.9.2.
        let Some(before) = self.recovery.on_spurious(sample) else { return };
        self.window = self.window.max(before.window);
        self.slow_start_threshold = self.slow_start_threshold.max(before.slow_start_threshold);
        self.plateau = before.plateau;
        self.prior = before.prior;
        self.hystart = before.hystart;
        self.epoch = before.epoch.map(|mut epoch| {
            epoch.started += sample.now.since(before.at);
            epoch
        });
    }

    fn window(&self) -> usize {
        (self.window + 0.5) as usize
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        if self.in_slow_start() { slow_start_rate(self.window(), self.smoothed_rtt) } else { None }
    }

    fn name(&self) -> &'static str {
        "cubic"
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.slow_start_threshold
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.datagram_size = datagram_size;
        self.set_window(self.window);
    }
}

#[cfg(test)]
mod tests;
