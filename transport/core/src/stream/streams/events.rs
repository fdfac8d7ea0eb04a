//! Events of streams for the application, each of which is told only once.

use crate::wire::stream_id::{Direction, StreamId};
use std::collections::VecDeque;

/// Something that the application may want to act upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// The peer opened a stream: accept until there is none.
    Opened {
        /// Its direction.
        direction: Direction,
    },
    /// Data, the end or a reset is there: read until that blocks. Comes again only after a read that blocked, or with a
    /// reset.
    Readable(StreamId),
    /// There is room again after a write that blocked.
    Writable(StreamId),
    /// The peer has everything that was written, the end included.
    Finished(StreamId),
    /// The peer wants no more (RFC 9000 §3.5); the stream was reset for it.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The code of the peer's application.
        code: u64,
    },
    /// More streams may be opened, after an attempt that failed.
    Available {
        /// The direction of the streams.
        direction: Direction,
    },
}

/// The application's knowledge of a half of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// It was told, or has not asked.
    Told,
    /// It waits to be told.
    Waiting,
}

/// Events that wait for the application. Their number is bounded by that of the streams.
#[derive(Debug, Default)]
pub(super) struct StreamEvents {
    queue: VecDeque<StreamEvent>,
    /// Directions of which an `Opened` is in the queue: bit 0 bidirectional, bit 1 unidirectional.
    opened: u8,
}

impl StreamEvents {
    pub(super) fn push(&mut self, event: StreamEvent) {
        if let StreamEvent::Opened { direction } = event {
            if self.opened & mask(direction) != 0 {
                return;
            }
            self.opened |= mask(direction);
        }
        self.queue.push_back(event);
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<StreamEvent> {
        let event = self.queue.pop_front();
        if let Some(StreamEvent::Opened { direction }) = event {
            self.opened &= !mask(direction);
        }
        event
    }
}

const fn mask(direction: Direction) -> u8 {
    match direction {
        Direction::Bidirectional => 1,
        Direction::Unidirectional => 2,
    }
}
