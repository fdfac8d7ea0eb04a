//! Monitor intervals: what was sent in each, and what became of it (§3 and §4 of the paper).

use crate::PathId;
use crate::congestion::Sample;
use crate::congestion::queueing::Reading;
use crate::time::Instant;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::time::Duration;

/// Exponent of the rate in the utility (t; §3.1).
const EXPONENT: f64 = 0.9;
/// Weight of growing delay (b; §3.1).
const DELAY_WEIGHT: f64 = 900.0;
/// Weight of losses (c; §3.1): up to a twentieth is tolerated.
const LOSS_WEIGHT: f64 = 11.35;
/// An interval in which less than this share of its rate was sent says nothing about the rate.
const USED: f64 = 0.8;
/// Intervals that wait for acknowledgements at most; then the newest are given up, or none would ever be accounted for.
const MOST_PENDING: usize = 32;
/// Fewer samples make no slope of which something can be learnt.
const LEAST_SAMPLES: f64 = 3.0;
/// Return paths told apart in an interval.
const MOST_RETURN_PATHS: usize = 16;

/// The purpose of an interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::congestion) enum Purpose {
    /// It measures a rate of the starting phase.
    Start,
    /// It measures a rate of a climb without trials.
    Climb,
    /// It is the trial above the rate.
    Above,
    /// It is the trial below.
    Below,
    /// It fills the time until results are in.
    Fill,
}

/// The measurements of an interval.
#[derive(Clone, Copy, Debug)]
pub(in crate::congestion) struct IntervalStats {
    /// Bits per second that were sent.
    pub rate: f64,
    /// The share of them that was lost.
    pub loss: f64,
    /// The growth of delay, in seconds a second.
    pub slope: f64,
    /// Seconds that it lasted.
    pub length: f64,
    /// The least delay beyond the smallest round trip, in seconds.
    pub delay: f64,
    /// The smallest round trip in seconds.
    pub base: f64,
}

/// The slope of delays over time, by least squares. Sums are of differences to the first sample.
#[derive(Clone, Copy, Debug)]
struct Fit {
    over: PathId,
    first: (Instant, Duration),
    count: f64,
    time: f64,
    delay: f64,
    time_squared: f64,
    product: f64,
}

impl Fit {
    fn new(over: PathId, sent_at: Instant, delay: Duration) -> Self {
        let first = (sent_at, delay);
        Self { over, first, count: 0.0, time: 0.0, delay: 0.0, time_squared: 0.0, product: 0.0 }
    }

    fn offer(&mut self, sent_at: Instant, delay: Duration) {
        let time = sent_at.since(self.first.0).as_secs_f64();
        let delay = delay.as_secs_f64() - self.first.1.as_secs_f64();
        self.count += 1.0;
        self.time += time;
        self.delay += delay;
        self.time_squared += time * time;
        self.product += time * delay;
    }

    /// Covariance and variance, each times the number of samples.
    fn moments(&self) -> (f64, f64) {
        let count = self.count.max(1.0);
        (self.product - self.time * self.delay / count, self.time_squared - self.time * self.time / count)
    }
}

/// One monitor interval.
#[derive(Clone, Debug)]
pub(in crate::congestion) struct Monitor {
    /// The purpose of the interval.
    pub purpose: Purpose,
    /// Bits per second.
    rate: f64,
    started: Instant,
    length: Duration,
    sent: f64,
    lost: f64,
    /// The least queueing delay, and the smallest round trip beside it.
    least: Option<Reading>,
    fits: SmallVec<[Fit; 2]>,
}

impl Monitor {
    /// An interval at `rate` bits per second.
    pub(super) fn new(purpose: Purpose, rate: f64, started: Instant, length: Duration) -> Self {
        Self { purpose, rate, started, length, sent: 0.0, lost: 0.0, least: None, fits: SmallVec::new() }
    }

    fn ends(&self) -> Instant {
        self.started + self.length
    }

    fn covers(&self, sent_at: Instant) -> bool {
        self.started <= sent_at && sent_at < self.ends()
    }

    fn on_sample(&mut self, over: PathId, sent_at: Instant, reading: Reading) {
        let delay = reading.queueing;
        if self.least.is_none_or(|least| delay < least.queueing) {
            self.least = Some(reading);
        }
        if let Some(fit) = self.fits.iter_mut().find(|fit| fit.over == over) {
            fit.offer(sent_at, delay);
        } else if self.fits.len() < MOST_RETURN_PATHS {
            let mut fit = Fit::new(over, sent_at, delay);
            fit.offer(sent_at, delay);
            self.fits.push(fit);
        }
    }

    /// The growth of delay, in seconds a second: what the samples of each return path show, taken together.
    pub(super) fn slope(&self) -> f64 {
        let moments = self.fits.iter().map(Fit::moments);
        let (product, square) = moments.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        if square > 0.0 { (product / square).clamp(-1.0, 1e3) } else { 0.0 }
    }

    /// Returns the interval's measurements of the channel, if there were samples enough.
    pub(super) fn seen(&self) -> Option<IntervalStats> {
        let least = self.least?;
        let length = self.length.as_secs_f64().max(1e-6);
        let count: f64 = self.fits.iter().map(|fit| fit.count).sum();
        (count >= LEAST_SAMPLES).then(|| IntervalStats {
            rate: self.sent * 8.0 / length,
            loss: self.loss(),
            slope: self.slope(),
            length,
            delay: least.queueing.as_secs_f64(),
            base: least.base.as_secs_f64(),
        })
    }

    /// The share of what was sent that was lost.
    pub(super) fn loss(&self) -> f64 {
        (self.lost / self.sent.max(1.0)).clamp(0.0, 1.0)
    }

    /// The utility x^t − b x dRTT/dT − c x L of its rate x in Mbit/s (Eq. 2) if delay grew by `slope`; `None` if the rate was
    /// not used up.
    pub(super) fn utility(&self, slope: f64) -> Option<f64> {
        let planned = self.rate / 8.0 * self.length.as_secs_f64();
        if self.sent < USED * planned {
            return None;
        }
        let rate = self.rate / 1e6;
        Some(rate.powf(EXPONENT) - DELAY_WEIGHT * rate * slope - LOSS_WEIGHT * rate * self.loss())
    }
}

/// The interval that runs and those whose packets are not all accounted for.
#[derive(Clone, Debug, Default)]
pub(super) struct Monitors {
    all: VecDeque<Monitor>,
}

impl Monitors {
    /// Returns true if the running interval has ended by `now`, or there is none.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.all.back().is_none_or(|monitor| now >= monitor.ends())
    }

    /// Returns true if no interval that runs or is not accounted for is of use.
    pub(super) fn awaits_nothing(&self) -> bool {
        self.all.iter().all(|monitor| monitor.purpose == Purpose::Fill)
    }

    /// Starts the next interval.
    pub(super) fn begin(&mut self, monitor: Monitor) {
        if self.all.len() >= MOST_PENDING {
            self.all.pop_back();
        }
        self.all.push_back(monitor);
    }

    /// The rate of the running interval in bits per second.
    pub(super) fn rate(&self) -> Option<f64> {
        self.all.back().map(|monitor| monitor.rate)
    }

    /// Discards all intervals, which serve no purpose any more; the next one begins with the next packet.
    pub(super) fn discard(&mut self) {
        self.all.clear();
    }

    /// `bytes` leave in the running interval.
    pub(super) fn on_sent(&mut self, bytes: usize) {
        if let Some(monitor) = self.all.back_mut() {
            monitor.sent += bytes as f64;
        }
    }

    /// A round-trip time, of the interval in which its packet left.
    pub(super) fn on_sample(&mut self, sample: &Sample) {
        let (Some(reading), sent_at) = (Reading::of(sample), sample.sent_at) else { return };
        if let Some(monitor) = self.all.iter_mut().find(|monitor| monitor.covers(sent_at)) {
            monitor.on_sample(sample.acknowledged_over, sent_at, reading);
        }
    }

    /// `bytes` that left at `sent_at` are lost.
    pub(super) fn on_lost(&mut self, sent_at: Instant, bytes: usize) {
        if let Some(monitor) = self.all.iter_mut().find(|monitor| monitor.covers(sent_at)) {
            monitor.lost += bytes as f64;
        }
    }

    /// `bytes` that left at `sent_at` and counted as lost are not.
    pub(super) fn on_spurious(&mut self, sent_at: Instant, bytes: usize) {
        if let Some(monitor) = self.all.iter_mut().find(|monitor| monitor.covers(sent_at)) {
            monitor.lost = (monitor.lost - bytes as f64).max(0.0);
        }
    }

    /// The oldest interval, if a packet that left `grace` after its end is acknowledged: the last packet of `sent_at`.
    pub(super) fn complete(&mut self, sent_at: Instant, grace: Duration) -> Option<Monitor> {
        let first = self.all.front()?;
        if sent_at >= first.ends() + grace { self.all.pop_front() } else { None }
    }
}
