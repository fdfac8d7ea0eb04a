//! The order in which streams may send (RFC 9218 §10).

use super::sorted_queue::SortedQueue;
use crate::wire::stream_id::StreamId;

/// The place of a stream in the order: urgency first; then the order that the application gave; then streams that are not
/// incremental, in the order of their IDs; then incremental ones, each behind all others once it had its turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SendOrder {
    /// 0 to 7, smaller is more urgent (RFC 9218 §4.1).
    pub urgency: u8,
    /// The complement of the application's order: the smallest is first.
    pub rank: i32,
    /// 0 for a stream that is not incremental, else when it last had its turn.
    pub turn: u64,
    /// The stream.
    pub id: StreamId,
}

/// The credit that a stream needs beyond its own to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Nothing: it repeats what was sent before, or sends the mere end.
    Nothing,
    /// Credit of the connection.
    Credit,
}

/// A stream's entry in the [`Agenda`].
pub type Listing = (SendOrder, Need);

/// The streams that have something to send.
#[derive(Debug, Default)]
pub struct Agenda {
    all: SortedQueue<SendOrder>,
    /// The entries of `all` that need nothing.
    free: SortedQueue<SendOrder>,
    turns: u64,
}

impl Agenda {
    /// The turn behind all others.
    pub fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Replaces the listing of a stream, which keeps `listed` for the next call.
    pub fn relist(&mut self, listed: &mut Option<Listing>, wanted: Option<Listing>) {
        match (*listed, wanted) {
            (None, None) => return,
            (None, Some(wanted)) => self.enter(wanted),
            (Some(listed), None) => self.leave(listed),
            (Some(listed), Some(wanted)) if listed == wanted => return,
            (Some(listed), Some(wanted)) => {
                self.leave(listed);
                self.enter(wanted);
            }
        }
        *listed = wanted;
    }

    fn enter(&mut self, (key, need): Listing) {
        self.all.insert(key);
        if need == Need::Nothing {
            self.free.insert(key);
        }
    }

    fn leave(&mut self, (key, need): Listing) {
        self.all.remove(key);
        if need == Need::Nothing {
            self.free.remove(key);
        }
    }

    /// The next stream behind `after`, or the first, that can send with `credit` bytes of the connection's.
    pub fn next(&self, after: Option<SendOrder>, credit: u64) -> Option<SendOrder> {
        let affordable = self.affordable(credit);
        match after {
            None => affordable.first(),
            Some(after) => affordable.next(after),
        }
    }

    /// Returns true if any stream can send with `credit` bytes of the connection's.
    pub fn has_any(&self, credit: u64) -> bool {
        !self.affordable(credit).is_empty()
    }

    /// Returns true if any stream can send only with credit of the connection.
    pub fn needs_credit(&self) -> bool {
        self.all.len() > self.free.len()
    }

    fn affordable(&self, credit: u64) -> &SortedQueue<SendOrder> {
        if credit == 0 { &self.free } else { &self.all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(urgency: u8, turn: u64, id: u64) -> SendOrder {
        SendOrder { urgency, rank: 0, turn, id: StreamId(id) }
    }

    #[test]
    fn urgency_comes_first_then_sequential_streams_then_the_turn() {
        let mut agenda = Agenda::default();
        let keys = [key(3, 9, 0), key(3, 0, 8), key(3, 0, 4), key(1, 20, 12), key(3, 7, 16), key(7, 0, 20)];
        for key in keys {
            agenda.relist(&mut None, Some((key, Need::Credit)));
        }
        let mut order = Vec::new();
        let mut last = None;
        while let Some(next) = agenda.next(last, 1) {
            order.push(next.id.0);
            last = Some(next);
        }
        assert_eq!(order, [12, 4, 8, 16, 0, 20]);
    }

    #[test]
    fn without_credit_only_streams_that_need_none_are_left() {
        let mut agenda = Agenda::default();
        let mut listed = None;
        agenda.relist(&mut listed, Some((key(3, 0, 0), Need::Credit)));
        assert!(agenda.has_any(1) && !agenda.has_any(0) && agenda.needs_credit());
        agenda.relist(&mut listed, Some((key(3, 0, 0), Need::Nothing)));
        assert_eq!(agenda.next(None, 0), Some(key(3, 0, 0)));
        assert!(!agenda.needs_credit());
        agenda.relist(&mut listed, None);
        assert!(!agenda.has_any(1) && !agenda.has_any(0));
    }
}
