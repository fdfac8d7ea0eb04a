//! The streams of a connection whose priority can be set.

use crate::priority;
use http::HeaderMap;
use hvq::{Priority, StreamId, WriteError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

/// Streams that a client may prioritise before it opens them; what it says of more is ignored, as it may be (attacks.md H14).
const MOST_EARLY: usize = 128;

/// A stream that its owner writes to and others may prioritise.
type Shared = Mutex<hvq::SendStream>;

/// No stream that sends on this connection has the ID: it was never opened, or it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("stream {0} does not send")]
pub struct UnknownStream(pub StreamId);

/// Sets the priorities of what this endpoint sends on the streams of one connection. Clones are handles on the same
/// connection, and keep nothing alive.
#[derive(Clone, Debug, Default)]
pub struct Priorities {
    streams: Arc<Mutex<Streams>>,
}

#[derive(Debug, Default)]
struct Streams {
    open: HashMap<u64, Weak<Shared>>,
    /// The first ID beyond those of streams that were opened.
    next: u64,
    /// The state that PRIORITY_UPDATE frames left: mostly none.
    updates: Option<Box<Updates>>,
}

/// The effect of PRIORITY_UPDATE frames (RFC 9218 §7.1).
#[derive(Debug, Default)]
struct Updates {
    /// The last of streams that are not open yet.
    early: BTreeMap<u64, Priority>,
    /// Open streams of which the client has changed its mind: that counts for more than the header section.
    decided: BTreeSet<u64>,
}

impl Priorities {
    /// Gives the response on stream `id` the priority that `request`, the request's headers, asks for
    /// (RFC 9218 §5), and returns it.
    ///
    /// # Errors
    /// The stream does not send any more.
    pub fn apply(&self, id: StreamId, request: &HeaderMap) -> Result<Priority, UnknownStream> {
        let wanted = priority::parse(request);
        self.set(id, wanted)?;
        Ok(wanted)
    }

    /// Sets the priority of what is sent on stream `id`. An urgency above 7 counts as 7.
    ///
    /// # Errors
    /// The stream does not send any more.
    pub fn set(&self, id: StreamId, priority: Priority) -> Result<(), UnknownStream> {
        let stream = self.find(id)?;
        lock(&stream).set_priority(priority);
        Ok(())
    }

    /// The priority of what is sent on stream `id`.
    ///
    /// # Errors
    /// The stream does not send any more.
    pub fn get(&self, id: StreamId) -> Result<Priority, UnknownStream> {
        let stream = self.find(id)?;
        let priority = lock(&stream).priority();
        Ok(priority)
    }

    /// Waits until the peer stops what is sent on stream `id` (RFC 9114 §4.1.1), or the connection ends. Neither is
    /// told of a stream that was sent whole, or that nobody sends on any more: this waits for ever.
    pub async fn unwanted(&self, id: StreamId) {
        poll_fn(|context| match self.find(id) {
            Ok(stream) => match lock(&stream).poll_stopped(context) {
                Poll::Ready(Ok(Some(_)) | Err(WriteError::ConnectionLost(_))) => Poll::Ready(()),
                Poll::Ready(_) | Poll::Pending => Poll::Pending,
            },
            Err(UnknownStream(_)) => Poll::Pending,
        })
        .await;
    }

    /// Follows a PRIORITY_UPDATE frame about the response on stream `id` (RFC 9218 §7.1): at once, or when the request comes.
    pub(crate) fn update(&self, id: u64, priority: Priority) {
        let Streams { open, next, updates } = &mut *lock(&self.streams);
        let Updates { early, decided } = &mut **updates.get_or_insert_default();
        if let Some(stream) = open.get(&id) {
            decided.insert(id);
            if let Some(stream) = stream.upgrade() {
                lock(&stream).set_priority(priority);
            }
        } else if id >= *next && (early.len() < MOST_EARLY || early.contains_key(&id)) {
            early.insert(id, priority);
        }
    }

    /// Makes `stream` known for as long as the result lives.
    pub(crate) fn register(&self, stream: hvq::SendStream) -> Registered {
        let id = stream.id().0;
        let Streams { open, next, updates } = &mut *lock(&self.streams);
        *next = (*next).max(id.saturating_add(1));
        if let Some(Updates { early, decided }) = updates.as_deref_mut()
            && let Some(priority) = early.remove(&id)
        {
            stream.set_priority(priority);
            decided.insert(id);
        }
        let stream = Arc::new(Mutex::new(stream));
        open.insert(id, Arc::downgrade(&stream));
        Registered { stream, priorities: self.clone() }
    }

    fn find(&self, id: StreamId) -> Result<Arc<Shared>, UnknownStream> {
        lock(&self.streams).open.get(&id.0).and_then(Weak::upgrade).ok_or(UnknownStream(id))
    }
}

/// A stream that the [`Priorities`] of its connection know.
pub(crate) struct Registered {
    stream: Arc<Shared>,
    priorities: Priorities,
}

impl Registered {
    /// The stream's ID.
    pub(crate) fn id(&self) -> hvq::StreamId {
        self.lock().id()
    }

    /// Sets the priority that `headers`, those of the request, ask for, unless a PRIORITY_UPDATE said another.
    pub(crate) fn apply_header(&self, headers: &HeaderMap) {
        if !headers.contains_key(priority::PRIORITY) {
            return;
        }
        let id = self.id().0;
        let streams = lock(&self.priorities.streams);
        if !streams.updates.as_ref().is_some_and(|updates| updates.decided.contains(&id)) {
            self.lock().set_priority(priority::parse(headers));
        }
    }

    /// The stream, for one operation.
    pub(crate) fn lock(&self) -> MutexGuard<'_, hvq::SendStream> {
        lock(&self.stream)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let id = self.id().0;
        let mut streams = lock(&self.priorities.streams);
        streams.open.remove(&id);
        if let Some(updates) = &mut streams.updates {
            updates.decided.remove(&id);
        }
    }
}

/// Locks `mutex`; its value is whole after every statement, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_of_streams_that_never_come_are_forgotten_beyond_a_number() {
        // attacks.md H14.
        let priorities = Priorities::default();
        for number in 0..10_000u64 {
            priorities.update(4 * number, Priority::DEFAULT);
        }
        let urgent = Priority { urgency: 0, incremental: false };
        priorities.update(0, urgent);
        let streams = lock(&priorities.streams);
        let early = &streams.updates.as_ref().unwrap().early;
        assert_eq!((early.len(), early.get(&0)), (MOST_EARLY, Some(&urgent)));
    }
}
