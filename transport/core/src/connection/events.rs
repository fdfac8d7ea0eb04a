//! Events that wait for the application. Those of streams wait with these.

use crate::PathId;
use crate::connection::{Connection, Event, PathEvent};
use crate::stream::StreamEvent;
use std::collections::VecDeque;

/// Events in the order in which they are told.
///
/// Only the newest is told of a state that changes back and forth, so that their number is bounded by that of the paths
/// however fast the peer makes things change: a packet can carry hundreds of frames that each change the status of a
/// path.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    queue: VecDeque<Event>,
}

/// The topic of an event about a path, if a later one makes it pointless.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Topic {
    /// The peer's advice.
    Status(PathId),
    /// The peer's hints.
    Hints(PathId),
    /// The path answers, or does not.
    Liveness(PathId),
    /// The path moved, or failed to.
    Place(PathId),
    /// More paths can be opened, or not.
    Availability,
}

impl Topic {
    fn of(event: &Event) -> Option<Self> {
        let Event::Path(event) = event else { return None };
        match event {
            PathEvent::PeerStatus(path, _) => Some(Self::Status(*path)),
            PathEvent::PeerHints(path) => Some(Self::Hints(*path)),
            PathEvent::Silent(path) | PathEvent::Answering(path) => Some(Self::Liveness(*path)),
            PathEvent::Migrated(path) | PathEvent::MigrationFailed(path) => Some(Self::Place(*path)),
            PathEvent::Available => Some(Self::Availability),
            // Each happens once in the life of a path.
            PathEvent::Opened(_)
            | PathEvent::Validated(_)
            | PathEvent::ValidationFailed(_)
            | PathEvent::Abandoned { .. } => None,
        }
    }
}

impl EventQueue {
    /// Gives up memory that no event needs.
    pub(super) fn hibernate(&mut self) {
        self.queue.shrink_to_fit();
    }

    /// Appends an event, in place of one that waits and that it makes pointless.
    pub(super) fn push(&mut self, event: Event) {
        if let Some(topic) = Topic::of(&event)
            && let Some(index) = self.queue.iter().position(|waiting| Topic::of(waiting) == Some(topic))
        {
            self.queue.remove(index);
        }
        self.queue.push_back(event);
    }

    /// The next event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        if self.queue.is_empty() { None } else { self.take() }
    }

    /// Returns true if none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn take(&mut self) -> Option<Event> {
        let event = self.queue.pop_front()?;
        if self.queue.is_empty() {
            // They are rare.
            self.queue = VecDeque::new();
        }
        Some(event)
    }
}

/// Takes at most `most` events of the streams of `connection`, unless another event waits to be told.
pub(crate) fn take_of_streams(connection: &mut Connection, most: usize, take: impl FnMut(StreamEvent)) {
    if connection.lifecycle.is_open() && connection.events.is_empty() {
        std::iter::from_fn(|| connection.streams.poll_event()).take(most).for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::frame::Status;

    fn all(events: &mut EventQueue) -> Vec<Event> {
        std::iter::from_fn(|| events.pop()).collect()
    }

    #[test]
    fn a_queue_that_hibernates_keeps_its_events_and_no_other_memory() {
        let mut events = EventQueue::default();
        (0..20).for_each(|path| events.push(Event::Path(PathEvent::Opened(PathId(path)))));
        (0..19).for_each(|_| assert!(events.pop().is_some()));
        events.hibernate();
        assert_eq!((events.queue.len(), events.queue.capacity()), (1, 1));
    }

    #[test]
    fn of_what_changes_back_and_forth_the_newest_is_told_for_each_path() {
        let mut events = EventQueue::default();
        for round in 0..1000 {
            for path in [PathId(0), PathId(1)] {
                let status = if round % 2 == 0 { Status::Backup } else { Status::Available };
                events.push(Event::Path(PathEvent::PeerStatus(path, status)));
                events.push(Event::Path(PathEvent::PeerHints(path)));
                let silent = round % 2 == 0;
                let liveness = if silent { PathEvent::Silent(path) } else { PathEvent::Answering(path) };
                events.push(Event::Path(liveness));
            }
            events.push(Event::Path(PathEvent::Available));
        }
        let path = Event::Path;
        let expected = [0, 1].map(PathId).map(|id| {
            [PathEvent::PeerStatus(id, Status::Available), PathEvent::PeerHints(id), PathEvent::Answering(id)]
                .map(path)
        });
        let told = all(&mut events);
        assert_eq!(told[..6], expected.concat());
        assert_eq!(told[6..], [path(PathEvent::Available)]);
    }

    #[test]
    fn what_happens_once_is_told_in_its_order() {
        let mut events = EventQueue::default();
        let (id, code) = (PathId(3), 7);
        let said = [
            Event::Path(PathEvent::Opened(id)),
            Event::Connected,
            Event::Path(PathEvent::Validated(id)),
            Event::Path(PathEvent::Abandoned { path: id, code }),
        ];
        said.iter().for_each(|event| events.push(event.clone()));
        assert_eq!(all(&mut events), said);
    }
}
