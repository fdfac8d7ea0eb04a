//! One request and its response: from a stream of HTTP/3, or a message over TCP, to what answers, and back.
//!
//! [`Receive`], [`Reply`] and [`Gone`] are the seam: what is behind them is the same for all transports.

mod channel;
mod gone;
mod progress;
mod receive;
mod relay;
mod reply;
mod upload;

pub(crate) use channel::{Cut, ResponseBody, Waiting, channel};
pub(crate) use gone::Gone;
pub(crate) use progress::{Progress, Trouble};
pub(crate) use receive::Receive;
pub(crate) use relay::{Upstream, answered, back};
pub(crate) use reply::{Reply, Unsent};
pub(crate) use upload::{Bounds, Upload};

use crate::access::Entry;
use crate::connection::{Peer, Quic};
use crate::fields::{self, FieldError};
use crate::virtual_host::{Route, VirtualHosts};
use crate::{connect_ip, tunnel, udp, websocket};
use bytes::Bytes;
use http::header::{EXPECT, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RETRY_AFTER};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use hvq::StreamId;
use hvq_h3::serving::Incoming;
use hvq_h3::{Code, Protocol};
use hvq_program::content::{self, Body};
use hvq_program::quota::Preemption;
use std::sync::Arc;

/// A request that was taken, and all that is needed to answer it.
pub(crate) struct ActiveRequest {
    pub(crate) peer: Arc<Peer>,
    pub(crate) virtual_hosts: Arc<VirtualHosts>,
    pub(crate) request: Request<()>,
    /// Tells when the client wants no response any more.
    pub(crate) gone: Gone,
    /// The receiving half, until somebody reads the body.
    pub(crate) receive: Option<Receive>,
    pub(crate) reply: Reply,
    pub(crate) entry: Entry,
    /// Tells when it gives way to another client's.
    pub(crate) notice: Arc<Preemption>,
}

/// Serves a request of `peer` that comes over HTTP/3.
pub(crate) async fn serve(peer: Arc<Peer>, incoming: Incoming) {
    let virtual_hosts = peer.gateway.virtual_hosts();
    let Some(quic) = peer.quic() else { return };
    let early = quic.connection.is_early_data();
    // H19: headers that come byte by byte.
    let (mut request, send, receive) = match incoming.request(virtual_hosts.timeouts.header).await {
        Ok(resolved) => resolved,
        Err(error) => {
            peer.gateway.metrics.malformed();
            return tracing::debug!(%error, "no request");
        }
    };
    *request.version_mut() = Version::HTTP_3;
    let gone = Gone::Http3(quic.priorities.clone(), send.id());
    let reply = Reply::new(send, request.method(), virtual_hosts.timeouts.idle);
    let exchange = Exchange { request, receive: receive.into(), reply, gone, notice: Arc::default() };
    let mut active = ActiveRequest::new(peer, virtual_hosts, exchange);
    // RFC 8470 §5.1: what may do harm when it is done twice waits until it cannot be a copy.
    let harmless = active.request.method().is_safe();
    if early && !harmless && active.is_handshake_lost().await {
        return active.reply.abort(Code::H3_REQUEST_CANCELLED);
    }
    active.serve(early && harmless).await;
}

/// A request and the ways back to its client, over whichever transport.
pub(crate) struct Exchange {
    pub(crate) request: Request<()>,
    pub(crate) receive: Receive,
    pub(crate) reply: Reply,
    pub(crate) gone: Gone,
    pub(crate) notice: Arc<Preemption>,
}

impl ActiveRequest {
    /// A request of `peer`, which enters log and metrics now. It is boxed, for it is handed on from one future to the next, of which each
    /// would have room for it.
    pub(crate) fn new(peer: Arc<Peer>, virtual_hosts: Arc<VirtualHosts>, exchange: Exchange) -> Box<Self> {
        let Exchange { request, receive, reply, gone, notice } = exchange;
        let entry = peer.gateway.enter(&peer, &request);
        let receive = Some(receive);
        Box::new(Self { peer, virtual_hosts, request, gone, receive, reply, entry, notice })
    }

    /// Serves the request, unless others need its place. `early` says that it came before the handshake was complete.
    pub(crate) async fn serve(mut self: Box<Self>, early: bool) {
        let (name, notice) = (self.holder(), self.notice.clone());
        let quota = self.peer.gateway.requests.clone();
        let Some(_place) = quota.take(name.as_deref(), self.peer.address(), &notice) else {
            return self.crowded("too many requests at a time").await;
        };
        tokio::select! {
            () = self.answer(early) => {}
            () = notice.given() => tracing::debug!("a request gave way to one of another client"),
        }
    }

    /// Waits for the end of the handshake; returns true if the connection ended before.
    async fn is_handshake_lost(&self) -> bool {
        match self.peer.quic() {
            Some(quic) => quic.connection.handshake_complete().await.is_err(),
            None => false,
        }
    }

    /// The connection of QUIC and the stream that the request came by, if it did.
    pub(crate) fn stream<'a>(&self, peer: &'a Peer) -> Option<(&'a Quic, StreamId)> {
        match &self.gone {
            Gone::Http3(_, id) => peer.quic().map(|quic| (quic, *id)),
            Gone::Tcp(_) => None,
        }
    }

    /// Answers the request. Long or rare branches are boxed: a task is as large as the largest of them, and is copied
    /// when it starts.
    async fn answer(mut self: Box<Self>, early: bool) {
        let declared = match fields::check(&self.request) {
            Ok(declared) => declared,
            Err(fault) => return self.fail(fault).await,
        };
        let is_websocket = websocket::is_asked(&self.request);
        if self.request.method() == Method::CONNECT && !is_websocket {
            return self.connect().await;
        }
        let uri = self.request.uri().clone();
        let route =
            uri.authority().map(|authority| self.virtual_hosts.route(authority.host(), uri.scheme_str()));
        let route = route.unwrap_or(Route::Nowhere);
        if matches!(route, Route::Files(_) | Route::Origin(_))
            && uri.authority().is_some_and(|authority| !self.peer.may_ask_for(authority.host()))
        {
            // RFC 9110 §7.4, RFC 9114 §3.3: a client that takes one connection for several hosts asks over another one then.
            let text = "the certificate of this connection is not for this host";
            return self.refuse(StatusCode::MISDIRECTED_REQUEST, text, None).await;
        }
        match route {
            Route::Origin(origins) if is_websocket => {
                self.entry.origin();
                Box::pin(websocket::serve(self, origins, declared)).await;
            }
            Route::Files(_) | Route::Elsewhere(_) if is_websocket => {
                // RFC 9220 §3.
                let text = "there are no WebSockets at this host";
                self.refuse(StatusCode::NOT_IMPLEMENTED, text, None).await;
            }
            Route::Files(files) => {
                let answer = content::answer(&self.request, |path| files.answer(path, &self.request));
                self.own(answer).await;
            }
            Route::Origin(origin) => {
                self.entry.origin();
                Box::pin(relay::relay(self, relay::Upstream::Origin(origin), declared, early)).await;
            }
            Route::Elsewhere(anywhere) => match self.permit(uri.authority(), 80) {
                Ok(()) => {
                    self.entry.origin();
                    Box::pin(relay::relay(self, relay::Upstream::Anywhere(anywhere), declared, early)).await;
                }
                Err(denied) => self.deny(denied).await,
            },
            Route::Nowhere => {
                // RFC 9110 §15.5.20.
                let text = "this host is not served here";
                self.refuse(StatusCode::MISDIRECTED_REQUEST, text, None).await;
            }
        }
    }

    /// Answers a request for a tunnel.
    async fn connect(mut self: Box<Self>) {
        if self.peer.quic().is_none() {
            let text = "tunnels are for clients of HTTP/3";
            return self.refuse(StatusCode::NOT_IMPLEMENTED, text, None).await;
        }
        match self.request.extensions().get::<Protocol>().map(Protocol::as_str) {
            None => Box::pin(tunnel::serve(self)).await,
            Some(protocol) if connect_ip::is_asked(protocol, self.request.uri().path()) => {
                Box::pin(connect_ip::serve(self)).await;
            }
            Some("connect-udp") => Box::pin(udp::serve(self)).await,
            // RFC 9220 §3.
            Some(_) => {
                let text = "only websocket, connect-udp and connect-ip are spoken here";
                self.refuse(StatusCode::NOT_IMPLEMENTED, text, None).await;
            }
        }
    }

    /// Checks that the client may go through the gateway to `authority`.
    pub(crate) fn permit(
        &mut self,
        authority: Option<&http::uri::Authority>,
        port: u16,
    ) -> Result<(), tunnel::Denied> {
        let virtual_hosts = self.virtual_hosts.clone();
        let (name, permitted) =
            tunnel::permit(&virtual_hosts, &self.peer, authority, Some(port), self.request.headers());
        self.entry.user(name);
        permitted.map(|_| ())
    }

    /// Says that the client may not go through the gateway.
    pub(crate) async fn deny(&mut self, denied: tunnel::Denied) {
        self.peer.gateway.metrics.denied();
        let (status, text) = denied.answer();
        let challenge = (PROXY_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        let field = Some(challenge).filter(|_| status == StatusCode::PROXY_AUTHENTICATION_REQUIRED);
        self.refuse(status, text, field).await;
    }

    /// The name of the token or the certificate that a request to go through counts to, `None` for what counts to the network of
    /// its client.
    fn holder(&self) -> Option<String> {
        let proxy = self.virtual_hosts.proxy.as_ref()?;
        let fields = self.request.headers();
        let through = self.request.method() == Method::CONNECT || fields.contains_key(PROXY_AUTHORIZATION);
        if through { tunnel::name_of(proxy, &self.peer, fields) } else { None }
    }

    /// Says that there is no room, and that there may be some soon.
    pub(crate) async fn crowded(&mut self, text: &str) {
        let field = Some((RETRY_AFTER, HeaderValue::from_static("1")));
        self.refuse(StatusCode::SERVICE_UNAVAILABLE, text, field).await;
    }

    /// Answers with what the gateway has itself.
    async fn own(&mut self, mut answer: content::Answer) {
        let head = std::mem::replace(&mut answer.head, Response::new(()));
        let sent = send(&mut self.reply, head, answer.body).await;
        self.note(sent);
    }

    /// Ends a request that must not go on.
    pub(crate) async fn fail(&mut self, fault: FieldError) {
        match fault {
            FieldError::Malformed(text) => {
                tracing::debug!(text, "malformed request");
                self.peer.gateway.metrics.malformed();
                if let Some(receive) = &mut self.receive {
                    receive.stop(Code::H3_MESSAGE_ERROR);
                }
                if self.peer.quic().is_none() {
                    // RFC 9112 §3, RFC 9113 §8.1.1: over TCP a response says so.
                    return self.refuse(StatusCode::BAD_REQUEST, text, None).await;
                }
                self.reply.abort(Code::H3_MESSAGE_ERROR);
            }
            FieldError::Refused(status, text) => self.refuse(status, text, None).await,
        }
    }

    /// Answers with an error.
    pub(crate) async fn refuse(
        &mut self,
        status: StatusCode,
        text: &str,
        field: Option<(http::HeaderName, HeaderValue)>,
    ) {
        let sent = self.reply.refuse(status, text, field).await;
        self.note(sent);
    }

    /// Returns true if the client waits for an interim response before it sends the body (RFC 9110 §10.1.1).
    pub(crate) fn expects(&self) -> bool {
        let expect = self.request.headers().get(EXPECT);
        expect.is_some_and(|expect| expect.as_bytes().eq_ignore_ascii_case(b"100-continue"))
    }

    /// Takes note of the outcome of the response.
    pub(crate) fn note(&mut self, sent: Result<(), Unsent>) {
        if let Err(error) = sent {
            tracing::debug!(?error, "the client did not take the response");
            self.reply.abort(Code::H3_REQUEST_CANCELLED);
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        if self.notice.is_given() {
            self.reply.cut(Code::H3_EXCESSIVE_LOAD);
        }
        self.entry.done(self.reply.status, self.reply.bytes);
    }
}

async fn send(reply: &mut Reply, head: Response<()>, mut body: Body) -> Result<(), Unsent> {
    match body {
        Body::Empty => return reply.whole(head, Bytes::new()).await,
        Body::Text(text) => return reply.whole(head, text).await,
        Body::File(_, ref range) | Body::Pattern(_, ref range) => {
            reply.head(head).await?;
            reply.announce(range.end - range.start).await?;
        }
    }
    loop {
        // What the client does not take is not read; the mere end needs no room.
        let room = if body.is_at_end() { 0 } else { reply.room().await? };
        match body.next_within(room).await {
            Ok(Some(chunk)) => reply.data(chunk).await?,
            Ok(None) => return reply.finish().await,
            Err(error) => {
                // RFC 9114 §4.1: what cannot be completed is reset.
                tracing::warn!(%error, "cannot read what is to be sent");
                reply.abort(Code::H3_INTERNAL_ERROR);
                return Ok(());
            }
        }
    }
}
