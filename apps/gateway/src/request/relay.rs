//! A request to an origin, and its response back.

use super::{ActiveRequest, Bounds, Gone, Progress, Trouble, Unsent, Upload};
use crate::compression::{Compression, Encoder};
use crate::configuration::Underscores;
use crate::connection::Peer;
use crate::fields::{self, Circumstances, FieldError};
use crate::origin::{Anywhere, Failure, Head, Origins, UnderWay};
use crate::websocket;
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Method, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use hvq_h3::Code;
use hvq_h3::priority::PRIORITY;
use hvq_program::quota::Permit;
use hyper::body::Incoming;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

/// Bytes of a usual response.
const USUAL: usize = 16 << 10;

/// The upstream that a request goes to.
#[derive(Clone, Debug)]
pub(crate) enum Upstream {
    /// The origins of a host in the configuration.
    Origin(Arc<Origins>),
    /// The host that it names, whichever it is.
    Anywhere(Arc<Anywhere>),
}

impl Upstream {
    fn underscores(&self) -> Underscores {
        match self {
            Self::Origin(origins) => origins.underscores(),
            Self::Anywhere(anywhere) => anywhere.underscores(),
        }
    }

    /// The compression of its responses.
    fn compression(&self) -> Option<Arc<Compression>> {
        match self {
            Self::Origin(origins) => Some(origins.compression()),
            Self::Anywhere(_) => None,
        }
    }

    /// The number of times that a request may be tried.
    fn attempts(&self) -> usize {
        match self {
            Self::Origin(origins) => origins.attempts(),
            Self::Anywhere(_) => 2,
        }
    }

    /// Chooses the origin that gets the request, other than those that were tried, if there are others.
    fn choose(&self, tried: &[usize]) -> Option<UnderWay> {
        match self {
            Self::Origin(origins) => Some(origins.choose(tried)),
            Self::Anywhere(_) => None,
        }
    }

    /// Returns true if there are origins that were not tried, and get requests.
    fn has_others(&self, tried: &[usize]) -> bool {
        matches!(self, Self::Origin(origins) if origins.has_others(tried))
    }

    async fn send(
        &self,
        under_way: Option<&UnderWay>,
        head: Head,
        body: Upload,
    ) -> Result<Response<Incoming>, Failure> {
        match (self, under_way) {
            (Self::Origin(origins), Some(under_way)) => origins.send(under_way, head, body).await,
            (Self::Origin(origins), None) => origins.send(&origins.choose(&[]), head, body).await,
            (Self::Anywhere(anywhere), _) => anywhere.send(head, body).await,
        }
    }

    /// Takes note that the origin failed, by no fault of the client.
    fn failed(&self, under_way: Option<&UnderWay>) {
        if let (Self::Origin(origins), Some(under_way)) = (self, under_way) {
            origins.failed(under_way);
        }
    }
}

/// The reason for which there is no response to hand on.
enum NoResponse {
    /// The origin gave none.
    Origin(Failure),
    /// The client's body cannot go on.
    Client(Trouble),
    /// The client wants none any more.
    Cancelled,
}

/// A turn of a request whose client does not permit its response to be sent, until this is dropped.
struct Turn<'a> {
    _own: SemaphorePermit<'a>,
    _of_all: Permit,
}

/// The reason for which there is no turn.
enum NoTurn {
    /// The client took nothing for too long.
    Client(Unsent),
    /// Every place is taken, and no client has more of them.
    Crowded,
}

/// Hands the request on, and the response back. `early` says that it came before the handshake was complete.
pub(super) async fn relay(
    mut active: Box<ActiveRequest>,
    upstream: Upstream,
    declared: Option<u64>,
    early: bool,
) {
    let peer = active.peer.clone();
    let _turn = match turn(&mut active, &peer).await {
        Ok(turn) => turn,
        Err(NoTurn::Client(unsent)) => return active.note(Err(unsent)),
        Err(NoTurn::Crowded) => return active.crowded("too many responses wait for their clients").await,
    };
    let compression = upstream.compression();
    if let Some((response, _under_way)) = answer(&mut active, upstream, declared, early).await {
        back(&mut active, response, compression.as_deref()).await;
    }
}

/// Asks an origin for a connection of another protocol, and waits for the head of its response; `None` if there is none, of which the client
/// was told.
pub(crate) async fn answered(
    active: &mut ActiveRequest,
    upstream: Upstream,
) -> Option<(Response<Incoming>, Option<UnderWay>)> {
    answer(active, upstream, None, false).await
}

/// Asks an origin, and waits for the head of its response; `None` if there is none, of which the client was told.
async fn answer(
    active: &mut ActiveRequest,
    upstream: Upstream,
    declared: Option<u64>,
    early: bool,
) -> Option<(Response<Incoming>, Option<UnderWay>)> {
    let head = match head(active, &upstream, early) {
        Ok(head) => head,
        Err(fault) => {
            active.fail(fault).await;
            return None;
        }
    };
    let progress = Arc::new(Progress::default());
    let answered = ask(active, upstream, (head, early), (declared, progress.clone())).await;
    active.entry.uploaded(progress.bytes());
    match answered {
        Ok(answered) => {
            active.entry.answered();
            return Some(answered);
        }
        Err(NoResponse::Origin(failure)) => {
            tracing::info!(%failure, "no answer from the origin");
            active.peer.gateway.metrics.origin_failed(failure.kind());
            let (status, text) = failure.answer();
            active.refuse(status, text, None).await;
        }
        Err(NoResponse::Client(trouble)) => troubled(active, trouble).await,
        Err(NoResponse::Cancelled) => active.reply.abort(Code::H3_REQUEST_CANCELLED),
    }
    None
}

/// Waits for a turn among those of the connection of `peer`, and takes a place among those of all, if the client does not permit a usual
/// response to be sent: what an origin says on would only wait here.
async fn turn<'a>(active: &mut ActiveRequest, peer: &'a Peer) -> Result<Option<Turn<'a>>, NoTurn> {
    if active.reply.has_room(USUAL).await {
        return Ok(None);
    }
    let own = timeout(active.virtual_hosts.timeouts.idle, peer.turns.acquire()).await;
    let own = own.map_err(|_| NoTurn::Client(Unsent::Stalled))?.expect("turns are never closed");
    let (name, waiting) = (active.holder(), &peer.gateway.waiting);
    let place = waiting.take(name.as_deref(), peer.address(), &active.notice).ok_or(NoTurn::Crowded)?;
    Ok(Some(Turn { _own: own, _of_all: place }))
}

fn head(active: &ActiveRequest, upstream: &Upstream, early: bool) -> Result<Head, FieldError> {
    let uri = active.request.uri();
    let malformed = FieldError::Malformed("no authority or path");
    let authority = uri.authority().ok_or(malformed)?.clone();
    let provenance = active.peer.provenance(&authority);
    let version = active.request.version();
    let circumstances = Circumstances { provenance, underscores: upstream.underscores(), version, early };
    let mut fields = fields::inbound(active.request.headers(), circumstances)?;
    let path = uri.path_and_query().ok_or(malformed)?.clone();
    let (mut method, switches) = (active.request.method().clone(), websocket::is_asked(&active.request));
    if switches {
        websocket::upgrade(&mut fields);
        method = Method::GET;
    }
    Ok(Head { method, path, fields, authority, switches })
}

/// Asks an origin, and others if it cannot be connected to or closes the connection before it answers, and asking again is safe: the method
/// is idempotent (RFC 9110 §9.2.2), and there is no body. Nothing of an answer has reached the client by then. One alone is asked a
/// second time if it closed the connection: it is seldom the request that was wrong then, but a connection that the origin had just given
/// up.
async fn ask(
    active: &mut ActiveRequest,
    upstream: Upstream,
    (mut head, early): (Head, bool),
    (declared, progress): (Option<u64>, Arc<Progress>),
) -> Result<(Response<Incoming>, Option<UnderWay>), NoResponse> {
    if active.expects() {
        let mut go_on = Response::new(());
        *go_on.status_mut() = StatusCode::CONTINUE;
        active.reply.head(go_on).await.map_err(|_| NoResponse::Cancelled)?;
    }
    let bounds = Bounds {
        declared,
        limit: active.virtual_hosts.limits.body,
        idle: active.virtual_hosts.timeouts.idle,
        underscores: upstream.underscores(),
    };
    // What comes behind a request for another protocol is not its body.
    let body = match head.switches {
        true => Upload::empty(),
        false => body(active, bounds, progress.clone()).await.map_err(NoResponse::Client)?,
    };
    let is_empty = body.is_empty();
    if is_empty {
        head.say_that_nothing_follows();
    }
    let again = is_empty && head.method.is_idempotent();
    let attempts = if again { upstream.attempts() } else { 1 };
    let (mut next, mut tried) = ((head, body), Vec::new());
    loop {
        let under_way = upstream.choose(&tried);
        tried.push(under_way.as_ref().map_or(0, UnderWay::number));
        let failure = match once(active, (&upstream, under_way.as_ref()), next, &progress).await {
            Ok(response) => return Ok((response, under_way)),
            Err(NoResponse::Origin(failure)) => failure,
            Err(other) => return Err(other),
        };
        if !matches!(failure, Failure::NoUpgrade) {
            upstream.failed(under_way.as_ref());
        }
        let elsewhere = match failure {
            Failure::Closed => true,
            Failure::Unreachable(_) | Failure::ConnectTimeout => upstream.has_others(&tried),
            _ => false,
        };
        let head = (elsewhere && tried.len() < attempts).then(|| self::head(active, &upstream, early).ok());
        let Some(mut head) = head.flatten() else { return Err(NoResponse::Origin(failure)) };
        tracing::debug!(%failure, "the request is tried again");
        active.peer.gateway.metrics.retried();
        head.say_that_nothing_follows();
        next = (head, Upload::empty());
    }
}

async fn body(
    active: &mut ActiveRequest,
    bounds: Bounds,
    progress: Arc<Progress>,
) -> Result<Upload, Trouble> {
    let Some(receive) = active.receive.take() else { return Ok(Upload::empty()) };
    Upload::begin(receive, bounds, progress).await
}

async fn once(
    active: &ActiveRequest,
    (upstream, under_way): (&Upstream, Option<&UnderWay>),
    (head, body): (Head, Upload),
    progress: &Progress,
) -> Result<Response<Incoming>, NoResponse> {
    let patience = active.virtual_hosts.timeouts.first_byte;
    let result = tokio::select! {
        result = upstream.send(under_way, head, body) => result,
        () = progress.still(patience) => Err(Failure::Late),
        () = active.gone.wait() => return Err(NoResponse::Cancelled),
    };
    result.map_err(|failure| match progress.trouble() {
        Some(trouble) => NoResponse::Client(trouble),
        None => NoResponse::Origin(failure),
    })
}

/// Answers a client whose body cannot go on.
async fn troubled(active: &mut ActiveRequest, trouble: Trouble) {
    match trouble {
        Trouble::Aborted => active.reply.abort(Code::H3_REQUEST_CANCELLED),
        Trouble::Mismatch => {
            active.fail(FieldError::Malformed("the body has another length than it said")).await
        }
        Trouble::TooLarge => {
            active.refuse(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than the limit", None).await;
        }
        Trouble::TimedOut => {
            active.refuse(StatusCode::REQUEST_TIMEOUT, "the body paused for too long", None).await;
        }
    }
}

/// Hands the response on as the origin sends it and the client takes it, compressed if `compression` has it so.
pub(crate) async fn back(
    active: &mut ActiveRequest,
    response: Response<Incoming>,
    compression: Option<&Compression>,
) {
    let (parts, mut body) = response.into_parts();
    let mut head = match fields::outbound(parts) {
        Ok(head) => head,
        Err(fault) => return active.fail(fault).await,
    };
    // RFC 9218 §8: the origin may know better than the client how urgent its response is.
    if head.headers().contains_key(PRIORITY)
        && let Gone::Http3(priorities, id) = &active.gone
        && let Ok(asked) = priorities.get(*id)
    {
        let priority = hvq_h3::priority::merge(asked, head.headers());
        let _advice = priorities.set(*id, priority);
    }
    let encoder = compression.and_then(|compression| compression.begin(&active.request, &mut head));
    let is_head = active.request.method() == Method::HEAD;
    let mut first = if is_head { None } else { at_hand(&mut body).await };
    // A body of a few kilobytes mostly came with its head: they leave together then.
    let whole =
        first.take_if(|first| body.is_end_stream() && matches!(first, Some(Ok(frame)) if frame.is_data()));
    let (is_whole, mut body) = (whole.is_some(), Outbound { body, encoder });
    let sent = match whole {
        Some(Some(Ok(frame))) => match body.whole(frame.into_data().unwrap_or_default(), &mut head).await {
            Ok(data) => active.reply.whole(head, data).await,
            Err(unsent) => Err(unsent),
        },
        _ => active.reply.head(head).await,
    };
    if sent.as_ref().is_err_and(Unsent::is_too_large) {
        let text = "the origin's header section is larger than the client takes";
        return active.refuse(StatusCode::BAD_GATEWAY, text, None).await;
    }
    if sent.is_err() || is_whole {
        return active.note(sent);
    }
    if is_head {
        let sent = active.reply.finish().await;
        return active.note(sent);
    }
    rest(active, body, first).await;
}

/// A body on its way to the client.
struct Outbound {
    body: Incoming,
    /// Compresses it, if the origin did not and the client asks for it.
    encoder: Option<Encoder>,
}

impl Outbound {
    /// The body that came whole, whose length is known then.
    async fn whole(&mut self, data: Bytes, head: &mut Response<()>) -> Result<Bytes, Unsent> {
        let Some(mut encoder) = self.encoder.take() else { return Ok(data) };
        let begun = encoder.push(&data).await?;
        let all: Bytes = [begun, encoder.finish().await?].concat().into();
        head.headers_mut().insert(CONTENT_LENGTH, all.len().into());
        Ok(all)
    }
}

/// A frame of a body, or its end.
type Next = Option<Result<http_body::Frame<Bytes>, hyper::Error>>;

/// The next frame of `body`, if it came already.
async fn at_hand(body: &mut Incoming) -> Option<Next> {
    poll_fn(|context| match Pin::new(&mut *body).poll_frame(context) {
        Poll::Ready(next) => Poll::Ready(Some(next)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Hands `body` on behind its head, of which `first` came already.
async fn rest(active: &mut ActiveRequest, mut outbound: Outbound, mut first: Option<Next>) {
    loop {
        let body = &mut outbound.body;
        // What the client does not take stays with the origin; the mere end needs no room.
        if first.is_none()
            && !body.is_end_stream()
            && let Err(unsent) = active.reply.room().await
        {
            return active.note(Err(unsent));
        }
        let frame = match first.take() {
            Some(first) => Ok(first),
            None => tokio::select! {
                frame = timeout(active.virtual_hosts.timeouts.idle, body.frame()) => frame,
                () = active.gone.wait() => {
                    return active.reply.abort(Code::H3_REQUEST_CANCELLED);
                }
            },
        };
        let sent = match frame {
            Ok(Some(Ok(frame))) => hand_on(active, &mut outbound, frame).await,
            Ok(None) => {
                let sent = end(active, &mut outbound).await;
                return active.note(sent);
            }
            // The response is cut short, and must look so (RFC 9114 §4.1).
            Ok(Some(Err(error))) => {
                tracing::info!(%error, "the origin's response broke off");
                active.peer.gateway.metrics.origin_failed("broke_off");
                return active.reply.abort(Code::H3_INTERNAL_ERROR);
            }
            Err(_) => {
                active.peer.gateway.metrics.origin_failed("paused");
                return active.reply.abort(Code::H3_INTERNAL_ERROR);
            }
        };
        if sent.is_err() {
            return active.note(sent);
        }
    }
}

async fn hand_on(
    active: &mut ActiveRequest,
    outbound: &mut Outbound,
    frame: http_body::Frame<Bytes>,
) -> Result<(), Unsent> {
    match frame.into_data() {
        Ok(data) => match &mut outbound.encoder {
            None => active.reply.data(data).await,
            Some(encoder) => active.reply.data(encoder.push(&data).await?).await,
        },
        Err(frame) => match frame.into_trailers() {
            Ok(trailers) => {
                flush(active, outbound).await?;
                active.reply.trailers(trailers).await
            }
            Err(_) => Ok(()),
        },
    }
}

/// Sends what the encoder still has, if there is one.
async fn flush(active: &mut ActiveRequest, outbound: &mut Outbound) -> Result<(), Unsent> {
    match outbound.encoder.take() {
        None => Ok(()),
        Some(encoder) => active.reply.data(encoder.finish().await?).await,
    }
}

async fn end(active: &mut ActiveRequest, outbound: &mut Outbound) -> Result<(), Unsent> {
    flush(active, outbound).await?;
    active.reply.finish().await
}
