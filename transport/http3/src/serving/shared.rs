//! What all streams of a connection share.

use super::control::Kind;
use super::control::{Seen, Settings, Uni, Violation};
use crate::Priorities;
use h3::error::Code;
use hvq::{ReadError, RecvStream};
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

/// A connection, as its streams know it.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) connection: hvq::Connection,
    pub(super) priorities: Priorities,
    /// The largest field section that is taken.
    pub(super) limit: u64,
    /// The largest field section that the client takes.
    peer_limit: AtomicU64,
}

impl Shared {
    pub(super) fn new(connection: hvq::Connection, limit: u64) -> Arc<Self> {
        let (priorities, peer_limit) = (Priorities::default(), AtomicU64::new(u64::MAX));
        Arc::new(Self { connection, priorities, limit, peer_limit })
    }

    /// The largest field section that the client takes, as far as is known.
    pub(super) fn peer_limit(&self) -> u64 {
        self.peer_limit.load(Ordering::Relaxed)
    }

    /// Ends the connection.
    pub(super) fn close(&self, Violation(code, reason): Violation) {
        self.connection.close(code.value(), reason.as_bytes());
    }
}

/// Reads what the client sends on its unidirectional streams until the connection ends, and ends it if it has to.
pub(super) async fn watch(shared: Arc<Shared>) {
    let (mut streams, mut seen) = (Vec::new(), Seen::default());
    let violation = poll_fn(|context| poll_streams(&shared, &mut streams, &mut seen, context)).await;
    if let Some(violation) = violation {
        shared.close(violation);
    }
}

/// Ready with what ends the connection, or with nothing once it has ended.
fn poll_streams(
    shared: &Shared,
    streams: &mut Vec<(RecvStream, Uni)>,
    seen: &mut Seen,
    context: &mut Context<'_>,
) -> Poll<Option<Violation>> {
    loop {
        match shared.connection.poll_accept_uni(context) {
            Poll::Ready(Ok(stream)) => streams.push((stream, Uni::default())),
            Poll::Ready(Err(_ended)) => return Poll::Ready(None),
            Poll::Pending => break,
        }
    }
    let mut index = 0;
    while let Some((stream, uni)) = streams.get_mut(index) {
        match poll_stream(stream, uni, seen, context) {
            Poll::Ready(Ok(())) => drop(streams.swap_remove(index)),
            Poll::Ready(Err(violation)) => return Poll::Ready(Some(violation)),
            Poll::Pending => index += 1,
        }
    }
    if let Some(limit) = seen.field_section {
        shared.peer_limit.store(limit, Ordering::Relaxed);
    }
    Poll::Pending
}

/// Ready when the stream is of no more interest.
fn poll_stream(
    stream: &mut RecvStream,
    uni: &mut Uni,
    seen: &mut Seen,
    context: &mut Context<'_>,
) -> Poll<Result<(), Violation>> {
    loop {
        match stream.poll_read_chunk(context, usize::MAX) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(Some(chunk))) => uni.take(&chunk, seen)?,
            Poll::Ready(Err(ReadError::ConnectionLost(_))) => return Poll::Ready(Ok(())),
            Poll::Ready(Ok(None) | Err(_)) if uni.is_critical() => {
                let reason = "a stream ended that has to last";
                return Poll::Ready(Err(Violation(Code::H3_CLOSED_CRITICAL_STREAM, reason)));
            }
            // RFC 9114 §6.2: a stream may be reset before its type is known.
            Poll::Ready(Ok(None) | Err(_)) => return Poll::Ready(Ok(())),
        }
        match uni.kind() {
            // RFC 9114 §6.2: nobody here reads what is not known.
            Some(Kind::Unknown) => {
                stream.stop(Code::H3_STREAM_CREATION_ERROR.value());
                return Poll::Ready(Ok(()));
            }
            Some(Kind::Control(Settings::Awaited | Settings::Seen) | Kind::Encoder | Kind::Decoder)
            | None => {}
        }
    }
}
