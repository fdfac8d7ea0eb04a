//! WebSockets (RFC 6455) to origins. Clients ask by extended CONNECT over HTTP/3 (RFC 9220) and HTTP/2 (RFC 8441), and by an upgrade over
//! HTTP/1.1; origins are asked by an upgrade. The gateway reads no frames: their bytes go on as they come.

use crate::origin::Origins;
use crate::request::{ActiveRequest, Upstream, answered, back};
use crate::tunnel::{self, Activity};
use boring::base64::encode_block;
use boring::sha::sha1;
use bytes::BytesMut;
use http::header::{
    CONNECTION, CONTENT_LENGTH, PROXY_AUTHENTICATE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
use hvq_h3::{Protocol, hop_by_hop};
use hyper::body::{Body, Incoming};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::watch;

/// The protocol's name, in `upgrade` and in `:protocol`.
const NAME: &str = "websocket";
/// The text that is hashed with a key, to show that the answer is one to it (RFC 6455 §1.3).
const PROOF: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// The client's end of a WebSocket over TCP, among the extensions of the request for it.
#[derive(Clone)]
pub(crate) struct ClientEnd {
    upgrade: OnUpgrade,
    /// Ends with the time that its connection has.
    connection: watch::Receiver<()>,
}

impl ClientEnd {
    /// Takes the client's end out of `request`, if that asks for a WebSocket; `connection` lasts as long as the connection may. A request
    /// that has a body, or no key, asks for none: it is one like others, whose `upgrade` is passed over (RFC 9110 §7.8).
    pub(crate) fn of(request: &mut Request<Incoming>, connection: &watch::Sender<()>) -> Option<Self> {
        let is_asked = match request.version() {
            Version::HTTP_2 => request
                .extensions()
                .get::<hyper::ext::Protocol>()
                .is_some_and(|protocol| protocol.as_str().eq_ignore_ascii_case(NAME)),
            Version::HTTP_11 => {
                let fields = request.headers();
                let is_named = fields.get(UPGRADE).is_some_and(is_name);
                request.method() == Method::GET
                    && is_named
                    && fields.contains_key(SEC_WEBSOCKET_KEY)
                    && request.body().is_end_stream()
            }
            _ => false,
        };
        is_asked.then(|| Self { upgrade: hyper::upgrade::on(request), connection: connection.subscribe() })
    }
}

fn is_name(value: &HeaderValue) -> bool {
    value.as_bytes().eq_ignore_ascii_case(NAME.as_bytes())
}

/// Returns true if `request` asks for a WebSocket.
pub(crate) fn is_asked(request: &Request<()>) -> bool {
    let protocol = request.extensions().get::<Protocol>();
    request.extensions().get::<ClientEnd>().is_some()
        || protocol.is_some_and(|protocol| protocol.as_str().eq_ignore_ascii_case(NAME))
}

/// Makes `fields` those of an upgrade at an origin (RFC 6455 §4.1).
pub(crate) fn upgrade(fields: &mut HeaderMap) {
    fields.remove(CONTENT_LENGTH);
    fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    fields.insert(UPGRADE, HeaderValue::from_static(NAME));
    fields.entry(SEC_WEBSOCKET_VERSION).or_insert(HeaderValue::from_static("13"));
}

/// The value of `sec-websocket-accept` in the answer to `key` (RFC 6455 §4.2.2).
fn proof(key: &[u8]) -> String {
    encode_block(&sha1(&[key, PROOF].concat()))
}

/// A new key (RFC 6455 §4.1).
fn new_key() -> Option<HeaderValue> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    HeaderValue::try_from(encode_block(&bytes)).ok()
}

/// Serves a request for a WebSocket at one of `origins`.
pub(crate) async fn serve(mut active: Box<ActiveRequest>, origins: Arc<Origins>, declared: Option<u64>) {
    if declared.is_some_and(|length| length > 0) {
        return active.refuse(StatusCode::BAD_REQUEST, "a request for a WebSocket has no body", None).await;
    }
    let Some(_place) = tunnel::place(&mut active, None).await else { return };
    let is_upgrade = active.request.method() != Method::CONNECT;
    if !is_upgrade {
        // RFC 8441 §5: extended CONNECT has no key; the upgrade at the origin needs one.
        let Some(key) = new_key() else { return };
        active.request.headers_mut().insert(SEC_WEBSOCKET_KEY, key);
    }
    let proof = active.request.headers().get(SEC_WEBSOCKET_KEY).map(|key| proof(key.as_bytes()));
    let Some((response, _under_way)) = answered(&mut active, Upstream::Origin(origins)).await else { return };
    let fields = response.headers();
    let is_proven = fields.get(UPGRADE).is_some_and(is_name)
        && fields.get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes) == proof.as_deref().map(str::as_bytes);
    match response.status() {
        StatusCode::SWITCHING_PROTOCOLS if is_proven => switch(active, response, is_upgrade).await,
        // 2xx would open the WebSocket that there is not.
        status if status.is_success() || status.is_informational() => {
            active.peer.gateway.metrics.origin_failed("no_websocket");
            active.refuse(StatusCode::BAD_GATEWAY, "the origin did not open a WebSocket", None).await;
        }
        _ => back(&mut active, response, None).await,
    }
}

/// Tells the client that the WebSocket is open, and carries what is said on it.
async fn switch(mut active: Box<ActiveRequest>, response: Response<Incoming>, is_upgrade: bool) {
    let mut fields = response.headers().clone();
    hop_by_hop::strip(&mut fields);
    for name in [PROXY_AUTHENTICATE, CONTENT_LENGTH] {
        fields.remove(name);
    }
    let mut head = Response::new(());
    if is_upgrade {
        fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        fields.insert(UPGRADE, HeaderValue::from_static(NAME));
        *head.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    } else {
        fields.remove(SEC_WEBSOCKET_ACCEPT);
    }
    *head.headers_mut() = fields;
    let Ok(origin) = hyper::upgrade::on(response).await else {
        return active.refuse(StatusCode::BAD_GATEWAY, "the origin did not open a WebSocket", None).await;
    };
    if let Err(error) = active.reply.switch(head).await {
        return active.note(Err(error));
    }
    let gateway = active.peer.gateway.clone();
    let _open = gateway.metrics.websocket();
    let patience = active.virtual_hosts.timeouts.tunnel;
    match active.request.extensions_mut().remove::<ClientEnd>() {
        Some(client) => {
            let (up, down) = between(client, origin, patience).await;
            active.entry.uploaded(up);
            active.reply.bytes += down;
        }
        None => {
            let Some(receive) = active.receive.take() else { return };
            let (mut read, mut write) = split(TokioIo::new(origin));
            // Dropping the origin's connection tells it how this ended.
            let _ended = tunnel::carry(&mut active, receive, (&mut read, &mut write), patience).await;
        }
    }
}

/// Carries bytes between a client over TCP and an origin until both ends are done, one breaks off, nothing moves for `patience`, or the
/// time of the client's connection is over. Returns the bytes that went up and down.
async fn between(client: ClientEnd, origin: Upgraded, patience: Duration) -> (u64, u64) {
    let ClientEnd { upgrade, mut connection } = client;
    let (mut up, mut down) = (0, 0);
    let activity = Activity::new();
    let carried = async {
        let Ok(client) = upgrade.await else { return };
        let (mut from_client, mut to_client) = split(TokioIo::new(client));
        let (mut from_origin, mut to_origin) = split(TokioIo::new(origin));
        let upwards = pipe(&mut from_client, &mut to_origin, (&activity, &mut up));
        let downwards = pipe(&mut from_origin, &mut to_client, (&activity, &mut down));
        let _broken = tokio::try_join!(upwards, downwards);
    };
    tokio::select! {
        () = carried => {}
        () = activity.still(patience) => {}
        // Nothing is ever sent: the only news is the end of the sender.
        _over = connection.changed() => {}
    }
    (up, down)
}

/// Carries bytes one way, and their end.
async fn pipe(
    read: &mut (impl AsyncRead + Unpin),
    write: &mut (impl AsyncWrite + Unpin),
    (activity, count): (&Activity, &mut u64),
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK);
        if read.read_buf(&mut buffer).await? == 0 {
            return write.shutdown().await;
        }
        *count += buffer.len() as u64;
        write.write_all_buf(&mut buffer).await?;
        write.flush().await?;
        activity.moved();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_is_that_of_the_rfc() {
        // RFC 6455 §1.3.
        assert_eq!(proof(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_ne!(new_key(), new_key());
    }

    #[test]
    fn an_origin_is_asked_for_an_upgrade() {
        let mut fields = HeaderMap::new();
        fields.insert(CONTENT_LENGTH, 0.into());
        upgrade(&mut fields);
        assert_eq!(fields[CONNECTION], "upgrade");
        assert_eq!(
            (&fields[UPGRADE], &fields[SEC_WEBSOCKET_VERSION]),
            (&NAME.parse().unwrap(), &"13".parse().unwrap())
        );
        assert!(!fields.contains_key(CONTENT_LENGTH));
    }
}
