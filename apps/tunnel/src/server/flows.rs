//! TCP flows of tunnels that ride streams: connections to the hosts that they want.

use super::access::ServerOptions;
use super::{Meter, Metered};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hvq_h3::{Code, Protocol, Receiving, SendError, Sending};
use hvq_program::splice::splice;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The field by which both ends agree that TCP flows ride streams, and which marks the requests of such flows.
pub const TCP: &str = "hvq-tcp";
/// Flows of all tunnels of a server.
const MOST_FLOWS: usize = 1024;
/// The time within which a host has to accept.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns true if a request with these fields is about the TCP flows of a tunnel.
pub fn is_marked(fields: &HeaderMap) -> bool {
    fields.get(TCP).is_some_and(|value| value == "?1")
}

/// The destination of a flow that `request` asks for; `None` if that is no address and port.
pub fn destination(request: &Request<()>) -> Option<SocketAddr> {
    let is_plain = request.method() == Method::CONNECT && request.extensions().get::<Protocol>().is_none();
    let authority = request.uri().authority().filter(|_| is_plain)?;
    authority.as_str().parse().ok()
}

/// The status that tells why a host was not reached: a program hears a reset for all but 504.
fn failure(error: &io::Error) -> StatusCode {
    match error.kind() {
        io::ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
        io::ErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// The flows of a server.
#[derive(Debug)]
pub(crate) struct Flows {
    places: Arc<Semaphore>,
}

impl Default for Flows {
    fn default() -> Self {
        Self::new(MOST_FLOWS)
    }
}

impl Flows {
    /// At most `most` at a time.
    pub(crate) fn new(most: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(most)) }
    }

    /// Connects to `destination`, if a flow may go there, and carries bytes both ways, as far as `meter` lets them pass.
    pub(super) async fn serve(
        &self,
        options: &ServerOptions,
        (destination, meter): (SocketAddr, Meter),
        (mut sending, receiving): (Sending, Receiving),
    ) -> Result<(), SendError> {
        match options.takes_flows_to(destination.ip()) {
            true => self.lead((destination, meter), (sending, receiving)).await,
            false => refuse(&mut sending, StatusCode::FORBIDDEN).await,
        }
    }

    /// Connects to `host` and carries bytes both ways, as far as `meter` lets them pass.
    pub(crate) async fn lead(
        &self,
        (host, meter): (SocketAddr, Meter),
        (mut sending, receiving): (Sending, Receiving),
    ) -> Result<(), SendError> {
        let Ok(_place) = self.places.clone().try_acquire_owned() else {
            return refuse(&mut sending, StatusCode::SERVICE_UNAVAILABLE).await;
        };
        let connecting = timeout(PATIENCE, TcpStream::connect(host));
        let connected = connecting.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let mut host = match connected.and_then(prepared) {
            Ok(inner) => Metered { inner, meter },
            Err(error) => return refuse(&mut sending, failure(&error)).await,
        };
        sending.head(&Response::new(())).await?;
        if splice(&mut host, (sending, receiving), Code::H3_CONNECT_ERROR).await.is_err() {
            // A connection that is given up is reset, which only dropping it without a goodbye does.
            let _abrupt = host.inner.set_zero_linger();
        }
        Ok(())
    }
}

/// A connection without delays of small segments, which asks hosts that are silent for hours whether they are there.
fn prepared(host: TcpStream) -> io::Result<TcpStream> {
    host.set_nodelay(true)?;
    socket2::SockRef::from(&host).set_keepalive(true)?;
    Ok(host)
}

async fn refuse(sending: &mut Sending, status: StatusCode) -> Result<(), SendError> {
    let head = Response::builder().status(status).body(()).expect("a status is valid");
    sending.whole(&head, Bytes::new()).await
}
