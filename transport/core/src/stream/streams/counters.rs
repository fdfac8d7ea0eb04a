//! Counters of streams: those that were opened, and those that may be (RFC 9000 §4.6).

use crate::wire::stream_id::{Direction, StreamId};

/// One value for each direction of streams.
#[derive(Debug, Default)]
pub(super) struct PerDirection<T> {
    pub(super) bidirectional: T,
    pub(super) unidirectional: T,
}

impl<T> PerDirection<T> {
    pub(super) fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Bidirectional => &self.bidirectional,
            Direction::Unidirectional => &self.unidirectional,
        }
    }

    pub(super) fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Bidirectional => &mut self.bidirectional,
            Direction::Unidirectional => &mut self.unidirectional,
        }
    }
}

/// Streams of one direction that this endpoint opens.
#[derive(Debug, Default)]
pub(super) struct LocalStreams {
    opened: u64,
    limit: u64,
    /// The limit at which the application was told that it has to wait.
    blocked_at: Option<u64>,
}

impl LocalStreams {
    /// Returns the number of streams that were opened.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// The peer's limit.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The index of the next stream, `Err(first)` at the limit, where `first` tells whether that is news.
    pub(super) fn open(&mut self) -> Result<u64, bool> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
        //# Endpoints MUST NOT exceed the limit set by their peer
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.11
        //# An endpoint MUST NOT open more streams than permitted by the current stream limit set by its peer
        if self.opened < self.limit {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-2.1
            //# A QUIC endpoint MUST NOT reuse a stream ID within a connection.
            self.opened += 1;
            return Ok(self.opened - 1);
        }
        Err(self.blocked_at.replace(self.limit) != Some(self.limit))
    }

    /// The peer permits `limit` streams; whether that is more than before.
    pub(super) fn raise(&mut self, limit: u64) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
        //# MAX_STREAMS frames that do not increase the stream limit MUST be ignored.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.11
        //# MAX_STREAMS frames that do not increase the stream limit MUST be ignored.
        let raised = limit > self.limit;
        self.limit = self.limit.max(limit);
        raised
    }

    /// The peer's limit is not known any more.
    pub(super) fn forget_limit(&mut self) {
        self.limit = 0;
    }

    /// Returns true if the application was waiting for a higher limit, which it is no longer.
    pub(super) fn stops_waiting(&mut self) -> bool {
        self.blocked_at.take().is_some()
    }

    /// Returns true if a stream is missing at `limit`.
    pub(super) fn is_blocked_at(&self, limit: u64) -> bool {
        self.limit == limit && self.opened == limit && self.blocked_at.is_some()
    }
}

/// Streams of one direction that the peer opens.
#[derive(Debug)]
pub(super) struct RemoteStreams {
    /// The number that may be open at a time.
    concurrent: u64,
    opened: u64,
    accepted: u64,
    freed: u64,
    /// The limit that the peer knows or is about to be told.
    announced: u64,
    /// True if it was said that a higher limit is worth announcing, and none was announced since.
    is_due: bool,
}

impl RemoteStreams {
    pub(super) fn new(concurrent: u64) -> Self {
        Self { concurrent, opened: 0, accepted: 0, freed: 0, announced: concurrent, is_due: false }
    }

    /// Returns the number that the application has accepted; these are the ones with the lowest indices.
    pub(super) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Returns the number that the peer has opened.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    pub(super) fn announced(&self) -> u64 {
        self.announced
    }

    /// The peer used the stream `index`, which opens all below it too (RFC 9000 §3.2); whether it was not open before.
    pub(super) fn open(&mut self, index: u64) -> bool {
        let new = index >= self.opened;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-3.2
        //# Before a stream is created, all streams of the same type with lower- numbered stream IDs MUST be
        //# created
        self.opened = self.opened.max(index + 1);
        new
    }

    /// The index of the next stream for the application.
    pub(super) fn accept(&mut self) -> Option<u64> {
        (self.accepted < self.opened).then(|| {
            self.accepted += 1;
            self.accepted - 1
        })
    }

    /// A stream was freed; whether a higher limit is worth announcing, as with [`Self::wants_announcement`].
    pub(super) fn on_freed(&mut self) -> bool {
        self.freed += 1;
        self.wants_announcement()
    }

    /// Returns true if a higher limit is worth announcing, which is said once for each: the peer has used half of the
    /// streams that it may open.
    pub(super) fn wants_announcement(&mut self) -> bool {
        let wants = !self.is_due
            && self.next_limit() > self.announced
            && self.announced.saturating_sub(self.opened) <= self.concurrent / 2;
        self.is_due |= wants;
        wants
    }

    /// Changes how many may be open at a time; whether a higher limit is worth announcing.
    pub(super) fn set_concurrent(&mut self, concurrent: u64) -> bool {
        self.concurrent = concurrent;
        let wants = self.next_limit() > self.announced;
        self.is_due |= wants;
        wants
    }

    /// Raises the limit by the streams that were freed; the limit to announce.
    pub(super) fn announce(&mut self) -> u64 {
        self.is_due = false;
        self.announced = self.announced.max(self.next_limit());
        self.announced
    }

    fn next_limit(&self) -> u64 {
        self.freed.saturating_add(self.concurrent).min(StreamId::MAX_STREAMS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
    //= type=test
    //# An endpoint MUST NOT wait to receive this signal before advertising additional credit, since doing so
    //# will mean that the peer will be blocked for at least an entire round trip
    #[test]
    fn the_limit_rises_by_what_was_freed_once_half_of_it_is_used() {
        let mut streams = RemoteStreams::new(10);
        assert!(streams.open(3));
        assert!(!streams.open(2));
        assert!(!streams.on_freed(), "6 of 10 are left to the peer");
        assert!(streams.open(4));
        assert!(streams.on_freed());
        assert!(!streams.wants_announcement(), "it was said");
        assert_eq!((streams.announce(), streams.announced()), (12, 12));
        assert!(!streams.wants_announcement());
    }

    #[test]
    fn a_limit_that_was_changed_is_worth_one_announcement() {
        let mut streams = RemoteStreams::new(10);
        assert!(streams.open(9) && !streams.set_concurrent(10));
        assert!(streams.set_concurrent(20) && !streams.wants_announcement());
        assert!(streams.set_concurrent(30) && !streams.wants_announcement(), "it was said before");
        assert_eq!(streams.announce(), 30);
    }

    #[test]
    fn the_block_at_a_limit_is_news_once() {
        let mut streams = LocalStreams::default();
        assert!(streams.raise(1) && !streams.raise(1));
        assert_eq!((streams.open(), streams.open(), streams.open()), (Ok(0), Err(true), Err(false)));
        assert!(streams.is_blocked_at(1) && !streams.is_blocked_at(2));
        assert!(streams.raise(2) && !streams.is_blocked_at(1) && !streams.is_blocked_at(2));
        assert!(streams.stops_waiting() && !streams.stops_waiting());
        assert_eq!((streams.open(), streams.open()), (Ok(1), Err(true)));
    }
}
