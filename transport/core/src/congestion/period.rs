//! Recovery periods (RFC 9002 §7.3.2), and what to take back of one whose losses were none.

use super::{LossSample, MarkSample, SpuriousSample};
use crate::time::Instant;

/// The latest recovery period, and the state `S` of the controller before it.
///
/// RFC 9002 §7.3.2 leaves open what follows of losses that turn out spurious. A period is undone once all its losses
/// were, as in RFC 9438 §4.9.2; one in which a packet was marked is not, for that is congestion without a loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period<S> {
    /// Packets sent up to here belong to it.
    started: Option<Instant>,
    undo: Option<Undo<S>>,
}

#[derive(Clone, Copy, Debug)]
struct Undo<S> {
    at: Instant,
    started_before: Option<Instant>,
    state: S,
    /// Bytes lost in the period, and those of them that arrived after all.
    lost: usize,
    spurious: usize,
}

impl<S> Default for Period<S> {
    fn default() -> Self {
        Self { started: None, undo: None }
    }
}

impl<S> Period<S> {
    /// Returns true if a packet that left at `sent_at` belongs to the period: its loss or mark changes the window no
    /// more.
    pub(super) fn covers(&self, sent_at: Instant) -> bool {
        self.started.is_some_and(|started| sent_at <= started)
    }

    /// Counts losses; whether they start a period, so that the controller has to reduce its window from `state`.
    pub(super) fn on_lost(&mut self, sample: &LossSample, state: S) -> bool {
        if sample.bytes == 0 {
            return false;
        }
        let starts = !self.covers(sample.largest_sent_at);
        if starts {
            let (at, started_before) = (sample.now, self.started);
            self.undo = Some(Undo { at, started_before, state, lost: 0, spurious: 0 });
            self.started = Some(at);
        }
        if let Some(undo) = &mut self.undo {
            undo.lost = undo.lost.saturating_add(sample.bytes);
        }
        starts
    }

    /// Returns true if a mark starts a period.
    pub(super) fn on_mark(&mut self, sample: &MarkSample) -> bool {
        self.undo = None;
        let starts = !self.covers(sample.sent_at);
        if starts {
            self.started = Some(sample.now);
        }
        starts
    }

    /// A packet was not lost; the state to return to if none of the period was.
    pub(super) fn on_spurious(&mut self, sample: &SpuriousSample) -> Option<S> {
        let undo = self.undo.as_mut().filter(|undo| undo.at <= sample.lost_at)?;
        undo.spurious = undo.spurious.saturating_add(sample.bytes);
        let undo = self.undo.take_if(|undo| undo.spurious >= undo.lost)?;
        self.started = undo.started_before;
        Some(undo.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::tests::{lost, marked, spurious};

    #[test]
    fn a_period_is_undone_once_all_its_losses_were_spurious() {
        let mut period = Period::default();
        assert!(period.on_lost(&lost(50, 100, 3), 'a'));
        assert!(!period.on_lost(&lost(60, 110, 2), 'b'), "of the same round trip");
        assert_eq!(period.on_spurious(&spurious(99, 120, 5)), None, "lost before the period");
        assert_eq!(period.on_spurious(&spurious(100, 120, 3)), None, "the other loss may be real");
        assert_eq!(period.on_spurious(&spurious(110, 120, 2)), Some('a'));
        assert_eq!(period.on_spurious(&spurious(110, 120, 2)), None);
        assert!(period.on_lost(&lost(60, 130, 2), 'c'), "there was no period");
    }

    #[test]
    fn the_period_before_is_as_it_was() {
        let mut period = Period::default();
        period.on_lost(&lost(50, 100, 1), 'a');
        period.on_lost(&lost(150, 200, 1), 'b');
        assert_eq!(period.on_spurious(&spurious(100, 210, 1)), None, "of the first period, which is past");
        assert_eq!(period.on_spurious(&spurious(200, 210, 1)), Some('b'));
        assert!(!period.on_lost(&lost(90, 220, 1), 'c'));
    }

    #[test]
    fn what_a_mark_reduced_stays() {
        let mut period = Period::default();
        assert!(period.on_mark(&marked(50, 100)));
        period.on_lost(&lost(60, 110, 1), 'a');
        assert_eq!(period.on_spurious(&spurious(110, 120, 1)), None);
        assert!(period.on_lost(&lost(150, 200, 1), 'b'));
        assert!(!period.on_mark(&marked(160, 205)));
        assert_eq!(period.on_spurious(&spurious(200, 210, 1)), None);
    }
}
