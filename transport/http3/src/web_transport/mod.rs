//! WebTransport over HTTP/3 (draft-ietf-webtrans-http3): sessions of streams and datagrams, for programs and for pages in browsers.
//!
//! A client asks for a [`Session`] with [`Client::web_transport`](crate::client::Client::web_transport); a server takes one with
//! [`SessionRequest::accept`]. Both say [`Tunnels::WebTransport`](crate::Tunnels::WebTransport) in their [`Settings`](crate::Settings),
//! and [`PartialDelivery::On`](hvq::config::PartialDelivery) in the configuration of their connections, so that a stream that is
//! reset at once still tells its session.
//!
//! The current draft is spoken, and with peers that do not know it the drafts from 2 on, as browsers do. If both ends declare limits of
//! sessions ([`SessionLimits`], §5 of the draft), a connection has several at a time; otherwise it has one.
//!
//! ```
//! # async fn talk(client: hvq_h3::client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let request = http::Request::get("https://localhost/chat").body(())?;
//! let session = client.web_transport(&request, &["chat-1"]).await?;
//! let (mut send, mut receive) = session.open_bi().await?;
//! send.write_all(b"hello").await?;
//! send.finish()?;
//! println!("{:?}", receive.read_to_end(1024).await?);
//! session.send_datagram(b"as fast as can be")?;
//! session.close(0, "that was all");
//! # Ok(())
//! # }
//! ```

mod capsule;
mod codes;
mod driver;
mod end;
mod flow;
mod handshake;
mod limits;
mod streams;

pub use capsule::{CapsuleError, SessionCapsule};
pub use end::{SessionEnd, SessionError, StreamError};
pub use handshake::{Origins, SessionRequest, Terms, asks_for_session};
pub use limits::{SessionLimits, SessionStreams};
pub use streams::{ReceiveHalf, SendHalf};

pub use crate::protocol::sessions::{Beginning, beginning};

pub(crate) use flow::Early;

use crate::protocol::sessions::{Arrival, BIDI_STREAM, UNI_STREAM, header};
use crate::protocol::shared::{Shared, lock};
use crate::{Flow, Outcome, Receiving, Sending};
use bytes::Bytes;
use driver::{Command, Driver, Queues};
use flow::{SessionFlow, StreamCredit};
use hvq::{Priority, Role, StreamId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use streams::{Half, OpenHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Mutex as AsyncMutex, watch};

/// The life of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Life {
    Open,
    /// It is to end soon.
    Draining,
    Ended(SessionEnd),
}

/// A session, as its streams know it.
#[derive(Debug)]
pub(crate) struct SessionState {
    id: StreamId,
    shared: Arc<Shared>,
    /// The halves of its streams that somebody holds.
    halves: Mutex<HashMap<(StreamId, Half), OpenHalf>>,
    life: watch::Sender<Life>,
    /// The flow control of the session, if it is in force.
    flow: Option<Arc<SessionFlow>>,
}

impl SessionState {
    /// Notes a half, which ends with the session.
    fn note(&self, id: StreamId, half: Half, open: OpenHalf) {
        let mut halves = lock(&self.halves);
        if self.end().is_some() {
            open.end();
        } else {
            halves.insert((id, half), open);
        }
    }

    fn forget(&self, id: StreamId, half: Half) {
        let mut halves = lock(&self.halves);
        halves.remove(&(id, half));
        let is_over = !halves.contains_key(&(id, half.other()));
        drop(halves);
        // RFC 9000 §2.1: the last bit tells who opened it.
        let is_ours = id.0.is_multiple_of(2) == (self.shared.role() == Role::Client);
        if let Some(flow) = self.flow.as_ref().filter(|_| is_over && !is_ours) {
            flow.on_closed(SessionStreams::of(id));
        }
    }

    /// Something was read from a stream.
    fn on_read(&self) {
        self.flow.iter().for_each(|flow| flow.on_read());
    }

    /// A stream was stopped here.
    fn on_stopped(&self) {
        self.flow.iter().for_each(|flow| flow.on_stopped());
    }

    /// The peer wants to end the session soon.
    fn drain(&self) {
        self.life.send_if_modified(|life| {
            let is_news = *life == Life::Open;
            if is_news {
                *life = Life::Draining;
            }
            is_news
        });
    }

    /// The session has ended, and its streams with it (draft-ietf-webtrans-http3 §6).
    fn finish(&self, end: SessionEnd) {
        self.life.send_replace(Life::Ended(end));
        let halves = std::mem::take(&mut *lock(&self.halves));
        halves.values().for_each(OpenHalf::end);
        if let Some(web_transport) = self.shared.web_transport() {
            web_transport.close(self.id.0);
        }
    }

    fn end(&self) -> Option<SessionEnd> {
        match &*self.life.borrow() {
            Life::Ended(end) => Some(end.clone()),
            Life::Open | Life::Draining => None,
        }
    }

    /// Ready when the session has ended.
    async fn ended(&self) -> SessionEnd {
        let mut life = self.life.subscribe();
        let ended = life.wait_for(|life| matches!(life, Life::Ended(_))).await;
        match ended.as_deref() {
            Ok(Life::Ended(end)) => end.clone(),
            // The sender is here.
            _ => SessionEnd::ClosedHere,
        }
    }
}

/// The parts of a session that its handles share.
#[derive(Debug)]
struct Parts {
    state: Arc<SessionState>,
    commands: UnboundedSender<Command>,
    uni: AsyncMutex<UnboundedReceiver<ReceiveHalf>>,
    bi: AsyncMutex<UnboundedReceiver<(SendHalf, ReceiveHalf)>>,
    datagrams: AsyncMutex<Option<Flow>>,
    protocol: Option<String>,
}

/// A session. Clones are handles on the same one; when all are dropped, it is closed with code 0.
#[derive(Clone, Debug)]
pub struct Session {
    parts: Arc<Parts>,
}

impl Session {
    /// The session of a request that was answered with success. Its streams are `arrivals`.
    fn begin(
        sending: Sending,
        receiving: Receiving,
        (arrivals, early): (UnboundedReceiver<Arrival>, Early),
        protocol: Option<String>,
    ) -> Self {
        let (id, shared) = (sending.id(), receiving.shared().clone());
        let datagrams = shared.web_transport().and_then(|web_transport| web_transport.datagrams().flow(id));
        let flow = shared.web_transport().and_then(|web_transport| {
            SessionFlow::between(web_transport.limits(), web_transport.peer_limits(), early)
        });
        let (halves, life) = (Mutex::default(), watch::Sender::new(Life::Open));
        let state = Arc::new(SessionState { id, shared, halves, life, flow });
        let (commands, heard) = unbounded_channel();
        let ((uni, uni_queue), (bi, bi_queue)) = (unbounded_channel(), unbounded_channel());
        let queues = Queues { uni, bi };
        let driver = Driver { state: state.clone(), sending, receiving, commands: heard, arrivals, queues };
        tokio::spawn(driver.run());
        let parts = Parts {
            state,
            commands,
            uni: AsyncMutex::new(uni_queue),
            bi: AsyncMutex::new(bi_queue),
            datagrams: AsyncMutex::new(datagrams),
            protocol,
        };
        Self { parts: Arc::new(parts) }
    }

    /// The session's ID: that of the stream of its request.
    pub fn id(&self) -> StreamId {
        self.parts.state.id
    }

    /// The application protocol that both ends agreed on, if they did.
    pub fn protocol(&self) -> Option<&str> {
        self.parts.protocol.as_deref()
    }

    /// The connection that the session is on.
    pub fn connection(&self) -> &hvq::Connection {
        &self.parts.state.shared.connection
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2
    //= type=implication
    //= reason=A session begins once the SETTINGS of both ends came.
    //# However, stream types that could modify the state or semantics of existing protocol components,
    //# including QPACK or other extensions, MUST NOT be sent until the peer is known to support them.
    /// Opens a unidirectional stream, once the peer permits one more.
    ///
    /// # Errors
    /// The session has ended, or the peer wants nothing of the stream.
    pub async fn open_uni(&self) -> Result<SendHalf, StreamError> {
        self.unless_ended(async {
            let credit = self.stream_credit(SessionStreams::Unidirectional).await;
            let mut stream = self.connection().open_uni().await.map_err(StreamError::ConnectionLost)?;
            let header = header(UNI_STREAM, self.id().0);
            if let Some(credit) = credit {
                credit.spend();
            }
            stream.write_all(&header).await?;
            Ok(SendHalf::new(stream, header.len() as u64, &self.parts.state))
        })
        .await
    }

    /// Opens a bidirectional stream, once the peer permits one more.
    ///
    /// # Errors
    /// The session has ended, or the peer wants nothing of the stream.
    pub async fn open_bi(&self) -> Result<(SendHalf, ReceiveHalf), StreamError> {
        self.unless_ended(async {
            let credit = self.stream_credit(SessionStreams::Bidirectional).await;
            let (mut send, receive) =
                self.connection().open_bi().await.map_err(StreamError::ConnectionLost)?;
            let header = header(BIDI_STREAM, self.id().0);
            if let Some(credit) = credit {
                credit.spend();
            }
            send.write_all(&header).await?;
            if let Some(flow) = &self.parts.state.flow {
                receive.meter(flow.received(), 0);
            }
            let receive = ReceiveHalf::new(receive, Bytes::new(), &self.parts.state);
            Ok((SendHalf::new(send, header.len() as u64, &self.parts.state), receive))
        })
        .await
    }

    /// The next unidirectional stream of the peer.
    ///
    /// # Errors
    /// The session has ended.
    pub async fn accept_uni(&self) -> Result<ReceiveHalf, SessionEnd> {
        tokio::select! {
            biased;
            end = self.closed() => Err(end),
            Some(half) = async { self.parts.uni.lock().await.recv().await } => Ok(half),
            else => Err(SessionEnd::ClosedHere),
        }
    }

    /// The next bidirectional stream of the peer.
    ///
    /// # Errors
    /// The session has ended.
    pub async fn accept_bi(&self) -> Result<(SendHalf, ReceiveHalf), SessionEnd> {
        tokio::select! {
            biased;
            end = self.closed() => Err(end),
            Some(halves) = async { self.parts.bi.lock().await.recv().await } => Ok(halves),
            else => Err(SessionEnd::ClosedHere),
        }
    }

    /// Sends a datagram, which may be lost; one that is too large, or that the peer does not take, is dropped.
    ///
    /// # Errors
    /// The session has ended.
    pub fn send_datagram(&self, payload: &[u8]) -> Result<Outcome, SessionEnd> {
        let state = &self.parts.state;
        if let Some(end) = state.end() {
            return Err(end);
        }
        let Some(web_transport) = state.shared.web_transport() else { return Ok(Outcome::Dropped) };
        let sent = web_transport.datagrams().send(state.id.0 / 4, &[payload], Priority::default());
        sent.map_err(SessionEnd::ConnectionLost)
    }

    /// The largest datagram that is sent now, in bytes; `None` if the peer takes none.
    pub fn max_datagram_size(&self) -> Option<usize> {
        let quarter = hvq::transport::wire::varint::size(self.id().0 / 4);
        self.connection().max_datagram_size().map(|size| size.saturating_sub(quarter))
    }

    /// The next datagram of the peer. Those that nobody reads are dropped, but for a few.
    ///
    /// # Errors
    /// The session has ended.
    pub async fn read_datagram(&self) -> Result<Bytes, SessionEnd> {
        tokio::select! {
            biased;
            end = self.closed() => Err(end),
            Some(datagram) = async {
                match &mut *self.parts.datagrams.lock().await {
                    Some(flow) => Some(flow.receive().await),
                    None => None,
                }
            } => Ok(datagram),
            else => Err(SessionEnd::ClosedHere),
        }
    }

    /// Closes the session, with a code and a reason for the peer's application: its first 1024 bytes. Its streams are reset: what
    /// the peer has not got of them, it will not get.
    pub fn close(&self, code: u32, reason: &str) {
        // One that has ended needs no closing.
        let _ended = self.parts.commands.send(Command::Close { code, reason: reason.to_owned() });
    }

    /// Tells the peer that the session is to end soon: its application finishes what is under way (§4.7 of the draft).
    pub fn drain(&self) {
        let _ended = self.parts.commands.send(Command::Drain);
    }

    /// Waits until the peer says that the session is to end soon, or it has ended.
    pub async fn draining(&self) {
        let mut life = self.parts.state.life.subscribe();
        // The sender is here.
        let _there = life.wait_for(|life| *life != Life::Open).await;
    }

    /// Waits until the session has ended.
    pub async fn closed(&self) -> SessionEnd {
        self.parts.state.ended().await
    }

    /// Waits until the session permits one more stream, if it has a limit.
    async fn stream_credit(&self, kind: SessionStreams) -> Option<StreamCredit<'_>> {
        match &self.parts.state.flow {
            Some(flow) => Some(flow.stream(kind).await),
            None => None,
        }
    }

    async fn unless_ended<T>(
        &self,
        opening: impl Future<Output = Result<T, StreamError>>,
    ) -> Result<T, StreamError> {
        tokio::select! {
            biased;
            _ = self.closed() => Err(StreamError::SessionEnded),
            opened = opening => opened,
        }
    }
}
