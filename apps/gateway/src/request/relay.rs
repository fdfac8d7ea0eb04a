//! A request to an origin, and its response back.

use super::{ActiveRequest, Bounds, Gone, Progress, Trouble, Unsent, Upload};
use crate::configuration::Underscores;
use crate::connection::Peer;
use crate::fields::{self, Circumstances, FieldError};
use crate::origin::{Anywhere, Failure, Head, Origin};
use crate::quota::Permit;
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use hvq_h3::Code;
use hvq_h3::priority::PRIORITY;
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
pub(super) enum Upstream {
    /// An origin of the configuration.
    Origin(Arc<Origin>),
    /// The host that it names, whichever it is.
    Anywhere(Arc<Anywhere>),
}

impl Upstream {
    fn underscores(&self) -> Underscores {
        match self {
            Self::Origin(origin) => origin.underscores(),
            Self::Anywhere(anywhere) => anywhere.underscores(),
        }
    }

    async fn send(&self, head: Head, body: Upload) -> Result<Response<Incoming>, Failure> {
        match self {
            Self::Origin(origin) => origin.send(head, body).await,
            Self::Anywhere(anywhere) => anywhere.send(head, body).await,
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
    let head = match head(&active, &upstream, early) {
        Ok(head) => head,
        Err(fault) => return active.fail(fault).await,
    };
    let progress = Arc::new(Progress::default());
    let answered = ask(&mut active, upstream, (head, early), (declared, progress.clone())).await;
    active.entry.uploaded(progress.bytes());
    match answered {
        Ok(response) => {
            active.entry.answered();
            back(&mut active, response).await;
        }
        Err(NoResponse::Origin(failure)) => {
            tracing::info!(%failure, "no answer from the origin");
            active.peer.gateway.metrics.origin_failed(failure.kind());
            let (status, text) = failure.answer();
            active.refuse(status, text, None).await;
        }
        Err(NoResponse::Client(trouble)) => troubled(&mut active, trouble).await,
        Err(NoResponse::Cancelled) => active.reply.abort(Code::H3_REQUEST_CANCELLED),
    }
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
    let fields = fields::inbound(active.request.headers(), circumstances)?;
    let path = uri.path_and_query().ok_or(malformed)?.clone();
    Ok(Head { method: active.request.method().clone(), path, fields, authority })
}

/// Asks the origin, a second time if that is safe and the connection was closed before it answered: it is seldom the
/// request that was wrong then, but a connection that the origin had just given up.
async fn ask(
    active: &mut ActiveRequest,
    upstream: Upstream,
    (mut head, early): (Head, bool),
    (declared, progress): (Option<u64>, Arc<Progress>),
) -> Result<Response<Incoming>, NoResponse> {
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
    let body = body(active, bounds, progress.clone()).await.map_err(NoResponse::Client)?;
    let is_empty = body.is_empty();
    if is_empty {
        head.say_that_nothing_follows();
    }
    let again = is_empty && head.method.is_idempotent();
    match once(active, &upstream, (head, body), &progress).await {
        Err(NoResponse::Origin(Failure::Closed)) if again => {
            let Ok(mut head) = self::head(active, &upstream, early) else {
                return Err(NoResponse::Origin(Failure::Closed));
            };
            head.say_that_nothing_follows();
            once(active, &upstream, (head, Upload::empty()), &progress).await
        }
        answered => answered,
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
    upstream: &Upstream,
    (head, body): (Head, Upload),
    progress: &Progress,
) -> Result<Response<Incoming>, NoResponse> {
    let patience = active.virtual_hosts.timeouts.first_byte;
    let result = tokio::select! {
        result = upstream.send(head, body) => result,
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

/// Hands the response on as the origin sends it and the client takes it.
async fn back(active: &mut ActiveRequest, response: Response<Incoming>) {
    let (parts, mut body) = response.into_parts();
    let head = match fields::outbound(parts) {
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
    let is_head = active.request.method() == Method::HEAD;
    let mut first = if is_head { None } else { at_hand(&mut body).await };
    // A body of a few kilobytes mostly came with its head: they leave together then.
    let whole =
        first.take_if(|first| body.is_end_stream() && matches!(first, Some(Ok(frame)) if frame.is_data()));
    let is_whole = whole.is_some();
    let sent = match whole {
        Some(Some(Ok(frame))) => active.reply.whole(head, frame.into_data().unwrap_or_default()).await,
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
async fn rest(active: &mut ActiveRequest, mut body: Incoming, mut first: Option<Next>) {
    loop {
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
            Ok(Some(Ok(frame))) => hand_on(active, frame).await,
            Ok(None) => {
                let sent = active.reply.finish().await;
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

async fn hand_on(active: &mut ActiveRequest, frame: http_body::Frame<Bytes>) -> Result<(), Unsent> {
    match frame.into_data() {
        Ok(data) => active.reply.data(data).await,
        Err(frame) => match frame.into_trailers() {
            Ok(trailers) => active.reply.trailers(trailers).await,
            Err(_) => Ok(()),
        },
    }
}
