//! Going through the gateway: who may, where to, and the tunnels of CONNECT (RFC 9114 §4.4).

use crate::connect_ip;
use crate::connection::Peer;
use crate::destination_policy::host_and_port;
use crate::request::{ActiveRequest, Receive, Reply};
use crate::virtual_host::{ForwardProxy, VirtualHosts};
use bytes::{Bytes, BytesMut};
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};
use http::uri::Authority;
use http::{HeaderMap, Response, StatusCode};
use hvq_h3::Code;
use hvq_program::quota::Permit;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

/// Bytes that are read at a time.
const CHUNK: usize = 64 << 10;

/// The reason for which a client may not go through the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Denied {
    /// Nobody may go through the gateway.
    Closed,
    /// It showed no token that is known, and no certificate that counts.
    Unknown,
    /// The destination is not permitted.
    Destination,
    /// It names no host and port.
    Nonsense,
}

impl Denied {
    /// Returns the answer for the client.
    pub(crate) fn answer(self) -> (StatusCode, &'static str) {
        match self {
            Self::Closed => (StatusCode::FORBIDDEN, "nobody may go through this gateway"),
            Self::Unknown => (
                StatusCode::PROXY_AUTHENTICATION_REQUIRED,
                "a token or a certificate is needed to go through this gateway",
            ),
            Self::Destination => (StatusCode::FORBIDDEN, "this destination is not allowed"),
            Self::Nonsense => (StatusCode::BAD_REQUEST, "a host and a port are needed"),
        }
    }
}

/// Returns the name of the token or of the certificate of `peer`, which sent `fields`, if it may go through.
pub(crate) fn name_of(proxy: &ForwardProxy, peer: &Peer, fields: &HeaderMap) -> Option<String> {
    // A tunnel for packets ends here, so that its clients show the token to an origin (RFC 9484 §3).
    let token = fields.get(PROXY_AUTHORIZATION).or_else(|| fields.get(AUTHORIZATION));
    proxy.clients.name(token, || peer.certificates())
}

/// Checks that `peer`, which sent `fields`, may go to `authority`; returns its name, and the host and port if so.
pub(crate) fn permit(
    virtual_hosts: &VirtualHosts,
    peer: &Peer,
    authority: Option<&Authority>,
    port: Option<u16>,
    fields: &HeaderMap,
) -> (Option<String>, Result<(String, u16), Denied>) {
    let Some(proxy) = &virtual_hosts.proxy else { return (None, Err(Denied::Closed)) };
    let token = fields.get(PROXY_AUTHORIZATION);
    let Some(name) = proxy.clients.name(token, || peer.certificates()) else {
        return (None, Err(Denied::Unknown));
    };
    let permitted = match authority.and_then(|authority| host_and_port(authority, port)) {
        None => Err(Denied::Nonsense),
        Some((host, port)) if proxy.allow.iter().any(|allowed| allowed.matches(&host, port)) => {
            Ok((host, port))
        }
        Some(_) => Err(Denied::Destination),
    };
    (Some(name), permitted)
}

/// A tunnel that may begin.
pub(crate) struct Admitted<'a> {
    pub(crate) proxy: &'a ForwardProxy,
    /// The host that it leads to.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Its place among the tunnels that may be open.
    _place: Permit,
}

/// Lets a tunnel to `authority` begin, or tells the client why it may not.
pub(crate) async fn admit<'a>(
    active: &mut ActiveRequest,
    virtual_hosts: &'a VirtualHosts,
    authority: Option<&Authority>,
) -> Option<Admitted<'a>> {
    // RFC 9110 §9.3.6: there is no default port.
    let (name, permitted) = permit(virtual_hosts, &active.peer, authority, None, active.request.headers());
    active.entry.user(name.clone());
    let (host, port) = match permitted {
        Ok(target) => target,
        Err(denied) => {
            active.deny(denied).await;
            return None;
        }
    };
    let proxy = virtual_hosts.proxy.as_ref()?;
    let place = place(active, name.as_deref()).await?;
    Some(Admitted { proxy, host, port, _place: place })
}

/// A place for a tunnel of the client that is called `name`, or tells it that there is none.
pub(crate) async fn place(active: &mut ActiveRequest, name: Option<&str>) -> Option<Permit> {
    let quota = active.peer.gateway.tunnelling.clone();
    let place = quota.take(name, active.peer.address(), &active.notice);
    if place.is_none() {
        active.crowded("too many tunnels at a time").await;
    }
    place
}

/// Serves a CONNECT request.
pub(crate) async fn serve(mut active: Box<ActiveRequest>) {
    if connect_ip::is_flow(&active) {
        return connect_ip::serve_flow(active).await;
    }
    let (virtual_hosts, authority) =
        (active.virtual_hosts.clone(), active.request.uri().authority().cloned());
    let Some(admitted) = admit(&mut active, &virtual_hosts, authority.as_ref()).await else { return };
    let connecting = admitted.proxy.connector.connect(&admitted.host, admitted.port);
    let patience = virtual_hosts.timeouts.tunnel;
    lead(active, connecting, patience).await;
}

/// Leads a tunnel to the host that `connecting` reaches, until nothing moved for `patience`, or tells the client why not.
pub(crate) async fn lead(
    mut active: Box<ActiveRequest>,
    connecting: impl Future<Output = io::Result<TcpStream>>,
    patience: Duration,
) {
    let connected = tokio::select! {
        connected = connecting => connected,
        () = active.gone.wait() => {
            return active.reply.abort(Code::H3_REQUEST_CANCELLED);
        }
    };
    let stream = match connected {
        Ok(stream) => stream,
        Err(error) => {
            let (status, text) = match error.kind() {
                io::ErrorKind::PermissionDenied => (StatusCode::FORBIDDEN, "this address may not be reached"),
                io::ErrorKind::TimedOut => {
                    (StatusCode::GATEWAY_TIMEOUT, "the host cannot be reached in time")
                }
                _ => (StatusCode::BAD_GATEWAY, "the host cannot be reached"),
            };
            return active.refuse(status, text, None).await;
        }
    };
    let Some(receive) = active.receive.take() else { return };
    if let Err(error) = active.reply.head(Response::new(())).await {
        return active.note(Err(error));
    }
    let gateway = active.peer.gateway.clone();
    let _open = gateway.metrics.tunnel();
    let (mut read, mut write) = stream.into_split();
    if carry(&mut active, receive, (&mut read, &mut write), patience).await.is_err()
        && let Ok(stream) = read.reunite(write)
    {
        // A connection that is given up is reset, which only dropping it without a goodbye does (RFC 9114 §4.4).
        drop(stream.set_zero_linger());
    }
}

/// The time of the latest activity in either direction of a tunnel.
pub(crate) struct Activity {
    start: Instant,
    last: AtomicU64,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0) }
    }

    pub(crate) fn moved(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    pub(crate) async fn still(&self, patience: Duration) {
        loop {
            let until = self.start + Duration::from_millis(self.last.load(Ordering::Relaxed)) + patience;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// The side at which one direction of a tunnel ended before its end.
pub(crate) enum BrokenSide {
    /// The client's stream.
    Client,
    /// The host's connection.
    Host,
}

/// Carries bytes both ways until both ends are done, one breaks off, or nothing moves for too long.
///
/// # Errors
/// One side broke off, or nothing moved: the client's stream was reset.
pub(crate) async fn carry(
    active: &mut ActiveRequest,
    mut receive: Receive,
    (read, write): (&mut (impl AsyncRead + Unpin), &mut (impl AsyncWrite + Unpin)),
    patience: Duration,
) -> Result<(), BrokenSide> {
    let activity = Activity::new();
    let unwanted = active.gone.clone();
    let mut uploaded = 0;
    let ended = {
        let up = upwards(&mut receive, write, &activity, &mut uploaded);
        let down = downwards(read, &mut active.reply, &activity);
        let gone = async {
            unwanted.wait().await;
            Err::<(), _>(BrokenSide::Client)
        };
        let both = async { tokio::try_join!(up, down).map(|_| ()) };
        tokio::select! {
            ended = both => ended,
            ended = gone => ended,
            () = activity.still(patience) => Err(BrokenSide::Host),
        }
    };
    active.entry.uploaded(uploaded);
    if let Err(broken) = &ended {
        // RFC 9114 §4.4: an error of the TCP connection is H3_CONNECT_ERROR on the stream, and the other way round a reset.
        let code = match broken {
            BrokenSide::Client => Code::H3_REQUEST_CANCELLED,
            BrokenSide::Host => Code::H3_CONNECT_ERROR,
        };
        receive.stop(code);
        active.reply.abort(code);
    }
    ended
}

async fn upwards(
    receive: &mut Receive,
    write: &mut (impl AsyncWrite + Unpin),
    activity: &Activity,
    count: &mut u64,
) -> Result<(), BrokenSide> {
    while let Some(mut data) =
        poll_fn(|context| receive.poll_data(context)).await.map_err(|_| BrokenSide::Client)?
    {
        *count += data.len() as u64;
        write.write_all_buf(&mut data).await.map_err(|_| BrokenSide::Host)?;
        write.flush().await.map_err(|_| BrokenSide::Host)?;
        activity.moved();
    }
    write.shutdown().await.map_err(|_| BrokenSide::Host)
}

async fn downwards(
    read: &mut (impl AsyncRead + Unpin),
    reply: &mut Reply,
    activity: &Activity,
) -> Result<(), BrokenSide> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(CHUNK);
        if read.read_buf(&mut buffer).await.map_err(|_| BrokenSide::Host)? == 0 {
            return reply.finish().await.map_err(|_| BrokenSide::Client);
        }
        let data: Bytes = buffer.split().freeze();
        reply.data(data).await.map_err(|_| BrokenSide::Client)?;
        activity.moved();
    }
}
