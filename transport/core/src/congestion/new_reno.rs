//! NewReno as RFC 9002 §7 and its appendix B describe it.

use super::period::Period;
use super::{
    Controller, LossSample, MarkSample, Sample, SpuriousSample, initial_window, minimum_window,
    slow_start_rate,
};
use crate::Bandwidth;
use crate::recovery::persistent::Persistence;
use std::time::Duration;

/// Windows do not grow beyond this, so that arithmetic on them cannot overflow.
const LARGEST_WINDOW: usize = usize::MAX / 4;

/// The controller of RFC 9002.
#[derive(Clone, Debug)]
pub struct NewReno {
    datagram_size: usize,
    window: usize,
    slow_start_threshold: usize,
    recovery: Period<Before>,
    /// Bytes acknowledged in congestion avoidance that have not grown the window yet.
    acknowledged: usize,
    smoothed_rtt: Option<Duration>,
}

/// The state that a reduction changes, so that a spurious one can be undone.
#[derive(Clone, Copy, Debug)]
struct Before {
    window: usize,
    slow_start_threshold: usize,
}

impl NewReno {
    /// The initial state for datagrams of `datagram_size` bytes.
    pub fn new(datagram_size: usize) -> Self {
        Self {
            datagram_size,
            window: initial_window(datagram_size),
            slow_start_threshold: usize::MAX,
            recovery: Period::default(),
            acknowledged: 0,
            smoothed_rtt: None,
        }
    }

    /// Halves the window (RFC 9002 §B.6).
    fn reduce(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-7.3.1
        //# The sender MUST exit slow start and enter a recovery period when a packet is lost or when the
        //# ECN-CE count reported by its peer increases.
        //= https://www.rfc-editor.org/rfc/rfc9002#section-7.3.2
        //# On entering a recovery period, a sender MUST set the slow start threshold to half the value of the
        //# congestion window when loss is detected
        self.slow_start_threshold = (self.window / 2).max(minimum_window(self.datagram_size));
        //= https://www.rfc-editor.org/rfc/rfc9002#section-7.3.2
        //# The congestion window MUST be set to the reduced value of the slow start threshold before exiting
        //# the recovery period.
        self.window = self.slow_start_threshold;
        // What counts towards the next datagram keeps its share of the window: RFC 9002 §B.5 grows by fractions. To forget
        // it would cost half a datagram for each loss, of the eight that a loss rate of 1 % lets the window gain.
        self.acknowledged /= 2;
    }
}

impl Controller for NewReno {
    fn on_acknowledged(&mut self, sample: &Sample) {
        self.smoothed_rtt = Some(sample.smoothed_rtt);
        // RFC 9002 §7.8: a window that is not used does not grow. §7.3.2: nor does it in recovery.
        if sample.app_limited || self.recovery.covers(sample.sent_at) {
            return;
        }
        if self.in_slow_start() {
            self.window = self.window.saturating_add(sample.bytes).min(LARGEST_WINDOW);
            return;
        }
        // RFC 9002 §7.3.3: at most one datagram for each window that is acknowledged.
        self.acknowledged = self.acknowledged.saturating_add(sample.bytes);
        if self.acknowledged >= self.window {
            self.acknowledged = (self.acknowledged - self.window).min(self.window);
            //= https://www.rfc-editor.org/rfc/rfc9002#section-7.3.3
            //# A sender in congestion avoidance uses an Additive Increase Multiplicative Decrease (AIMD)
            //# approach that MUST limit the increase to the congestion window to at most one maximum datagram
            //# size for each
            self.window = self.window.saturating_add(self.datagram_size).min(LARGEST_WINDOW);
        }
    }

    fn on_lost(&mut self, sample: &LossSample) {
        let before = Before { window: self.window, slow_start_threshold: self.slow_start_threshold };
        if self.recovery.on_lost(sample, before) {
            self.reduce();
        }
        //= https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
        //# When persistent congestion is declared, the sender's congestion window MUST be reduced to the
        //# minimum congestion window (kMinimumWindow), similar to a TCP sender's response on an RTO
        //# [RFC5681].
        if sample.persistent == Persistence::Persistent {
            // RFC 9002 §7.6.2 and §B.8.
            self.window = minimum_window(self.datagram_size);
            self.recovery = Period::default();
            self.acknowledged = 0;
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
    }

    fn window(&self) -> usize {
        self.window
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        if self.in_slow_start() { slow_start_rate(self.window, self.smoothed_rtt) } else { None }
    }

    fn name(&self) -> &'static str {
        "newreno"
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.slow_start_threshold
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.datagram_size = datagram_size;
        self.window = self.window.max(minimum_window(datagram_size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathId;
    use crate::congestion::tests::lost;
    use crate::recovery::interruption::Cause;
    use crate::time::Instant;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn acknowledge(controller: &mut NewReno, bytes: usize, sent: u64) {
        controller.on_acknowledged(&Sample {
            now: at(sent + 50),
            data_path: PathId::ZERO,
            acknowledged_over: PathId::ZERO,
            bytes,
            sent_at: at(sent),
            rtt: None,
            min_rtt: Duration::from_millis(50),
            smoothed_rtt: Duration::from_millis(50),
            delivery_rate: None,
            delivery: None,
            in_flight: controller.window(),
            app_limited: false,
        });
    }

    fn lose(controller: &mut NewReno, sent: u64, now: u64, persistent: Persistence) {
        let (now, largest_sent_at) = (at(now), at(sent));
        controller.on_lost(&LossSample {
            now,
            bytes: 1200,
            largest_sent_at,
            persistent,
            cause: Cause::Congestion,
            in_flight: 0,
        });
    }

    //= https://www.rfc-editor.org/rfc/rfc9002#section-7.3.3
    //= type=test
    //# A sender in congestion avoidance uses an Additive Increase Multiplicative Decrease (AIMD) approach
    //# that MUST limit the increase to the congestion window to at most one maximum datagram size for each
    #[test]
    fn slow_start_doubles_and_avoidance_adds_a_datagram_per_window() {
        let mut controller = NewReno::new(1200);
        acknowledge(&mut controller, 12_000, 1);
        assert_eq!(controller.window(), 24_000);
        lose(&mut controller, 2, 60, Persistence::Passing);
        assert_eq!((controller.window(), controller.in_slow_start()), (12_000, false));
        for _ in 0..10 {
            acknowledge(&mut controller, 1200, 61);
        }
        assert_eq!(controller.window(), 13_200);
    }

    #[test]
    fn a_loss_does_not_forget_what_counts_towards_the_next_datagram() {
        // RFC 9002 §B.5 grows by fractions of a datagram: half a window acknowledged is half a datagram, whatever is lost.
        let mut controller = NewReno::new(1200);
        acknowledge(&mut controller, 12_000, 1);
        lose(&mut controller, 2, 60, Persistence::Passing);
        acknowledge(&mut controller, 6000, 61);
        lose(&mut controller, 62, 120, Persistence::Passing);
        assert_eq!(controller.window(), 6000);
        acknowledge(&mut controller, 2400, 121);
        assert_eq!(controller.window(), 6000);
        acknowledge(&mut controller, 600, 122);
        assert_eq!(controller.window(), 7200, "the other half of this window makes it a whole one");
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-13.3
    //= type=test
    //# Upon detecting losses, a sender MUST take appropriate congestion control action
    //= https://www.rfc-editor.org/rfc/rfc9002#section-7.3.1
    //= type=test
    //# The sender MUST exit slow start and enter a recovery period when a packet is lost or when the ECN-CE
    //# count reported by its peer increases.
    //= https://www.rfc-editor.org/rfc/rfc9002#section-7.3.2
    //= type=test
    //# On entering a recovery period, a sender MUST set the slow start threshold to half the value of the
    //# congestion window when loss is detected
    //= https://www.rfc-editor.org/rfc/rfc9002#section-7.3.2
    //= type=test
    //# The congestion window MUST be set to the reduced value of the slow start threshold before exiting the
    //# recovery period.
    #[test]
    fn losses_of_one_round_trip_halve_the_window_once() {
        let mut controller = NewReno::new(1200);
        acknowledge(&mut controller, 48_000, 1);
        lose(&mut controller, 10, 60, Persistence::Passing);
        lose(&mut controller, 30, 62, Persistence::Passing);
        controller.on_ecn_ce(&MarkSample { now: at(70), sent_at: at(60) });
        assert_eq!(controller.window(), 30_000);
        acknowledge(&mut controller, 30_000, 59);
        assert_eq!(controller.window(), 30_000, "nothing grows in recovery");
        lose(&mut controller, 61, 120, Persistence::Passing);
        assert_eq!(controller.window(), 15_000);
    }

    #[test]
    fn an_event_whose_losses_were_all_spurious_is_undone() {
        let mut controller = NewReno::new(1200);
        acknowledge(&mut controller, 12_000, 1);
        lose(&mut controller, 2, 60, Persistence::Passing);
        lose(&mut controller, 3, 61, Persistence::Passing);
        let spurious = SpuriousSample { now: at(70), bytes: 1200, sent_at: at(2), lost_at: at(60) };
        controller.on_spurious(&spurious);
        assert_eq!(controller.window(), 12_000, "the other loss may be real");
        controller.on_spurious(&spurious);
        assert_eq!((controller.window(), controller.in_slow_start()), (24_000, true));
        controller.on_spurious(&spurious);
        assert_eq!(controller.window(), 24_000);
    }

    //= https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
    //= type=test
    //# When persistent congestion is declared, the sender's congestion window MUST be reduced to the minimum
    //# congestion window (kMinimumWindow), similar to a TCP sender's response on an RTO [RFC5681].
    #[test]
    fn persistent_congestion_collapses_the_window_and_it_recovers() {
        // attacks.md C15.
        let mut controller = NewReno::new(1200);
        acknowledge(&mut controller, 48_000, 1);
        lose(&mut controller, 10, 5000, Persistence::Persistent);
        assert_eq!((controller.window(), controller.in_slow_start()), (2400, true));
        acknowledge(&mut controller, 2400, 5001);
        assert_eq!(controller.window(), 4800);
    }

    #[test]
    fn losses_of_an_interruption_halve_the_threshold_like_any() {
        // RFC 9002 §7.3.2 knows one kind of loss only.
        let mut controller = NewReno::new(1200);
        acknowledge(&mut controller, 12_000, 1);
        let before = controller.window();
        controller.on_lost(&LossSample { cause: Cause::Interruption, ..lost(2, 60, 1200) });
        assert_eq!((controller.window(), controller.slow_start_threshold), (before / 2, before / 2));
    }
}
