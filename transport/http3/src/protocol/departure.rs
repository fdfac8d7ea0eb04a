//! The end of a connection as its server announces it (GOAWAY, RFC 9114 §5.2), for the client's requests.

use std::collections::BTreeMap;
use std::task::Waker;

/// The requests that the server does not process, and those that are open.
#[derive(Debug, Default)]
pub(super) struct Departure {
    /// The first stream that the server does not process, once it said so.
    refused_from: Option<u64>,
    /// Those who wait for the head of a response, by stream.
    waiting: BTreeMap<u64, Waker>,
    /// Halves of requests' streams that somebody holds.
    halves: usize,
}

impl Departure {
    /// Returns true once the server has said that it goes away.
    pub(super) fn is_announced(&self) -> bool {
        self.refused_from.is_some()
    }

    /// Returns true if the server goes away and nobody waits for anything any more.
    pub(super) fn is_over(&self) -> bool {
        self.is_announced() && self.halves == 0
    }

    /// Notes that streams of `id` and above are not processed, and wakes who waits for one of them. IDs never rise.
    pub(super) fn announce(&mut self, id: u64) {
        self.refused_from = Some(id);
        self.waiting.split_off(&id).into_values().for_each(Waker::wake);
    }

    /// Returns true if `stream` is not processed; otherwise `waker` is woken when that changes.
    pub(super) fn is_refused(&mut self, stream: u64, waker: &Waker) -> bool {
        if self.refused_from.is_some_and(|id| stream >= id) {
            return true;
        }
        self.waiting.insert(stream, waker.clone());
        false
    }

    /// Nobody waits for the head of the response on `stream` any more.
    pub(super) fn forget(&mut self, stream: u64) {
        self.waiting.remove(&stream);
    }

    /// Somebody has one more half of a request's stream.
    pub(super) fn begin(&mut self) {
        self.halves += 1;
    }

    /// Somebody has one less.
    pub(super) fn end(&mut self) {
        self.halves = self.halves.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_from_the_announced_one_on_are_refused_and_the_end_is_when_the_others_are_over() {
        let (mut departure, waker) = (Departure::default(), Waker::noop());
        departure.begin();
        departure.begin();
        assert!(!departure.is_refused(4, waker) && !departure.is_refused(8, waker));
        departure.announce(8);
        assert!(
            !departure.is_refused(4, waker)
                && departure.is_refused(8, waker)
                && departure.is_refused(12, waker)
        );
        assert_eq!(departure.waiting.keys().copied().collect::<Vec<_>>(), [4]);
        departure.announce(4);
        assert!(departure.is_refused(4, waker) && departure.waiting.is_empty());
        departure.end();
        assert!(!departure.is_over());
        departure.end();
        assert!(departure.is_over());
    }
}
