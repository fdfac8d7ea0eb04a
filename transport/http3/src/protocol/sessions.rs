//! The streams of WebTransport sessions, which begin with the ID of their session (draft-ietf-webtrans-http3 §4), and those that
//! come before it.

use super::control::Violation;
use super::shared::{Shared, lock};
use crate::{Code, Datagrams};
use bytes::{Bytes, BytesMut};
use hvq::transport::wire::varint;
use hvq::{ConnectionError, RecvStream, SendStream};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The type of unidirectional streams of sessions (§4.3).
pub(crate) const UNI_STREAM: u64 = 0x54;
/// The signal at the start of bidirectional streams of sessions (§4.4).
pub(crate) const BIDI_STREAM: u64 = 0x41;
/// Sessions of a connection at a time: without flow control of its own, a session shares it with no other (§5.1).
const MOST_SESSIONS: usize = 1;
/// Streams that wait for their session.
const MOST_EARLY: usize = 16;
/// Datagrams that wait for their session.
const MOST_EARLY_DATAGRAMS: usize = 32;
/// Sessions that ended and are remembered, to tell late streams from early ones.
const REMEMBERED: usize = 64;

/// A stream that the peer opened for a session, with the bytes behind its header that came already.
#[derive(Debug)]
pub(crate) enum Arrival {
    Uni(RecvStream, Bytes),
    Bi(SendStream, RecvStream, Bytes),
}

impl Arrival {
    /// Nobody takes the stream.
    fn refuse(self, code: Code) {
        match self {
            Self::Uni(mut receive, _) => receive.stop(code.value()),
            Self::Bi(mut send, mut receive, _) => {
                receive.stop(code.value());
                // A stream that the peer stopped needs no reset.
                let _stopped = send.reset(code.value());
            }
        }
    }
}

/// There are as many sessions as there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooManySessions;

/// The WebTransport sessions of a connection.
#[derive(Debug)]
pub(crate) struct WebTransport {
    places: Mutex<Places>,
    datagrams: Arc<Datagrams>,
}

/// The places to which streams go.
#[derive(Debug, Default)]
struct Places {
    open: HashMap<u64, UnboundedSender<Arrival>>,
    early: VecDeque<(u64, Arrival)>,
    gone: VecDeque<u64>,
}

impl WebTransport {
    /// No sessions on `connection` yet.
    pub(super) fn new(connection: hvq::Connection) -> Self {
        let datagrams = Datagrams::keeping_early(connection, MOST_EARLY_DATAGRAMS);
        Self { places: Mutex::default(), datagrams }
    }

    /// The datagrams of all sessions.
    pub(crate) fn datagrams(&self) -> &Arc<Datagrams> {
        &self.datagrams
    }

    /// Hands datagrams to their sessions; ready when the connection has ended.
    pub(super) async fn carry_datagrams(&self) {
        self.datagrams.run().await;
    }

    /// Hands a stream to `session`, or keeps it until that is there: of more than a few, the oldest is refused (§4.6).
    pub(super) fn arrive(&self, session: u64, arrival: Arrival) -> Result<(), Violation> {
        // §4: it is that of a request.
        if !session.is_multiple_of(4) {
            return Err(Violation(Code::H3_ID_ERROR, "a session that is no request"));
        }
        let mut places = lock(&self.places);
        if let Some(taker) = places.open.get(&session) {
            if let Err(unsent) = taker.send(arrival) {
                unsent.0.refuse(Code::WT_SESSION_GONE);
            }
        } else if places.gone.contains(&session) {
            arrival.refuse(Code::WT_SESSION_GONE);
        } else {
            if places.early.len() >= MOST_EARLY
                && let Some((_, oldest)) = places.early.pop_front()
            {
                oldest.refuse(Code::WT_BUFFERED_STREAM_REJECTED);
            }
            places.early.push_back((session, arrival));
        }
        Ok(())
    }

    /// Begins `session`, whose streams come out of the result, those first that came before it.
    pub(crate) fn open(&self, session: u64) -> Result<UnboundedReceiver<Arrival>, TooManySessions> {
        let mut places = lock(&self.places);
        if places.open.len() >= MOST_SESSIONS {
            return Err(TooManySessions);
        }
        let (sender, receiver) = unbounded_channel();
        for (of, arrival) in std::mem::take(&mut places.early) {
            match of == session {
                // The receiver is here.
                true => drop(sender.send(arrival)),
                false => places.early.push_back((of, arrival)),
            }
        }
        places.open.insert(session, sender);
        Ok(receiver)
    }

    /// Returns true if one more session is permitted.
    pub(crate) fn has_room(&self) -> bool {
        lock(&self.places).open.len() < MOST_SESSIONS
    }

    /// Ends `session`, which is refused from now on whatever comes.
    pub(crate) fn close(&self, session: u64) {
        let mut places = lock(&self.places);
        places.open.remove(&session);
        if places.gone.len() >= REMEMBERED {
            places.gone.pop_front();
        }
        places.gone.push_back(session);
        for (of, arrival) in std::mem::take(&mut places.early) {
            match of == session {
                true => arrival.refuse(Code::WT_SESSION_GONE),
                false => places.early.push_back((of, arrival)),
            }
        }
    }
}

/// Bidirectional streams of which it is not known yet whether they are requests. Their number is that which the transport
/// permits the peer to open.
#[derive(Debug, Default)]
pub(crate) struct Unsorted(Vec<(SendStream, RecvStream, Bytes)>);

impl Unsorted {
    /// The next stream of a request, with the bytes that were read. Those of sessions are handed to them.
    pub(crate) fn poll_request(
        &mut self,
        shared: &Shared,
        context: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream, Bytes), ConnectionError>> {
        while let Poll::Ready(accepted) = shared.connection.poll_accept_bi(context) {
            let (send, receive) = accepted?;
            self.0.push((send, receive, Bytes::new()));
        }
        let mut index = 0;
        while let Some((_, receive, begun)) = self.0.get_mut(index) {
            match poll_beginning(receive, begun, context) {
                Poll::Pending => index += 1,
                Poll::Ready(Beginning::Request) => return Poll::Ready(Ok(self.0.remove(index))),
                Poll::Ready(Beginning::Session(session, header)) => {
                    let (send, receive, mut begun) = self.0.remove(index);
                    let begun = begun.split_off(header);
                    shared.arrive(session, Arrival::Bi(send, receive, begun));
                }
            }
        }
        Poll::Pending
    }
}

/// The first bytes of a bidirectional stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Beginning {
    /// Those of a request, or none at all.
    Request,
    /// The header of a stream of this session, of so many bytes.
    Session(u64, usize),
}

fn poll_beginning(receive: &mut RecvStream, begun: &mut Bytes, context: &mut Context<'_>) -> Poll<Beginning> {
    loop {
        if let Some(beginning) = beginning(begun) {
            return Poll::Ready(beginning);
        }
        match receive.poll_read_chunk(context, usize::MAX) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(Some(chunk))) if begun.is_empty() => *begun = chunk,
            Poll::Ready(Ok(Some(chunk))) => {
                let mut longer = BytesMut::from(&begun[..]);
                longer.extend_from_slice(&chunk);
                *begun = longer.freeze();
            }
            // Whoever reads requests says what is wrong with this one.
            Poll::Ready(Ok(None) | Err(_)) => return Poll::Ready(Beginning::Request),
        }
    }
}

/// Returns the beginning of a stream of which `bytes` came; `None` if more have to come first.
fn beginning(bytes: &[u8]) -> Option<Beginning> {
    let (kind, first) = varint::get(bytes)?;
    if kind != BIDI_STREAM {
        return Some(Beginning::Request);
    }
    let (session, second) = varint::get(bytes.get(first..)?)?;
    Some(Beginning::Session(session, first + second))
}

/// The header of a stream of `session`: its kind and the ID (§4.3, §4.4).
pub(crate) fn header(kind: u64, session: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(16);
    varint::put(&mut header, kind);
    varint::put(&mut header, session);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_sessions_are_told_from_requests_by_their_first_bytes() {
        let whole = header(BIDI_STREAM, 400);
        assert_eq!(whole, [0x40, 0x41, 0x41, 0x90]);
        assert_eq!(beginning(&whole), Some(Beginning::Session(400, 4)));
        assert!((0..4).all(|length| beginning(&whole[..length]).is_none()));
        assert_eq!(beginning(&[0x01, 0x10]), Some(Beginning::Request));
    }
}
