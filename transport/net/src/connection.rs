//! A connection as the application sees it.

use crate::config::StreamLimits;
use crate::handle_state::{HandleState, Phase};
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;
use crate::shared::Shared;
use crate::stats::ConnectionStats;
use crate::{ConnectionError, Direction, Priority, SendDatagramError, StreamId, TlsConfigError};
use bytes::Bytes;
use hvq_transport::connection::{Connection as Core, EarlyDataState, Role};
use hvq_transport::crypto::one_rtt::UpdateNotPermitted;
use hvq_transport::endpoint::ConnectionHandle;
use hvq_transport::time::Instant;
use hvq_transport::trace::Tracer;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A connection. Clones are handles on the same connection; when the last handle and the last stream are dropped, it is
/// closed with code 0.
#[derive(Clone)]
pub struct Connection {
    reference: Arc<Reference>,
}

/// One for all handles and streams of a connection.
pub(crate) struct Reference {
    shared: Arc<Shared>,
    handle: ConnectionHandle,
}

/// The connection that a command works on.
pub(crate) struct Access<'a> {
    /// The protocol's connection, unless it ended and was forgotten.
    pub(crate) core: Option<&'a mut Core>,
    /// This crate's state of the connection.
    pub(crate) slot: &'a mut HandleState,
    shared: &'a Shared,
}

impl Access<'_> {
    /// Now: most commands need not ask the clock.
    pub(crate) fn now(&self) -> Instant {
        self.shared.now()
    }

    /// The protocol's connection, or why it is not usable.
    pub(crate) fn open(&mut self) -> Result<&mut Core, ConnectionError> {
        if let Phase::Closed(error) = &self.slot.phase {
            return Err(error.clone());
        }
        self.core.as_deref_mut().ok_or(ConnectionError::LocallyClosed { code: 0 })
    }
}

impl Reference {
    /// The reference that stands for all handles on `handle`, whose slot exists.
    pub(crate) fn new(shared: Arc<Shared>, handle: ConnectionHandle) -> Arc<Self> {
        Arc::new(Self { shared, handle })
    }

    /// Runs a command, and has the driver look at what it changed.
    pub(crate) fn command<T>(&self, command: impl FnOnce(Access<'_>) -> T) -> T {
        let mut state = self.shared.lock();
        let state = &mut *state;
        let slot = state.slots.get_mut(&self.handle).expect("a slot lives as long as its reference");
        let core = state.core.connection(self.handle);
        let core = core.or_else(|| state.unread.get_mut(&self.handle).map(Box::as_mut));
        let result = command(Access { core, slot, shared: &self.shared });
        state.wake_driver();
        result
    }

    /// Changes what the handle knows, and nothing of the protocol.
    pub(crate) fn note<T>(&self, note: impl FnOnce(&mut HandleState) -> T) -> T {
        let mut state = self.shared.lock();
        note(state.slots.get_mut(&self.handle).expect("a slot lives as long as its reference"))
    }

    /// Looks at the state without changing the protocol's.
    pub(crate) fn look<T>(&self, look: impl FnOnce(Option<&Core>, &mut HandleState) -> T) -> T {
        let mut state = self.shared.lock();
        let state = &mut *state;
        let slot = state.slots.get_mut(&self.handle).expect("a slot lives as long as its reference");
        let core = state.core.get(self.handle);
        look(core.or_else(|| state.unread.get(&self.handle).map(Box::as_ref)), slot)
    }

    /// The endpoint that the connection belongs to.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The connection's name in the protocol's endpoint.
    pub(crate) fn handle(&self) -> ConnectionHandle {
        self.handle
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let now = self.shared.now();
        self.shared.lock().drop_reference(self.handle, now);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.reference.handle)
    }
}

impl Connection {
    pub(crate) fn new(reference: Arc<Reference>) -> Self {
        Self { reference }
    }

    pub(crate) fn reference(&self) -> &Arc<Reference> {
        &self.reference
    }

    /// Opens a bidirectional stream; waits while the peer permits no more of them (RFC 9000 §4.6). The peer learns of the
    /// stream with the first data on it.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = poll_fn(|context| self.poll_open(context, Direction::Bidirectional)).await?;
        Ok((SendStream::new(self.clone(), id), RecvStream::new(self.clone(), id)))
    }

    /// Opens a stream on which only this endpoint sends, as [`open_bi`](Self::open_bi) does.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let id = poll_fn(|context| self.poll_open(context, Direction::Unidirectional)).await?;
        Ok(SendStream::new(self.clone(), id))
    }

    /// The next bidirectional stream of the peer.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        poll_fn(|context| self.poll_accept_bi(context)).await
    }

    /// The next stream on which only the peer sends.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        poll_fn(|context| self.poll_accept_uni(context)).await
    }

    /// [`open_bi`](Self::open_bi) for those who poll.
    pub fn poll_open_bi(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        let opened = self.poll_open(context, Direction::Bidirectional);
        opened.map_ok(|id| (SendStream::new(self.clone(), id), RecvStream::new(self.clone(), id)))
    }

    /// [`open_uni`](Self::open_uni) for those who poll.
    pub fn poll_open_uni(&self, context: &mut Context<'_>) -> Poll<Result<SendStream, ConnectionError>> {
        self.poll_open(context, Direction::Unidirectional).map_ok(|id| SendStream::new(self.clone(), id))
    }

    /// [`accept_bi`](Self::accept_bi) for those who poll.
    pub fn poll_accept_bi(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        let accepted = self.poll_accept(context, Direction::Bidirectional);
        accepted.map_ok(|id| (SendStream::new(self.clone(), id), RecvStream::new(self.clone(), id)))
    }

    /// [`accept_uni`](Self::accept_uni) for those who poll.
    pub fn poll_accept_uni(&self, context: &mut Context<'_>) -> Poll<Result<RecvStream, ConnectionError>> {
        self.poll_accept(context, Direction::Unidirectional).map_ok(|id| RecvStream::new(self.clone(), id))
    }

    fn poll_open(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        self.reference.command(|mut access| {
            if let Some(id) = access.open()?.open(direction) {
                access.slot.add_sender(id);
                return Poll::Ready(Ok(id));
            }
            access.slot.open_wakers(direction).register(context.waker());
            Poll::Pending
        })
    }

    fn poll_accept(
        &self,
        context: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        self.reference.command(|mut access| {
            // Streams that arrived before the connection ended are still handed out.
            if let Some(core) = access.core.as_deref_mut()
                && let Some(id) = core.accept(direction)
            {
                if direction == Direction::Bidirectional {
                    access.slot.add_sender(id);
                }
                return Poll::Ready(Ok(id));
            }
            access.open()?;
            access.slot.accept_wakers(direction).register(context.waker());
            Poll::Pending
        })
    }

    /// Queues an unreliable datagram (RFC 9221) of default priority. It is never blocked: if the queue is full, the
    /// oldest of the least urgent datagrams gives way.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.send_datagram_with(data, Priority::DEFAULT, None)
    }

    /// Queues a datagram of `priority`, which is dropped if it has not been sent when `deadline` from now is over.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub fn send_datagram_with(
        &self,
        data: Bytes,
        priority: Priority,
        deadline: Option<Duration>,
    ) -> Result<(), SendDatagramError> {
        self.reference.command(|mut access| {
            let deadline = deadline.map(|deadline| access.now() + deadline);
            access.open()?.send_datagram(data, priority, deadline)?;
            Ok(())
        })
    }

    /// Queues a datagram of default priority once there is room for it, so that no older one gives way.
    ///
    /// # Errors
    /// See [`SendDatagramError`].
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        poll_fn(|context| self.poll_send_datagram(context, &data)).await
    }

    /// [`send_datagram_wait`](Self::send_datagram_wait) for those who poll.
    pub fn poll_send_datagram(
        &self,
        context: &mut Context<'_>,
        data: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        let handle = self.reference.handle;
        let mut state = self.reference.shared.lock();
        let state = &mut *state;
        let slot = state.slots.get_mut(&handle).expect("a slot lives as long as its reference");
        slot.check_open()?;
        let Some(core) = state.core.connection(handle) else {
            return Poll::Ready(Err(ConnectionError::LocallyClosed { code: 0 }.into()));
        };
        // One that is too large is refused rather than waited for.
        let is_fit = core.max_datagram_size().is_some_and(|most| data.len() <= most);
        if is_fit && core.datagram_space() < data.len() {
            slot.datagram_space_wakers.register(context.waker());
            state.wait_for_datagram_space(handle);
            return Poll::Pending;
        }
        let sent = core.send_datagram(data.clone(), Priority::DEFAULT, None);
        state.wake_driver();
        Poll::Ready(sent.map(drop).map_err(SendDatagramError::from))
    }

    /// Bytes of the largest datagram that can be queued without an older one giving way, at most
    /// [`Self::max_datagram_size`]; 0 once the connection ended.
    pub fn datagram_space(&self) -> usize {
        self.reference.look(|core, _| core.map_or(0, Core::datagram_space))
    }

    /// The next datagram of the peer.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        poll_fn(|context| self.poll_read_datagram(context)).await
    }

    /// [`read_datagram`](Self::read_datagram) for those who poll.
    pub fn poll_read_datagram(&self, context: &mut Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        self.reference.command(|mut access| {
            if let Some(data) = access.core.as_deref_mut().and_then(Core::receive_datagram) {
                return Poll::Ready(Ok(data));
            }
            access.open()?;
            access.slot.datagram_wakers.register(context.waker());
            Poll::Pending
        })
    }

    /// Announces datagrams of up to `bytes`: paths that are not known to carry them are probed for larger sizes at once. Without
    /// that, the first one that is refused has the same effect.
    pub fn expect_datagrams(&self, bytes: usize) {
        self.reference.command(|access| {
            if let Some(core) = access.core {
                core.expect_datagrams(bytes);
            }
        });
    }

    /// Bytes of the largest datagram that can be sent now; `None` if the peer accepts none.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.reference.look(|core, _| core.and_then(Core::max_datagram_size))
    }

    /// Charges `bytes` that the application holds for the peer to the connection's account of memory, until they are
    /// [discharged](Self::discharge_memory). False if there is no room for them, or the connection ended: then nothing is
    /// charged.
    pub fn charge_memory(&self, bytes: usize) -> bool {
        let charge = |core: &mut Core| core.charge_memory(bytes);
        self.reference.command(|access| access.core.is_some_and(charge))
    }

    /// The application does not hold `bytes` any more that it had charged.
    pub fn discharge_memory(&self, bytes: usize) {
        self.reference.command(|access| {
            if let Some(core) = access.core {
                core.discharge_memory(bytes);
            }
        });
    }

    /// Closes the connection with the application's `code` and a reason for people (RFC 9000 §10.2). Data that was not
    /// acknowledged may be lost. Does nothing if it already ended.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.reference.command(|access| {
            let now = access.now();
            if let Some(core) = access.core {
                core.close(code, reason, now);
                // Nobody has to wait for the driver to be told.
                access.slot.end(ConnectionError::LocallyClosed { code }, Some(core));
            }
        });
    }

    /// Waits for the end of the connection, and tells why it ended.
    pub async fn closed(&self) -> ConnectionError {
        poll_fn(|context| self.poll_closed(context)).await
    }

    /// [`closed`](Self::closed) for those who poll.
    pub fn poll_closed(&self, context: &mut Context<'_>) -> Poll<ConnectionError> {
        self.reference.look(|_, slot| {
            if let Phase::Closed(error) = &slot.phase {
                return Poll::Ready(error.clone());
            }
            slot.closed_wakers.register(context.waker());
            Poll::Pending
        })
    }

    /// Ready when the handshake is complete.
    pub(crate) fn poll_connected(&self, context: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        self.reference.look(|_, slot| match &slot.phase {
            Phase::Established => Poll::Ready(Ok(())),
            // A peer may have closed it before anybody looked.
            Phase::Closed(_) if slot.was_connected => Poll::Ready(Ok(())),
            Phase::Closed(error) => Poll::Ready(Err(error.clone())),
            Phase::Handshaking => {
                slot.connected_wakers.register(context.waker());
                Poll::Pending
            }
        })
    }

    /// Returns the reason for which the connection ended, if it did.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.reference.look(|_, slot| match &slot.phase {
            Phase::Closed(error) => Some(error.clone()),
            Phase::Handshaking | Phase::Established => None,
        })
    }

    /// Returns the role of this endpoint: client or server.
    pub fn role(&self) -> Role {
        self.reference.look(|_, slot| slot.role)
    }

    /// The application protocol that TLS agreed on (RFC 7301).
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.reference.look(|core, slot| slot.alpn(core))
    }

    /// The host name that the client asked for (RFC 6066 §3).
    pub fn server_name(&self) -> Option<String> {
        self.reference.look(|core, slot| slot.server_name(core))
    }

    /// The peer's certificate chain, its own first, each in DER; empty if it has none, or once the connection is gone.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        self.reference.look(|core, _| core.map(Core::peer_certificates).unwrap_or_default())
    }

    /// Fills `out` with keying material that both ends can export with the same `label` and `context`, and nobody else
    /// (RFC 8446 §7.5).
    ///
    /// # Errors
    /// The handshake is not complete, the connection is gone, or its TLS is not `exportable`, as a
    /// [client](hvq_transport::crypto::session::ClientTlsBuilder::exportable) or a
    /// [server](hvq_transport::crypto::session::ServerTlsBuilder::exportable).
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), TlsConfigError> {
        let gone = || TlsConfigError::Tls("the connection is gone".to_owned());
        self.reference.look(|core, _| core.ok_or_else(gone)?.export_keying_material(out, label, context))
    }

    /// Changes limits of streams: how many the peer may have open at a time, the largest window of the connection, and how much of a
    /// stream may wait before writing blocks. What the peer was granted before holds; first windows of streams stay as they are.
    pub fn change_stream_limits(&self, change: impl FnOnce(&mut StreamLimits)) {
        self.reference.command(|access| {
            if let Some(core) = access.core {
                core.change_stream_limits(change);
            }
        });
    }

    /// Returns true if both endpoints speak multipath (RFC 10069 §2).
    pub fn is_multipath(&self) -> bool {
        self.reference.look(|core, _| core.is_some_and(Core::is_multipath))
    }

    /// Counters and estimates; those of the end once the connection ended.
    pub fn stats(&self) -> ConnectionStats {
        self.reference.look(|core, slot| slot.stats(core))
    }

    /// The smallest smoothed round-trip time of the open paths, zero if there is none.
    pub fn rtt(&self) -> Duration {
        self.stats().paths.iter().map(|path| path.rtt).min().unwrap_or_default()
    }

    /// The peer's address on the open path of smallest ID.
    pub fn remote_address(&self) -> SocketAddr {
        let first = self.stats().paths.iter().min_by_key(|path| path.id).map(|path| path.tuple.remote);
        first.unwrap_or_else(|| self.reference.look(|_, slot| slot.first_remote))
    }

    /// A number that no other connection of the same endpoint has.
    pub fn stable_id(&self) -> u64 {
        self.reference.handle.0
    }

    /// Returns true if the handshake is not complete and data flows all the same, in 0-RTT packets. Data that a server
    /// reads meanwhile may be a copy that an attacker sends (RFC 9001 §9.2, RFC 8470).
    pub fn is_early_data(&self) -> bool {
        self.reference.look(|core, _| core.is_some_and(Core::is_early_data))
    }

    /// Returns true if the server accepted 0-RTT; `None` as long as a client does not know. Rejected data was sent
    /// again.
    pub fn early_data_accepted(&self) -> Option<bool> {
        match self.reference.look(|core, _| core.map(Core::early_data)).unwrap_or_default() {
            EarlyDataState::Offered => None,
            EarlyDataState::Accepted => Some(true),
            EarlyDataState::Unused | EarlyDataState::Rejected => Some(false),
        }
    }

    /// Returns true if the handshake resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.reference.look(|core, _| core.is_some_and(Core::is_resumed))
    }

    /// Waits until the handshake is complete: what a server does from then on, it does for nobody's copy.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn handshake_complete(&self) -> Result<(), ConnectionError> {
        poll_fn(|context| self.poll_connected(context)).await
    }

    /// Updates the keys that packets are protected with, both ways (RFC 9001 §6). Keys are updated without being asked
    /// before they wear out.
    ///
    /// # Errors
    /// It is too early: see [`UpdateNotPermitted`].
    pub fn update_keys(&self) -> Result<(), UpdateNotPermitted> {
        self.reference.command(|access| {
            let now = access.now();
            access.core.ok_or(UpdateNotPermitted::Unconfirmed)?.update_keys(now)
        })
    }

    /// Returns the number of key updates, by either side.
    pub fn key_updates(&self) -> u64 {
        self.reference.look(|core, _| core.map_or(0, Core::key_updates))
    }

    /// Has `tracer` told of everything from here on. It is called by the driver and must neither block nor use this
    /// crate.
    pub fn set_tracer(&self, tracer: Box<dyn Tracer>) {
        self.reference.command(|access| {
            if let Some(core) = access.core {
                core.set_tracer(tracer);
            }
        });
    }
}
