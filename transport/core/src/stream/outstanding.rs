//! The parts of a stream that still have to be sent, again or for the first time.
//!
//! The end of the stream (FIN) counts as one more byte after the last, so that it is sent, lost and acknowledged by
//! the same rules as data.

use super::range_map::RangeMap;
use crate::PathId;
use hvq_scheduler::History;
use std::ops::Range;
use std::time::Duration;

/// A range of which one copy was sent on a path that fell silent, and another copy elsewhere after that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rescue {
    silent_on: PathId,
    age: Duration,
}

/// The fate of every byte that was sent: acknowledged, in flight, or to be offered again.
#[derive(Clone, Debug, Default)]
pub struct Outstanding {
    acknowledged_to: u64,
    fresh_from: u64,
    /// The state that nearly all streams never need, for they arrive whole and in order.
    uneven: Option<Box<Uneven>>,
}

/// The state of single ranges.
#[derive(Clone, Debug, Default)]
struct Uneven {
    /// Acknowledged ranges above all that are.
    acknowledged: RangeMap<()>,
    /// To be offered again. Never overlaps what is acknowledged.
    again: RangeMap<History>,
    rescued: RangeMap<Rescue>,
}

impl Outstanding {
    /// Everything below this offset is acknowledged.
    #[inline]
    pub fn acknowledged_to(&self) -> u64 {
        self.acknowledged_to
    }

    /// Nothing from this offset on was ever sent.
    #[inline]
    pub fn fresh_from(&self) -> u64 {
        self.fresh_from
    }

    /// The first range that should be sent again, and why.
    #[inline]
    pub fn again(&self) -> Option<(Range<u64>, History)> {
        self.uneven.as_ref()?.again.first()
    }

    /// The bytes up to `end` were sent for the first time.
    #[inline]
    pub fn on_sent_fresh(&mut self, end: u64) {
        self.fresh_from = self.fresh_from.max(end);
    }

    /// Nothing from `to` on is of use any more: it is neither sent again nor waited for.
    pub fn truncate(&mut self, to: u64) {
        self.fresh_from = self.fresh_from.min(to).max(self.acknowledged_to);
        if let Some(uneven) = &mut self.uneven {
            uneven.acknowledged.clear(to..u64::MAX);
            uneven.again.clear(to..u64::MAX);
            uneven.rescued.clear(to..u64::MAX);
        }
    }

    /// A part of [`Self::again`] was sent on path `by`. A copy on the path that was silent rescues nothing: it is offered to
    /// others as the first one was.
    pub fn on_sent_again(&mut self, range: Range<u64>, by: PathId) {
        let Some(uneven) = &mut self.uneven else { return };
        for (piece, history) in uneven.again.pieces(range.clone()) {
            match history {
                Some(History::Unacknowledged { on, age }) if on != by => {
                    uneven.rescued.set(piece, Rescue { silent_on: on, age });
                }
                Some(History::Unacknowledged { .. }) => uneven.rescued.clear(piece),
                _ => {}
            }
        }
        uneven.again.clear(range);
    }

    /// One copy of `range` was sent on a path that answers, and another `on` this one, which is silent: that need not be offered to
    /// others.
    pub fn on_copied(&mut self, range: Range<u64>, on: PathId) {
        let range = self.within(range);
        if !range.is_empty() {
            let rescue = Rescue { silent_on: on, age: Duration::ZERO };
            self.uneven.get_or_insert_default().rescued.set(range, rescue);
        }
    }

    /// `range` arrived, in whichever copy.
    pub fn on_acknowledged(&mut self, range: Range<u64>) {
        let range = self.within(range);
        if range.is_empty() {
            return;
        }
        let is_next = range.start == self.acknowledged_to;
        match &mut self.uneven {
            None if is_next => self.acknowledged_to = range.end,
            None => self.uneven.get_or_insert_default().acknowledged.set(range, ()),
            Some(uneven) => self.acknowledged_to = uneven.on_acknowledged(range, self.acknowledged_to),
        }
    }

    /// The copy of `range` that was sent `on` this path is lost.
    pub fn on_lost(&mut self, range: Range<u64>, on: PathId) {
        let range = self.within(range);
        if !range.is_empty() {
            self.uneven.get_or_insert_default().on_lost(range, on);
        }
    }

    /// Nothing was heard for `age` of the copy of `range` that was sent `on` this path; another path may carry it too.
    ///
    /// A path offers a range only once this way, however often it is called.
    pub fn on_silent(&mut self, range: Range<u64>, on: PathId, age: Duration) {
        let range = self.within(range);
        if !range.is_empty() {
            self.uneven.get_or_insert_default().on_silent(range, on, age);
        }
    }

    /// Something was heard of what was sent `on` this path: what it holds waits for no other path any more. If it is lost
    /// after all, loss detection says so.
    pub fn on_answer(&mut self, on: PathId) {
        let range = self.acknowledged_to..self.fresh_from;
        let Some(uneven) = &mut self.uneven else { return };
        for (piece, history) in uneven.again.pieces(range) {
            if matches!(history, Some(History::Unacknowledged { on: held_by, .. }) if held_by == on) {
                uneven.again.clear(piece);
            }
        }
    }

    /// Returns the part of `range` that was sent and is not known to have arrived with all before it.
    #[inline]
    fn within(&self, range: Range<u64>) -> Range<u64> {
        range.start.max(self.acknowledged_to)..range.end.min(self.fresh_from)
    }
}

impl Uneven {
    /// `range` arrived; up to where everything has, if that was `whole_to` before.
    fn on_acknowledged(&mut self, range: Range<u64>, whole_to: u64) -> u64 {
        self.again.clear(range.clone());
        self.rescued.clear(range.clone());
        if range.start == whole_to && self.acknowledged.is_empty() {
            return range.end;
        }
        self.acknowledged.set(range, ());
        match self.acknowledged.first() {
            Some((first, ())) if first.start <= whole_to => {
                let end = first.end;
                self.acknowledged.clear(first);
                end
            }
            _ => whole_to,
        }
    }

    fn on_lost(&mut self, range: Range<u64>, on: PathId) {
        for piece in self.unacknowledged(range) {
            for (part, rescue) in self.rescued.pieces(piece) {
                let history = match rescue {
                    None => Some(History::Lost { on }),
                    // The copy that was sent elsewhere meanwhile is still under way.
                    Some(rescue) if rescue.silent_on == on => None,
                    // The second copy is lost, and the first one is still where nothing was heard from.
                    Some(rescue) => Some(History::Unacknowledged { on: rescue.silent_on, age: rescue.age }),
                };
                self.rescued.clear(part.clone());
                if let Some(history) = history {
                    self.again.set(part, history);
                }
            }
        }
    }

    fn on_silent(&mut self, range: Range<u64>, on: PathId, age: Duration) {
        for piece in self.unacknowledged(range) {
            for (part, rescue) in self.rescued.pieces(piece) {
                if rescue.is_some_and(|rescue| rescue.silent_on == on) {
                    continue;
                }
                for (part, already) in self.again.pieces(part) {
                    if already.is_none() {
                        self.again.set(part, History::Unacknowledged { on, age });
                    }
                }
            }
        }
    }

    fn unacknowledged(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let pieces = self.acknowledged.pieces(range).into_iter();
        pieces.filter(|(_, acknowledged)| acknowledged.is_none()).map(|(piece, _)| piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);
    const AGE: Duration = Duration::from_millis(80);

    fn sent(end: u64) -> Outstanding {
        let mut outstanding = Outstanding::default();
        outstanding.on_sent_fresh(end);
        outstanding
    }

    #[test]
    fn a_copy_on_a_silent_path_is_not_offered_until_the_other_copy_is_lost() {
        let mut it = sent(100);
        it.on_copied(0..100, A);
        it.on_silent(0..100, A, AGE);
        assert_eq!(it.again(), None);
        it.on_silent(0..100, B, AGE);
        assert_eq!(it.again(), Some((0..100, History::Unacknowledged { on: B, age: AGE })));
        it.on_sent_again(0..100, A);
        it.on_lost(0..100, B);
        it.on_lost(0..100, A);
        assert!(it.again().is_some(), "nothing is under way any more");
    }

    #[test]
    fn a_lost_range_is_offered_without_what_was_acknowledged() {
        let mut it = sent(100);
        it.on_acknowledged(20..30);
        it.on_lost(10..40, A);
        assert_eq!(it.again(), Some((10..20, History::Lost { on: A })));
        it.on_sent_again(10..20, B);
        assert_eq!(it.again(), Some((30..40, History::Lost { on: A })));
    }

    #[test]
    fn a_loss_after_the_acknowledgement_of_another_copy_is_ignored() {
        let mut it = sent(100);
        it.on_lost(0..50, A);
        it.on_sent_again(0..50, B);
        it.on_acknowledged(0..50);
        it.on_lost(0..50, B);
        assert_eq!(it.again(), None);
        assert_eq!(it.acknowledged_to(), 50);
    }

    #[test]
    fn a_late_acknowledgement_withdraws_the_offer() {
        let mut it = sent(100);
        it.on_lost(0..50, A);
        it.on_acknowledged(10..60);
        assert_eq!(it.again(), Some((0..10, History::Lost { on: A })));
        it.on_acknowledged(0..10);
        assert_eq!((it.again(), it.acknowledged_to()), (None, 60));
    }

    #[test]
    fn a_silent_path_offers_a_range_once_and_its_loss_adds_no_third_copy() {
        let mut it = sent(100);
        it.on_silent(0..100, A, AGE);
        assert_eq!(it.again(), Some((0..100, History::Unacknowledged { on: A, age: AGE })));
        it.on_sent_again(0..60, B);
        it.on_silent(0..100, A, AGE * 2);
        assert_eq!(it.again(), Some((60..100, History::Unacknowledged { on: A, age: AGE })));
        it.on_lost(0..100, A);
        assert_eq!(it.again(), Some((60..100, History::Lost { on: A })));
    }

    #[test]
    fn a_path_that_answers_again_withdraws_what_it_offered() {
        let mut it = sent(200);
        it.on_lost(0..50, B);
        it.on_silent(50..200, A, AGE);
        it.on_sent_again(0..50, B);
        it.on_sent_again(50..80, B);
        it.on_answer(B);
        assert_eq!(it.again(), Some((80..200, History::Unacknowledged { on: A, age: AGE })));
        it.on_answer(A);
        assert_eq!(it.again(), None);
        // What has gone elsewhere already is not offered once more.
        it.on_silent(50..200, A, AGE);
        assert_eq!(it.again(), Some((80..200, History::Unacknowledged { on: A, age: AGE })));
        it.on_answer(A);
        it.on_lost(80..200, A);
        assert_eq!(it.again(), Some((80..200, History::Lost { on: A })));
    }

    #[test]
    fn a_copy_on_the_silent_path_itself_is_no_rescue() {
        let mut it = sent(100);
        it.on_silent(0..100, A, AGE);
        it.on_sent_again(0..60, A);
        it.on_sent_again(60..100, B);
        assert_eq!(it.again(), None);
        it.on_silent(0..100, A, AGE * 2);
        assert_eq!(it.again(), Some((0..60, History::Unacknowledged { on: A, age: AGE * 2 })));
        // Nor does it vouch for an older copy on another path that is silent, too.
        let mut it = sent(100);
        it.on_copied(0..100, A);
        it.on_silent(0..100, B, AGE);
        it.on_sent_again(0..100, B);
        it.on_silent(0..100, A, AGE);
        assert_eq!(it.again(), Some((0..100, History::Unacknowledged { on: A, age: AGE })));
    }

    #[test]
    fn a_rescue_that_is_lost_too_is_offered_again() {
        let mut it = sent(100);
        it.on_silent(0..100, A, AGE);
        it.on_sent_again(0..100, B);
        it.on_lost(0..100, B);
        assert_eq!(it.again(), Some((0..100, History::Unacknowledged { on: A, age: AGE })));
        it.on_sent_again(0..100, B);
        it.on_lost(0..100, A);
        assert_eq!(it.again(), None);
        it.on_lost(0..100, B);
        assert_eq!(it.again(), Some((0..100, History::Lost { on: B })));
    }

    #[test]
    fn both_copies_of_a_range_are_settled_by_one_acknowledgement() {
        let mut it = sent(10);
        it.on_silent(0..10, A, AGE);
        it.on_sent_again(0..10, B);
        it.on_acknowledged(0..10);
        it.on_lost(0..10, A);
        it.on_lost(0..10, B);
        it.on_silent(0..10, B, AGE);
        assert_eq!((it.again(), it.acknowledged_to()), (None, 10));
    }
}
