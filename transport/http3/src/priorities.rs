//! The streams of a connection whose priority can be set.

use crate::priority;
use h3::quic::StreamId;
use http::HeaderMap;
use hvq::{Priority, WriteError};
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;

/// A stream that its owner writes to and others may prioritise.
type Shared = Mutex<hvq::SendStream>;

/// No stream that sends on this connection has the ID: it was never opened, or it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} does not send")]
pub struct UnknownStream(pub StreamId);

/// Sets the priorities of what this endpoint sends on the streams of one connection. Clones are handles on the same
/// connection, and keep nothing alive.
#[derive(Clone, Debug, Default)]
pub struct Priorities {
    streams: Arc<Mutex<HashMap<u64, Weak<Shared>>>>,
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

    /// Makes `stream` known for as long as the result lives.
    pub(crate) fn register(&self, stream: hvq::SendStream) -> Registered {
        let id = stream.id();
        let stream = Arc::new(Mutex::new(stream));
        lock(&self.streams).insert(id.0, Arc::downgrade(&stream));
        Registered { id, stream, priorities: self.clone() }
    }

    fn find(&self, id: StreamId) -> Result<Arc<Shared>, UnknownStream> {
        lock(&self.streams).get(&id.into_inner()).and_then(Weak::upgrade).ok_or(UnknownStream(id))
    }
}

/// A stream that the [`Priorities`] of its connection know.
pub(crate) struct Registered {
    id: hvq::StreamId,
    stream: Arc<Shared>,
    priorities: Priorities,
}

impl Registered {
    /// The stream's ID.
    pub(crate) fn id(&self) -> hvq::StreamId {
        self.id
    }

    /// The stream, for one operation.
    pub(crate) fn lock(&self) -> MutexGuard<'_, hvq::SendStream> {
        lock(&self.stream)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        lock(&self.priorities.streams).remove(&self.id.0);
    }
}

/// Locks `mutex`; its value is whole after every statement, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
