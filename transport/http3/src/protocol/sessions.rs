//! The streams of WebTransport sessions, which begin with the ID of their session (draft-ietf-webtrans-http3 §4), and those that
//! come before it.

use super::control::Violation;
use super::shared::{Shared, lock};
use crate::web_transport::{Early, SessionLimits, SessionStreams};
use crate::{Code, Datagrams};
use bytes::{Bytes, BytesMut};
use hvq::stats::StreamMeter;
use hvq::transport::wire::varint;
use hvq::{ConnectionError, RecvStream, SendStream};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The type of unidirectional streams of sessions (§4.3).
pub(crate) const UNI_STREAM: u64 = 0x54;
/// The signal at the start of bidirectional streams of sessions (§4.4).
pub(crate) const BIDI_STREAM: u64 = 0x41;
/// Sessions of which streams came before them, and whose numbers are remembered.
const MOST_EARLY_SESSIONS: usize = 16;
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

/// The header of a stream of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Heading {
    /// The ID of the session.
    pub(crate) session: u64,
    /// Bytes of the header.
    pub(crate) header: u64,
    /// Bytes behind it that were read, too.
    pub(crate) begun: Bytes,
}

/// The bytes that are missing, at least, of the integer that `begun` is the beginning of.
pub(crate) fn missing(begun: &[u8]) -> usize {
    // RFC 9000 §16: the first two bits tell the length.
    begun.first().map_or(1, |first| (1_usize << (first >> 6)).saturating_sub(begun.len())).max(1)
}

impl Arrival {
    fn receive(&self) -> &RecvStream {
        match self {
            Self::Uni(receive, _) | Self::Bi(_, receive, _) => receive,
        }
    }

    fn kind(&self) -> SessionStreams {
        match self {
            Self::Uni(..) => SessionStreams::Unidirectional,
            Self::Bi(..) => SessionStreams::Bidirectional,
        }
    }

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
    /// The limits of the peer in its sessions.
    limits: SessionLimits,
    /// The limits of this end in those that begin, which only a peer of the current draft tells.
    peer_limits: OnceLock<SessionLimits>,
    /// Told of once the client's SETTINGS came.
    heard: Notify,
}

/// The places to which streams go.
#[derive(Debug, Default)]
struct Places {
    open: HashMap<u64, (UnboundedSender<Arrival>, StreamMeter)>,
    early: VecDeque<(u64, Arrival)>,
    /// The numbers of those, and of others that were refused.
    counts: VecDeque<(u64, Early)>,
    gone: VecDeque<u64>,
}

impl Places {
    /// The numbers of a session that has not begun.
    fn counts(&mut self, session: u64) -> &mut Early {
        let index = self.counts.iter().position(|(of, _)| *of == session).unwrap_or_else(|| {
            if self.counts.len() >= MOST_EARLY_SESSIONS {
                self.counts.pop_front();
            }
            self.counts.push_back((session, Early::default()));
            self.counts.len() - 1
        });
        &mut self.counts[index].1
    }

    /// Keeps a stream of a session that has not begun.
    fn keep(&mut self, session: u64, arrival: Arrival, header: u64) {
        if self.early.len() >= MOST_EARLY
            && let Some((of, oldest)) = self.early.pop_front()
        {
            *self.counts(of).refused.of(oldest.kind()) += 1;
            oldest.refuse(Code::WT_BUFFERED_STREAM_REJECTED);
        }
        arrival.receive().meter(&self.counts(session).received, header);
        self.early.push_back((session, arrival));
    }
}

impl WebTransport {
    /// No sessions on `connection` yet.
    pub(super) fn new(connection: hvq::Connection, limits: SessionLimits) -> Self {
        let datagrams = Datagrams::keeping_early(connection, MOST_EARLY_DATAGRAMS);
        Self {
            places: Mutex::default(),
            datagrams,
            limits,
            peer_limits: OnceLock::new(),
            heard: Notify::new(),
        }
    }

    /// The limits of the peer in its sessions.
    pub(crate) fn limits(&self) -> SessionLimits {
        self.limits
    }

    /// The limits of this end in sessions that begin.
    pub(crate) fn peer_limits(&self) -> SessionLimits {
        self.peer_limits.get().copied().unwrap_or(SessionLimits::NONE)
    }

    /// The peer's SETTINGS came.
    pub(super) fn set_peer_limits(&self, limits: SessionLimits) {
        self.peer_limits.get_or_init(|| limits);
    }

    /// Told of once the client's SETTINGS came.
    pub(super) fn heard(&self) -> &Notify {
        &self.heard
    }

    /// The sessions that a connection with this peer may have at a time: without flow control of its own, a session shares it with no
    /// other (§5.1).
    fn most(&self) -> usize {
        let is_controlled = self.limits.is_declared() && self.peer_limits().is_declared();
        if is_controlled { self.limits.sessions } else { 1 }
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
    pub(super) fn arrive(&self, session: u64, arrival: Arrival, header: u64) -> Result<(), Violation> {
        // §4: it is that of a request.
        if !session.is_multiple_of(4) {
            return Err(Violation(Code::H3_ID_ERROR, "a session that is no request"));
        }
        let mut places = lock(&self.places);
        if let Some((taker, received)) = places.open.get(&session) {
            arrival.receive().meter(received, header);
            if let Err(unsent) = taker.send(arrival) {
                unsent.0.refuse(Code::WT_SESSION_GONE);
            }
        } else if places.gone.contains(&session) {
            arrival.refuse(Code::WT_SESSION_GONE);
        } else {
            places.keep(session, arrival, header);
        }
        Ok(())
    }

    /// Begins `session`, whose streams come out of the result, those first that came before it.
    pub(crate) fn open(&self, session: u64) -> Result<(UnboundedReceiver<Arrival>, Early), TooManySessions> {
        let mut places = lock(&self.places);
        if places.open.len() >= self.most() {
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
        let counts = places.counts(session).clone();
        places.counts.retain(|(of, _)| *of != session);
        places.open.insert(session, (sender, counts.received.clone()));
        Ok((receiver, counts))
    }

    /// Returns true if one more session is permitted.
    pub(crate) fn has_room(&self) -> bool {
        lock(&self.places).open.len() < self.most()
    }

    /// Ends `session`, which is refused from now on whatever comes.
    pub(crate) fn close(&self, session: u64) {
        let mut places = lock(&self.places);
        places.open.remove(&session);
        if places.gone.len() >= REMEMBERED {
            places.gone.pop_front();
        }
        places.gone.push_back(session);
        places.counts.retain(|(of, _)| *of != session);
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
                    shared.arrive(session, Arrival::Bi(send, receive, begun), header as u64);
                }
            }
        }
        Poll::Pending
    }
}

/// The first bytes of a bidirectional stream where WebTransport sessions are taken (draft-ietf-webtrans-http3 §4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Beginning {
    /// Those of a request, or none at all.
    Request,
    /// The header of a stream of the session with this ID, of so many bytes.
    Session(u64, usize),
}

fn poll_beginning(receive: &mut RecvStream, begun: &mut Bytes, context: &mut Context<'_>) -> Poll<Beginning> {
    loop {
        if let Some(beginning) = beginning(begun) {
            return Poll::Ready(beginning);
        }
        match receive.poll_read_chunk(context, wanted(begun)) {
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
pub fn beginning(bytes: &[u8]) -> Option<Beginning> {
    let (kind, first) = varint::get(bytes)?;
    if kind != BIDI_STREAM {
        return Some(Beginning::Request);
    }
    let (session, second) = varint::get(bytes.get(first..)?)?;
    Some(Beginning::Session(session, first + second))
}

/// Returns the bytes that are missing at least before [`beginning`] can tell. No more are read: how a stream of a session ends is for the session
/// to see.
fn wanted(bytes: &[u8]) -> usize {
    match varint::get(bytes) {
        Some((_, first)) => missing(bytes.get(first..).unwrap_or_default()),
        None => missing(bytes),
    }
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
        for (length, missing) in [(0, 1), (1, 1), (2, 1), (3, 1)] {
            assert_eq!(wanted(&whole[..length]), missing);
        }
        assert_eq!((wanted(&[0x80]), wanted(&[0xc0, 0]), wanted(&[0x40, 0x41, 0x80, 0])), (3, 6, 2));
    }
}
