//! The state that all streams of a connection share.

use super::compression::Compression;
use super::control::{
    Kind, Offers, Peer, Seen, Sessions, SettingsProgress, UPDATE_OF_REQUEST, Uni, Violation,
};
use super::departure::Departure;
use super::origin_set::{self, ORIGIN, OriginSet};
use super::own_stream::{ControlStream, MOST_URGENT};
use super::sessions::{Arrival, Heading, Unsorted, WebTransport};
use crate::qpack::{self, Field, Line, SectionError};
use crate::{Code, Origin, Priorities, Settings, Tunnels, priority};
use bytes::{Bytes, BytesMut};
use hvq::transport::wire::varint;
use hvq::{ConnectionError, Priority, ReadError, RecvStream, Role, WriteError};
use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// Bytes of encoded field sections that came and were not read yet, of all streams of a connection together.
#[derive(Debug)]
pub(crate) struct Unread {
    most: u64,
    held: AtomicU64,
}

impl Unread {
    /// Counts `now` bytes of a stream that had `before`; fails, and counts as before, if that is too much.
    pub(crate) fn change(&self, before: u64, now: u64) -> Result<(), TooMuch> {
        let changed = |held: u64| {
            let held = held.saturating_sub(before).saturating_add(now);
            (now <= before || held <= self.most).then_some(held)
        };
        let changed = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed);
        changed.map(|_| ()).map_err(|_| TooMuch)
    }
}

/// There would be more than a connection may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooMuch;

/// The state that only clients have.
#[derive(Debug, Default)]
struct ClientState {
    /// The requests that are open, and what the server says of its end.
    departure: Mutex<Departure>,
    /// Told of once the server's SETTINGS came.
    heard: Notify,
    /// The origins that the server named.
    origins: Mutex<OriginSet>,
}

/// A connection, as its streams know it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) connection: hvq::Connection,
    pub(crate) priorities: Priorities,
    /// The largest field section that is taken.
    pub(crate) limit: u64,
    /// The encoded field sections that came and were not read yet, of all streams together.
    pub(crate) unread: Unread,
    /// The largest field section that the peer takes.
    peer_limit: AtomicU64,
    /// The peer's extensions, once its SETTINGS came.
    offers: OnceLock<Offers>,
    compression: Mutex<Compression>,
    //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
    //= type=implication
    //= reason=Nothing finishes or resets it, and no critical stream of the peer is stopped.
    //# The sender MUST NOT close the control stream, and the receiver MUST NOT request that the sender
    //# close the control stream.
    control: Mutex<ControlStream>,
    /// The WebTransport sessions, if any are taken.
    web_transport: Option<Box<WebTransport>>,
    /// The state of a client; a server, of which there are many, has none.
    client: Option<Box<ClientState>>,
}

impl Shared {
    /// Begins HTTP/3 on `connection`: says SETTINGS on a control stream, which lasts as long as the result.
    pub(crate) async fn begin(
        connection: hvq::Connection,
        settings: Settings,
    ) -> Result<Arc<Self>, ConnectionError> {
        //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
        //# Each side MUST initiate a single control stream at the beginning of the connection and send its
        //# SETTINGS frame as the first frame on this stream.
        let mut control = connection.open_uni().await?;
        control.set_priority(MOST_URGENT);
        //= https://www.rfc-editor.org/rfc/rfc9114#section-3.2
        //# After the QUIC connection is established, a SETTINGS frame MUST be sent by each endpoint as the
        //# initial frame of their respective HTTP control stream.
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
        //# A SETTINGS frame MUST be sent as the first frame of each control stream (see Section 6.2.1) by each
        //# peer, and it MUST NOT be sent subsequently.
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
        //= type=implication
        //= reason=SETTINGS are the first bytes that are sent.
        //# Endpoints MUST NOT require any data to be received from the peer prior to sending the SETTINGS
        //# frame; settings MUST be sent as soon as the transport is ready to send data.
        //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
        //= type=implication
        //= reason=This is the one place where SETTINGS are written.
        //# SETTINGS frames MUST NOT be sent on any stream other than the control stream.
        match control.write_all(&settings.stream(RandomState::new().build_hasher().finish())).await {
            Ok(()) => {}
            Err(WriteError::ConnectionLost(lost)) => return Err(lost),
            Err(WriteError::Stopped(_) | WriteError::Closed) => {
                connection.close(Code::H3_CLOSED_CRITICAL_STREAM.value(), b"");
                return Err(ConnectionError::LocallyClosed { code: Code::H3_CLOSED_CRITICAL_STREAM.value() });
            }
        }
        let takes_sessions = settings.tunnels == Tunnels::WebTransport;
        let web_transport =
            takes_sessions.then(|| Box::new(WebTransport::new(connection.clone(), settings.sessions)));
        let client = (connection.role() == Role::Client).then(Box::default);
        Ok(Arc::new(Self {
            connection,
            priorities: Priorities::default(),
            limit: settings.max_field_section_size,
            unread: Unread { most: settings.max_unread_fields, held: AtomicU64::new(0) },
            peer_limit: AtomicU64::new(u64::MAX),
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
            //= type=implication
            //= reason=Nothing is stored: defaults hold until the SETTINGS of the server came.
            //# A client MUST comply with stored settings -- or default values if no values are stored -- when
            //# attempting 0-RTT.
            offers: OnceLock::new(),
            compression: Mutex::new(Compression::new(settings.qpack, settings.encoder)),
            control: Mutex::new(ControlStream::new(control)),
            web_transport,
            client,
        }))
    }

    /// The WebTransport sessions, if any are taken.
    pub(crate) fn web_transport(&self) -> Option<&WebTransport> {
        self.web_transport.as_deref()
    }

    /// Hands a stream to its WebTransport session; ends the connection if there can be no such session.
    pub(crate) fn arrive(&self, session: u64, arrival: Arrival, header: u64) {
        let Some(web_transport) = self.web_transport() else { return };
        web_transport.arrive(session, arrival, header).unwrap_or_else(|violation| self.close(violation));
    }

    /// The largest field section that the peer takes, as far as is known.
    pub(crate) fn peer_limit(&self) -> u64 {
        self.peer_limit.load(Ordering::Relaxed)
    }

    /// Counts `now` bytes of encoded field sections of a stream that had `before`, and has them charged to the connection's account
    /// of memory; fails, and counts as before, if that is too much.
    pub(crate) fn count_unread(&self, before: u64, now: u64) -> Result<(), TooMuch> {
        self.unread.change(before, now)?;
        let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        if now <= before {
            if now < before {
                self.connection.discharge_memory(bytes(before - now));
            }
            return Ok(());
        }
        // A connection that has ended holds nothing, and says so itself.
        if self.connection.charge_memory(bytes(now - before)) || self.connection.close_reason().is_some() {
            return Ok(());
        }
        self.unread.change(now, before)?;
        Err(TooMuch)
    }

    pub(crate) fn role(&self) -> Role {
        if self.client.is_some() { Role::Client } else { Role::Server }
    }

    fn departure(&self) -> Option<&Mutex<Departure>> {
        self.client.as_ref().map(|client| &client.departure)
    }

    /// The origins that the server named to this client.
    pub(crate) fn origins(&self) -> Option<MutexGuard<'_, OriginSet>> {
        self.client.as_ref().map(|client| lock(&client.origins))
    }

    /// The waiters for the peer's SETTINGS: clients, and servers that take WebTransport sessions.
    fn heard(&self) -> Option<&Notify> {
        let of_server = self.web_transport().map(WebTransport::heard);
        self.client.as_ref().map(|client| &client.heard).or(of_server)
    }

    /// Returns the peer's extensions to a client, or to a server that takes WebTransport sessions: waits for its SETTINGS, while
    /// somebody [watches](watch).
    pub(crate) async fn offers(&self) -> Result<Offers, ConnectionError> {
        let Some(notify) = self.heard() else { return Ok(Offers::default()) };
        loop {
            let mut heard = std::pin::pin!(notify.notified());
            heard.as_mut().enable();
            if let Some(offers) = self.offers.get() {
                return Ok(*offers);
            }
            tokio::select! {
                () = heard.as_mut() => {}
                lost = self.connection.closed() => return Err(lost),
            }
        }
    }

    fn note(&self, seen: &mut Seen) {
        seen.updates.drain(..).for_each(|(id, priority)| self.priorities.update(id, priority));
        if let (Some(id), Some(departure)) = (seen.goaway, self.departure()) {
            lock(departure).announce(id);
        }
        if !seen.origins.is_empty()
            && let Some(mut origins) = self.origins()
        {
            origins.take(&mut seen.origins);
        }
        if let Some(limit) = seen.field_section {
            self.peer_limit.store(limit, Ordering::Relaxed);
        }
        if let Some(offers) = seen.offers
            && self.offers.set(offers).is_ok()
        {
            self.compression().set_peer_limits(seen.qpack, &self.connection);
            if let (Some(web_transport), Some(limits), Sessions::Current) =
                (self.web_transport(), &seen.limits, offers.sessions)
            {
                web_transport.set_peer_limits(**limits);
            }
            if let Some(heard) = self.heard() {
                heard.notify_waiters();
            }
        }
    }

    fn compression(&self) -> MutexGuard<'_, Compression> {
        lock(&self.compression)
    }

    /// Tells the client that no requests are accepted from stream `id` on (GOAWAY, RFC 9114 §5.2).
    pub(crate) fn go_away(&self, id: u64) {
        let mut payload = Vec::new();
        varint::put(&mut payload, id);
        self.say(0x07, &payload);
    }

    /// Tells the client that it may ask for `origins`, too (ORIGIN, RFC 9412).
    pub(crate) fn announce(&self, origins: &[Origin]) {
        for payload in origin_set::payloads(origins) {
            //= https://www.rfc-editor.org/rfc/rfc8336#section-2.2
            //# The ORIGIN frame MUST be sent on stream 0; an ORIGIN frame on any other stream is invalid and MUST be
            //# ignored.
            // RFC 9412 §2: the server's control stream.
            self.say(ORIGIN, &payload);
        }
    }

    /// Tells the server that the response on stream `id` has another priority now (PRIORITY_UPDATE, RFC 9218 §7.1).
    pub(crate) fn reprioritize(&self, id: u64, priority: Priority) {
        if lock(&self.control).is_behind() {
            // Advice that nobody takes (RFC 9218 §10).
            return;
        }
        let mut payload = Vec::new();
        varint::put(&mut payload, id);
        payload.extend_from_slice(priority::header(priority).as_ref().map_or(b"", |value| value.as_bytes()));
        //= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
        //# The PRIORITY_UPDATE frame MUST be sent on the client control stream
        self.say(UPDATE_OF_REQUEST, &payload);
    }

    /// Sends a frame of type `kind` on the control stream: at once, as far as the peer takes it.
    fn say(&self, kind: u64, payload: &[u8]) {
        let mut frame = Vec::new();
        varint::put(&mut frame, kind);
        varint::put(&mut frame, payload.len() as u64);
        frame.extend_from_slice(payload);
        lock(&self.control).push(&frame);
        let watcher = self.compression().watcher();
        self.flush_control(&mut Context::from_waker(watcher.as_ref().unwrap_or(Waker::noop())));
    }

    fn flush_control(&self, context: &mut Context<'_>) {
        let mut control = lock(&self.control);
        let mut flushed = control.flush(&self.connection, context);
        if self.role() == Role::Client {
            flushed = flushed.and_then(|()| control.check_wanted(context));
        }
        flushed.unwrap_or_else(|violation| self.close(violation));
    }

    /// Returns true once the server has said that it goes away: nothing more can be asked of it.
    pub(crate) fn is_going_away(&self) -> bool {
        self.departure().is_some_and(|departure| lock(departure).is_announced())
    }

    /// Returns true if the server goes away and does not process `stream`, a request; otherwise `waker` is woken once it says so.
    pub(crate) fn is_refused(&self, stream: u64, waker: &Waker) -> bool {
        self.departure().is_some_and(|departure| lock(departure).is_refused(stream, waker))
    }

    /// The response on `stream` has begun: nobody waits to hear that it is refused.
    pub(crate) fn forget_refusal(&self, stream: u64) {
        if let Some(departure) = self.departure() {
            lock(departure).forget(stream);
        }
    }

    /// Somebody has one more half of a request's stream.
    pub(crate) fn begin_half(&self) {
        if let Some(departure) = self.departure() {
            lock(departure).begin();
        }
    }

    /// Somebody has one less: a half of `stream`.
    pub(crate) fn end_half(&self, stream: u64) {
        let Some(departure) = self.departure() else { return };
        let mut departure = lock(departure);
        departure.forget(stream);
        departure.end();
        let is_over = departure.is_over();
        drop(departure);
        if is_over && let Some(watcher) = self.compression().watcher() {
            watcher.wake();
        }
    }

    /// Writes a field section of `stream`.
    pub(crate) fn compress<'a>(&self, stream: u64, lines: impl Iterator<Item = Line<'a>>, to: &mut BytesMut) {
        let written = self.compression().section(stream, lines, to, &self.connection);
        written.unwrap_or_else(|violation| self.close(violation));
    }

    /// Reads the field section `block` of `stream`; ready once all insertions that it needs are there.
    pub(crate) fn poll_decompress(
        &self,
        stream: u64,
        block: &Bytes,
        context: &mut Context<'_>,
    ) -> Poll<Result<Vec<Field>, SectionError>> {
        if qpack::is_static(block) {
            return Poll::Ready(qpack::read(block.clone(), self.limit));
        }
        let mut compression = self.compression();
        let fields = compression.poll_section(stream, block.clone(), self.limit, context);
        let flushed = compression.flush(&self.connection);
        flushed.unwrap_or_else(|violation| self.close(violation));
        fields
    }

    /// No more sections of `stream` are read.
    pub(crate) fn cancel_sections(&self, stream: u64) {
        let cancelled = self.compression().cancel(stream, &self.connection);
        cancelled.unwrap_or_else(|violation| self.close(violation));
    }

    /// Ends the connection.
    pub(crate) fn close(&self, Violation(code, reason): Violation) {
        self.connection.close(code.value(), reason.as_bytes());
    }
}

/// Locks `mutex`; whoever panicked left its value between two steps, and the connection ends.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads what the peer sends on its unidirectional streams until the connection ends, and ends it if it has to.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let (mut streams, mut seen) = (PeerStreams::default(), Seen::of(Peer::of(shared.role())));
    if shared.web_transport().is_some() {
        seen = seen.with_sessions();
    }
    let ended = poll_fn(|context| poll_streams(&shared, &mut streams, &mut seen, context));
    let violation = match shared.web_transport() {
        None => ended.await,
        // Apart, so that connections without sessions have no room for it.
        Some(web_transport) => {
            Box::pin(async {
                tokio::select! {
                    violation = ended => violation,
                    () = web_transport.carry_datagrams() => None,
                }
            })
            .await
        }
    };
    if let Some(violation) = violation {
        shared.close(violation);
    }
}

/// The streams that a peer opened and that are not sorted yet, or that this end reads itself.
#[derive(Default)]
struct PeerStreams {
    unidirectional: Vec<(RecvStream, Uni)>,
    /// Those of a server, which are for WebTransport sessions.
    // No server has any.
    bidirectional: Option<Box<Unsorted>>,
}

/// Ready with what ends the connection, or with nothing once it has ended.
fn poll_streams(
    shared: &Shared,
    PeerStreams { unidirectional: streams, bidirectional }: &mut PeerStreams,
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
        match poll_stream(shared, stream, uni, seen, context) {
            Poll::Ready(Ok(None)) => drop(streams.swap_remove(index)),
            Poll::Ready(Ok(Some(Heading { session, header, begun }))) => {
                // Those of a session are accepted in the order in which they came.
                let (stream, _) = streams.remove(index);
                shared.arrive(session, Arrival::Uni(stream, begun), header);
            }
            Poll::Ready(Err(violation)) => return Poll::Ready(Some(violation)),
            Poll::Pending => index += 1,
        }
    }
    streams.shrink_to_fit();
    shared.note(seen);
    shared.flush_control(context);
    let mut compression = shared.compression();
    compression.watched_by(context.waker());
    if let Err(violation) = compression.flush(&shared.connection) {
        return Poll::Ready(Some(violation));
    }
    if shared.role() == Role::Client
        && let Err(violation) = compression.check_wanted(context)
    {
        return Poll::Ready(Some(violation));
    }
    drop(compression);
    if shared.departure().is_some_and(|departure| lock(departure).is_over()) {
        // RFC 9114 §5.2: nothing more can come of this connection.
        shared.connection.close(Code::H3_NO_ERROR.value(), b"");
        return Poll::Ready(None);
    }
    //= https://www.rfc-editor.org/rfc/rfc9114#section-6.1
    //# Clients MUST treat receipt of a server-initiated bidirectional stream as a connection error of type
    //# H3_STREAM_CREATION_ERROR unless such an extension has been negotiated.
    if shared.role() == Role::Client && has_request(shared, bidirectional, context) {
        // RFC 9114 §6.1.
        let reason = "a server that opens a stream for requests";
        return Poll::Ready(Some(Violation(Code::H3_STREAM_CREATION_ERROR, reason)));
    }
    Poll::Pending
}

/// Returns true if a server opened a stream as if for a request. Those of WebTransport sessions are handed to them.
fn has_request(shared: &Shared, unsorted: &mut Option<Box<Unsorted>>, context: &mut Context<'_>) -> bool {
    if shared.web_transport().is_none() {
        return matches!(shared.connection.poll_accept_bi(context), Poll::Ready(Ok(_)));
    }
    matches!(unsorted.get_or_insert_default().poll_request(shared, context), Poll::Ready(Ok(_)))
}

/// Ready when the stream is of no more interest here: with the session that it belongs to, if it does.
fn poll_stream(
    shared: &Shared,
    stream: &mut RecvStream,
    uni: &mut Uni,
    seen: &mut Seen,
    context: &mut Context<'_>,
) -> Poll<Result<Option<Heading>, Violation>> {
    // Data of sessions is left to them. Where there are none, a stream is read in as few parts as it came.
    let most = |uni: &Uni| if shared.web_transport().is_some() { uni.most() } else { usize::MAX };
    loop {
        match stream.poll_read_chunk(context, most(uni)) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(Some(chunk))) => uni.take(&chunk, seen, &mut shared.compression().tables)?,
            Poll::Ready(Err(ReadError::ConnectionLost(_))) => return Poll::Ready(Ok(None)),
            //= https://www.rfc-editor.org/rfc/rfc9204#section-4.2
            //# Closure of either unidirectional stream type MUST be treated as a connection error of
            //# type H3_CLOSED_CRITICAL_STREAM.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
            //# If either control stream is closed at any point, this MUST be treated as a connection error of type
            //# H3_CLOSED_CRITICAL_STREAM.
            Poll::Ready(Ok(None) | Err(_)) if uni.is_critical() => {
                let reason = "a stream ended that has to last";
                return Poll::Ready(Err(Violation(Code::H3_CLOSED_CRITICAL_STREAM, reason)));
            }
            //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2
            //# A receiver MUST tolerate unidirectional streams being closed or reset prior to the reception of the
            //# unidirectional stream header.
            // RFC 9114 §6.2: a stream may be reset before its type is known.
            Poll::Ready(Ok(None) | Err(_)) => return Poll::Ready(Ok(None)),
        }
        match uni.kind() {
            //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.3
            //# Endpoints MUST NOT consider these streams to have any meaning upon receipt.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2
            //# Recipients of unknown stream types MUST either abort reading of the stream or discard incoming data
            //# without further processing.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2
            //# The recipient MUST NOT consider unknown stream types to be a connection error of any kind.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-9
            //# Implementations MUST discard data or abort reading on unidirectional streams that have unknown or
            //# unsupported types.
            // RFC 9114 §6.2: nobody here reads what is not known.
            Some(Kind::Unknown) => {
                stream.stop(Code::H3_STREAM_CREATION_ERROR.value());
                return Poll::Ready(Ok(None));
            }
            Some(Kind::Session(_)) => {
                if let Some(of) = uni.session() {
                    return Poll::Ready(Ok(Some(of)));
                }
            }
            Some(
                Kind::Control(SettingsProgress::Awaited | SettingsProgress::Seen)
                | Kind::Encoder
                | Kind::Decoder,
            )
            | None => {}
        }
    }
}
