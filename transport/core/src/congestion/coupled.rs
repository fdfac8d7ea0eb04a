//! Coupled controllers: the paths of one connection together take what one flow would (RFC 6356 §2).
//!
//! Slow start, recovery and persistent congestion are those of NewReno (RFC 9002 §7) with HyStart++ (RFC 9406). The
//! gain of the window in congestion avoidance, and the rest that a loss leaves of it, are a [`Rule`]: a pure function
//! of what the path and its siblings show of themselves.

use super::hystart::{Advice, HyStart};
use super::period::Period;
use super::{
    Controller, LossSample, MarkSample, Sample, SpuriousSample, initial_window, minimum_window,
    slow_start_rate,
};
use crate::recovery::persistent::Persistence;
use crate::{Bandwidth, PathId};
use smallvec::SmallVec;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

/// Windows do not grow beyond this.
const LARGEST_WINDOW: f64 = (1u64 << 48) as f64;

/// The divisor of the smallest round-trip time that gives the queueing delay from which on a queue counts as standing.
const QUEUE_DIVISOR: u32 = 4;

/// The state that a coupled path shows its siblings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flow {
    /// The path.
    pub path: PathId,
    /// The window in bytes.
    pub window: f64,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The larger of the bytes acknowledged between its last two losses and of those since the last.
    pub between_losses: u64,
}

impl Flow {
    /// The round-trip time in seconds, never 0.
    fn seconds(&self) -> f64 {
        self.rtt.as_secs_f64().max(1e-6)
    }

    /// Bytes a second.
    pub(super) fn rate(&self) -> f64 {
        self.window / self.seconds()
    }

    /// Window over round-trip time squared.
    pub(super) fn pull(&self) -> f64 {
        self.window / (self.seconds() * self.seconds())
    }

    /// Returns OLIA's quality of the path: bytes between losses, squared, over the round-trip time.
    pub(super) fn quality(&self) -> f64 {
        (self.between_losses as f64).powi(2) / self.seconds()
    }
}

/// The coupled paths of a connection as one of them sees them.
#[derive(Clone, Copy, Debug)]
pub struct Family<'a> {
    /// The path itself.
    pub own: &'a Flow,
    /// The others.
    pub others: &'a [Flow],
}

impl Family<'_> {
    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Flow> {
        std::iter::once(self.own).chain(self.others)
    }

    /// The sum of the rates in bytes a second, never 0.
    pub(super) fn total_rate(&self) -> f64 {
        self.all().map(Flow::rate).sum::<f64>().max(1e-6)
    }
}

/// The rule of a coupled algorithm, which derives increases from windows and round-trip times.
pub trait Rule: Send + fmt::Debug + 'static {
    /// The name that [`Algorithm`](super::Algorithm) parses.
    const NAME: &'static str;

    /// Bytes that the window gains, in congestion avoidance, for each byte acknowledged; times the size of a datagram in
    /// bytes.
    fn increase(family: &Family<'_>) -> f64;

    /// The share of the window that a loss leaves.
    fn remaining(_family: &Family<'_>) -> f64 {
        0.5
    }
}

/// A coupled controller of one path.
pub struct Coupled<R> {
    datagram_size: usize,
    window: f64,
    slow_start_threshold: f64,
    recovery: Period<Before>,
    hystart: Option<HyStart>,
    path: PathId,
    smoothed_rtt: Option<Duration>,
    /// Bytes acknowledged between the last two losses, and since the last.
    before_loss: u64,
    since_loss: u64,
    siblings: SmallVec<[Flow; 3]>,
    rule: PhantomData<R>,
}

/// The state that a reduction changes, so that a spurious one can be undone.
#[derive(Clone, Copy, Debug)]
struct Before {
    window: f64,
    slow_start_threshold: f64,
    hystart: Option<HyStart>,
    before_loss: u64,
    since_loss: u64,
}

impl<R> fmt::Debug for Coupled<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coupled")
            .field("window", &self.window)
            .field("slow_start_threshold", &self.slow_start_threshold)
            .field("siblings", &self.siblings)
            .finish_non_exhaustive()
    }
}

impl<R: Rule> Coupled<R> {
    /// The initial state for datagrams of `datagram_size` bytes.
    pub fn new(datagram_size: usize) -> Self {
        Self {
            datagram_size,
            window: initial_window(datagram_size) as f64,
            slow_start_threshold: f64::INFINITY,
            recovery: Period::default(),
            hystart: Some(HyStart::default()),
            path: PathId::ZERO,
            smoothed_rtt: None,
            before_loss: 0,
            since_loss: 0,
            siblings: SmallVec::new(),
            rule: PhantomData,
        }
    }

    fn set_window(&mut self, window: f64) {
        self.window = window.min(LARGEST_WINDOW).max(minimum_window(self.datagram_size) as f64);
    }

    fn own(&self) -> Option<Flow> {
        Some(Flow {
            path: self.path,
            window: self.window,
            rtt: self.smoothed_rtt?,
            between_losses: self.before_loss.max(self.since_loss),
        })
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

    fn remember(&self) -> Before {
        Before {
            window: self.window,
            slow_start_threshold: self.slow_start_threshold,
            hystart: self.hystart,
            before_loss: self.before_loss,
            since_loss: self.since_loss,
        }
    }

    fn reduce(&mut self) {
        self.hystart = None;
        (self.before_loss, self.since_loss) = (self.since_loss, 0);
        let own = self.own();
        let share = own.map_or(0.5, |own| R::remaining(&Family { own: &own, others: &self.siblings }));
        self.set_window(self.window * share.clamp(0.0, 1.0));
        self.slow_start_threshold = self.window;
    }
}

/// The share of its gain that a window takes while a queue stands and acknowledgements return over another path than the
/// data's. Round trips are shorter then and gains more frequent, so that the queue would grow faster than it does for a flow
/// on this path alone, from which RFC 6356 §2 (goal 2) has no path take more. The way back over the path itself, unmeasured
/// then, is taken to be a base round trip longer. Without a queue the shorter round trip is kept.
fn haste_forgone(sample: &Sample) -> f64 {
    let (base, rtt) = (sample.min_rtt, sample.smoothed_rtt.max(sample.min_rtt));
    if sample.acknowledged_over == sample.data_path || rtt - base <= base / QUEUE_DIVISOR {
        return 1.0;
    }
    rtt.as_secs_f64() / rtt.saturating_add(base).as_secs_f64()
}

impl<R: Rule> Controller for Coupled<R> {
    fn on_acknowledged(&mut self, sample: &Sample) {
        self.path = sample.data_path;
        self.smoothed_rtt = Some(sample.smoothed_rtt);
        self.since_loss = self.since_loss.saturating_add(sample.bytes as u64);
        // RFC 9002 §7.8: a window that is not used does not grow. §7.3.2: nor does it in recovery.
        if sample.app_limited || self.recovery.covers(sample.sent_at) {
            return;
        }
        if self.in_slow_start() {
            return self.grow_in_slow_start(sample);
        }
        let Some(own) = self.own() else { return };
        let factor = R::increase(&Family { own: &own, others: &self.siblings });
        // An acknowledgement of more than a window says no more than one of a window.
        let acknowledged = (sample.bytes as f64).min(self.window);
        // Nor does any rule gain more than slow start would.
        let gain = (factor * self.datagram_size as f64).clamp(-0.5, 1.0);
        let gain = if gain > 0.0 { gain * haste_forgone(sample) } else { gain };
        self.set_window(self.window + gain * acknowledged);
        if factor < 0.0 {
            // Growing into the threshold again is no slow start.
            self.slow_start_threshold = self.slow_start_threshold.min(self.window);
        }
    }

    fn on_lost(&mut self, sample: &LossSample) {
        if self.recovery.on_lost(sample, self.remember()) {
            self.reduce();
        }
        if sample.persistent == Persistence::Persistent {
            // RFC 9002 §7.6.2 and §B.8.
            self.set_window(0.0);
            self.recovery = Period::default();
        }
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        if self.recovery.on_mark(sample) {
            self.reduce();
        }
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        let Some(before) = self.recovery.on_spurious(sample) else { return };
        self.window = self.window.max(before.window);
        self.slow_start_threshold = self.slow_start_threshold.max(before.slow_start_threshold);
        self.hystart = before.hystart;
        self.before_loss = before.before_loss;
        self.since_loss = self.since_loss.saturating_add(before.since_loss);
    }

    fn flow(&self) -> Option<Flow> {
        self.own()
    }

    fn on_siblings(&mut self, flows: &[Flow]) {
        self.siblings.clear();
        self.siblings.extend_from_slice(flows);
    }

    fn window(&self) -> usize {
        self.window as usize
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        if self.in_slow_start() { slow_start_rate(self.window(), self.smoothed_rtt) } else { None }
    }

    fn name(&self) -> &'static str {
        R::NAME
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
pub(super) mod tests {
    use super::*;
    use crate::congestion::lia::Lia;
    use crate::congestion::tests::{at, lost, marked, sample, spurious};

    const DATAGRAM: usize = 1200;

    /// A flow of `window` datagrams of 1200 bytes and `rtt` ms.
    pub(in crate::congestion) fn flow(path: u32, window: u64, rtt: u64) -> Flow {
        let rtt = Duration::from_millis(rtt);
        Flow { path: PathId(path), window: (window * 1200) as f64, rtt, between_losses: window * 1200 }
    }

    /// Datagrams that `R` gains in a round trip in which the whole window is acknowledged.
    pub(in crate::congestion) fn gain<R: Rule>(own: &Flow, others: &[Flow]) -> f64 {
        R::increase(&Family { own, others }) * own.window
    }

    fn avoiding(datagrams: usize) -> Coupled<Lia> {
        let mut coupled = Coupled::<Lia>::new(DATAGRAM);
        coupled.window = (datagrams * DATAGRAM) as f64;
        coupled.slow_start_threshold = coupled.window;
        coupled
    }

    #[test]
    fn alone_a_coupled_path_is_reno() {
        let mut coupled = avoiding(100);
        for _ in 0..100 {
            let bytes = DATAGRAM;
            coupled.on_acknowledged(&Sample { bytes, ..sample(at(1000)) });
        }
        assert!(coupled.window().abs_diff(101 * DATAGRAM) < 12, "{}", coupled.window());
        coupled.on_lost(&lost(900, 1000, DATAGRAM));
        coupled.on_ecn_ce(&marked(950, 1010));
        assert!(coupled.window().abs_diff(101 * DATAGRAM / 2) < 12, "{}", coupled.window());
        assert!(!coupled.in_slow_start());
    }

    #[test]
    fn a_standing_queue_grows_no_faster_over_a_short_way_back() {
        let gained = |over, min_rtt: Duration, smoothed_rtt: Duration| {
            let mut coupled = avoiding(100);
            let (acknowledged_over, bytes) = (PathId(over), 100 * DATAGRAM);
            let now = sample(at(1000));
            coupled.on_acknowledged(&Sample { acknowledged_over, bytes, min_rtt, smoothed_rtt, ..now });
            coupled.window() - 100 * DATAGRAM
        };
        let ms = Duration::from_millis;
        assert!(gained(0, ms(50), ms(150)).abs_diff(DATAGRAM) <= 1, "over the path of the data");
        assert!(gained(1, ms(25), ms(28)).abs_diff(DATAGRAM) <= 1, "without a queue");
        // 125 ms in place of 150: as much in a second as over the other path.
        assert!(gained(1, ms(25), ms(125)).abs_diff(DATAGRAM * 125 / 150) <= 1);
        // attacks.md C14.
        assert!(gained(1, ms(1), Duration::ZERO) <= DATAGRAM);
        assert!(gained(1, Duration::MAX, Duration::MAX) <= DATAGRAM);
    }

    #[test]
    fn siblings_slow_the_growth_down_and_only_after_slow_start() {
        let gains = [false, true].map(|with| {
            let mut coupled = avoiding(100);
            let siblings = [flow(1, 100, 50)];
            coupled.on_siblings(if with { &siblings } else { &[] });
            coupled.on_acknowledged(&Sample { bytes: 100 * DATAGRAM, ..sample(at(1000)) });
            coupled.window() - 100 * DATAGRAM
        });
        assert!(gains[1] * 2 < gains[0], "{gains:?}");
        let mut coupled = Coupled::<Lia>::new(DATAGRAM);
        coupled.on_siblings(&[flow(1, 100, 50)]);
        coupled.on_acknowledged(&Sample { bytes: DATAGRAM, ..sample(at(1000)) });
        assert_eq!(coupled.window(), 11 * DATAGRAM);
    }

    #[test]
    fn persistent_congestion_leads_back_to_slow_start() {
        let mut coupled = avoiding(100);
        coupled.on_lost(&LossSample { persistent: Persistence::Persistent, ..lost(1000, 3000, DATAGRAM) });
        assert_eq!((coupled.window(), coupled.in_slow_start()), (2 * DATAGRAM, true));
    }

    #[test]
    fn losses_that_were_none_take_nothing_from_the_window() {
        let mut coupled = avoiding(100);
        coupled.on_acknowledged(&Sample { bytes: 5000, ..sample(at(1000)) });
        let (window, flow) = (coupled.window(), coupled.flow());
        coupled.on_lost(&lost(990, 1010, DATAGRAM));
        assert!(coupled.window() < 51 * DATAGRAM);
        coupled.on_spurious(&spurious(1010, 1020, DATAGRAM));
        assert_eq!((coupled.window(), coupled.flow()), (window, flow));
        // Slow start goes on, and still ends before the queue overflows.
        let mut coupled = Coupled::<Lia>::new(DATAGRAM);
        coupled.on_lost(&lost(990, 1010, DATAGRAM));
        coupled.on_spurious(&spurious(1010, 1020, DATAGRAM));
        assert_eq!((coupled.window(), coupled.in_slow_start()), (10 * DATAGRAM, true));
        assert!(coupled.hystart.is_some());
    }

    #[test]
    fn bytes_between_losses_are_those_of_the_better_interval() {
        let mut coupled = avoiding(100);
        coupled.on_acknowledged(&Sample { bytes: 5000, ..sample(at(1000)) });
        coupled.on_lost(&lost(950, 1000, DATAGRAM));
        coupled.on_acknowledged(&Sample { bytes: 3000, ..sample(at(1100)) });
        assert_eq!(coupled.flow().map(|flow| flow.between_losses), Some(5000));
        coupled.on_acknowledged(&Sample { bytes: 3000, ..sample(at(1150)) });
        assert_eq!(coupled.flow().map(|flow| flow.between_losses), Some(6000));
    }
}
