//! Deadline pacing: data with a deadline of its own yields to more urgent data; on a scarce path that the latter uses
//! it goes in small pieces.

use std::time::Duration;

use super::cost::transmission;
use super::is_data;
use super::tuning::{LEAST_PIECE, PIECE, RHYTHM};
use crate::{Item, PathView};

/// The most urgent data that used a scarce path of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeadlinePacer {
    urgency: u8,
    last: Option<Duration>,
}

/// The part of an item that may go on a scarce path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    /// This many bytes.
    Now(usize),
    /// None yet: what is queued leaves first, so that the queue is never longer than a piece.
    In(Duration),
}

impl DeadlinePacer {
    /// The item goes on a scarce path.
    pub(super) fn note(&mut self, item: &Item) {
        if is_data(item) && (self.is_over(item.now) || item.priority.urgency <= self.urgency) {
            (self.urgency, self.last) = (item.priority.urgency, Some(item.now));
        }
    }

    /// Returns the part of the item that may go on the scarce `path`.
    pub(super) fn share(&self, item: &Item, path: &PathView) -> Share {
        let has_deadline = item.message.is_some_and(|message| message.deadline.is_some());
        let yields = has_deadline && !self.is_over(item.now) && item.priority.urgency > self.urgency;
        let Some(rate) = path.rate.filter(|_| yields && item.content.is_divisible()) else {
            return Share::Now(item.bytes);
        };
        match transmission(path.backlog, Some(rate)) {
            0 => {
                let piece = usize::try_from(rate.bytes_in(PIECE)).unwrap_or(usize::MAX);
                Share::Now(item.bytes.min(piece.max(LEAST_PIECE)))
            }
            queued => Share::In(Duration::from_nanos(queued)),
        }
    }

    fn is_over(&self, now: Duration) -> bool {
        self.last.is_none_or(|last| now.saturating_sub(last) > RHYTHM)
    }
}
