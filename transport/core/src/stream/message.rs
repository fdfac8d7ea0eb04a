//! Message boundaries in a stream: what the application says about where its units of data end.

use super::short_queue::ShortQueue;
use crate::time::Instant;
use hvq_scheduler::Message;

/// The known ends of messages that are not yet acknowledged.
#[derive(Debug, Default)]
pub struct MessageEnds {
    /// Ends with their deadlines, ascending and distinct.
    ends: ShortQueue<(u64, Option<Instant>)>,
}

impl MessageEnds {
    /// A message ends before offset `end`, and should be there by `deadline`.
    ///
    /// Said twice for one offset, the later deadline that is known wins; an empty first message is no message.
    pub fn end_at(&mut self, end: u64, deadline: Option<Instant>) {
        match self.ends.back_mut() {
            Some((last, known)) if *last >= end => *known = deadline.or(*known),
            _ if end == 0 => {}
            _ => self.ends.push_back((end, deadline)),
        }
    }

    /// Returns the part that is left at `offset` of the message that contains it, `None` if its end is not known.
    pub fn at(&self, offset: u64, now: Instant) -> Option<Message> {
        let next = self.ends.partition_point(|(end, _)| *end <= offset);
        self.ends.get(next).map(|&(end, deadline)| Message {
            remaining: usize::try_from(end - offset).unwrap_or(usize::MAX),
            deadline: deadline.map(|deadline| deadline.since(now)),
        })
    }

    /// Returns the message that is left when only the end of the stream is: nothing, but the deadline of the last
    /// message holds.
    pub fn at_end(&self, now: Instant) -> Message {
        let deadline = self.ends.back().and_then(|(_, deadline)| *deadline);
        Message { remaining: 0, deadline: deadline.map(|deadline| deadline.since(now)) }
    }

    /// Forgets messages that end at or below `to`, except the last.
    pub fn release(&mut self, to: u64) {
        while self.ends.len() > 1 && self.ends.front().is_some_and(|(end, _)| *end <= to) {
            self.ends.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn what_remains_is_counted_to_the_end_of_the_message_that_contains_the_offset() {
        let mut messages = MessageEnds::default();
        messages.end_at(100, None);
        messages.end_at(250, Some(at(70)));
        let remaining = |offset| messages.at(offset, at(20)).map(|message| message.remaining);
        assert_eq!(
            [remaining(0), remaining(99), remaining(100), remaining(250)],
            [Some(100), Some(1), Some(150), None]
        );
        assert_eq!(messages.at(100, at(20)).and_then(|m| m.deadline), Some(Duration::from_millis(50)));
        assert_eq!(messages.at(100, at(90)).and_then(|m| m.deadline), Some(Duration::ZERO));
    }

    #[test]
    fn a_boundary_said_twice_is_one_and_keeps_its_deadline() {
        let mut messages = MessageEnds::default();
        messages.end_at(0, None);
        messages.end_at(10, Some(at(5)));
        messages.end_at(10, None);
        let ends = |messages: &MessageEnds| messages.ends.iter_from(0).copied().collect::<Vec<_>>();
        assert_eq!(ends(&messages), [(10, Some(at(5)))]);
        messages.end_at(20, None);
        messages.release(10);
        assert_eq!(ends(&messages), [(20, None)]);
    }

    #[test]
    fn messages_that_ended_are_forgotten_but_for_the_deadline_of_the_last() {
        let mut messages = MessageEnds::default();
        messages.end_at(10, Some(at(5)));
        messages.end_at(20, Some(at(7)));
        messages.release(9);
        assert_eq!(messages.at(0, at(0)).map(|message| message.remaining), Some(10), "none has ended");
        messages.release(20);
        assert_eq!(messages.at_end(at(0)).deadline, Some(Duration::from_millis(7)));
        assert_eq!(messages.ends.len(), 1);
    }
}
