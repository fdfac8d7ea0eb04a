//! The end of a tunnel that is asked for it.

mod access;
pub(crate) mod flows;
mod leases;
mod ledger;

use crate::capsule::Capsule;
use crate::device::{AsyncDevice, Buffer};
use crate::lane::TcpLane;
use crate::order::Ordering;
use crate::outbound::Outbound;
use crate::prefix::Prefix;
pub use crate::session::Ended;
use crate::session::{Arrived, Inbound};
pub use access::{ServerOptions, TooOpen};
use bytes::Bytes;
use flows::Flows;
pub use flows::{TCP, destination, is_marked};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hvq::StreamId;
use hvq_emulation::tun::offload::{Coalescer, Pieces, Segment};
use hvq_emulation::tun::packet::Header;
use hvq_h3::serving::{self, Incoming};
use hvq_h3::{Datagrams, Flow, Protocol, Receiving, SendError, Sending, Settings, Tunnels};
pub use leases::Allotment;
use leases::{Leases, Refused};
pub(crate) use ledger::Metered;
pub use ledger::{Ledger, Meter, UserQuota};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The path that asks for all addresses and protocols (RFC 9484 §3); what is in front is the same for others.
pub const PATH: &str = "/.well-known/masque/ip/";
/// The protocol that is asked for by extended CONNECT (RFC 9484 §4.3).
pub const PROTOCOL: &str = "connect-ip";
/// The name that clients of earlier versions gave in place of [`PROTOCOL`], as their HTTP library knew no other.
pub const FORMER_PROTOCOL: &str = "connect-udp";
/// The field by which ends agree to number packets.
pub(crate) const ORDER: &str = "hvq-order";
/// The time that a client may take for the header section of a request.
const HEADERS: Duration = Duration::from_secs(10);
/// Pieces of a stream that wait.
const PIECES: usize = 64;

/// Assigns addresses, and carries packets between tunnels and a TUN device. The system is in charge of them beyond the
/// device: of forwarding, and of translating addresses if need be.
#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    device: AsyncDevice,
    sessions: Mutex<Leases<Session>>,
    flows: Flows,
}

/// The way of packets to a client.
#[derive(Clone, Debug)]
struct Session {
    outbound: Arc<Outbound>,
    meter: Meter,
}

/// The addresses of one tunnel, free again when this is dropped.
#[derive(Debug)]
struct Lease<'a> {
    server: &'a Server,
    host: u8,
    addresses: [IpAddr; 2],
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.server.sessions().free(self.host, Instant::now());
    }
}

/// Addresses that packets may go to, among those of the routes.
#[derive(Clone)]
pub struct Destinations(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl Destinations {
    /// Makes destinations of the addresses that `allows` returns true for. It is asked for every packet.
    pub fn new(allows: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(allows))
    }

    /// All of the routes.
    pub fn all() -> Self {
        Self::new(|_| true)
    }

    /// Returns true if `address` is one of them.
    pub(crate) fn include(&self, address: IpAddr) -> bool {
        (self.0)(address)
    }
}

impl fmt::Debug for Destinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destinations").finish_non_exhaustive()
    }
}

/// A request for a tunnel, of a client that may have one.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The request's fields.
    pub fields: &'a HeaderMap,
    /// The request's stream.
    pub id: StreamId,
    /// The name of the client, which has a bounded number of addresses.
    pub client: &'a str,
    /// The destinations of its packets.
    pub destinations: Destinations,
    /// The account of its packets.
    pub meter: Meter,
}

/// The reason for which a tunnel is not granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The request has one already.
    Twice,
    /// No address is free.
    Full,
    /// The client has as many as it may.
    Enough,
}

impl Refusal {
    /// The status of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Twice => StatusCode::BAD_REQUEST,
            Self::Full => StatusCode::SERVICE_UNAVAILABLE,
            Self::Enough => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}

/// A tunnel that was granted and does not run yet. Its addresses are free again when it ends or is dropped.
#[derive(Debug)]
pub struct Granted<'a> {
    server: &'a Server,
    lease: Lease<'a>,
    destinations: Destinations,
    meter: Meter,
    ordering: Ordering,
    /// The use of streams that both ends agree on.
    lane: TcpLane,
    own: Flow,
    connection: hvq::Connection,
    capsules: mpsc::Receiver<Bytes>,
}

/// The rights of a tunnel.
#[derive(Debug)]
struct Rights {
    addresses: [IpAddr; 2],
    destinations: Destinations,
    meter: Meter,
}

impl Granted<'_> {
    /// The head of the response.
    pub fn head(&self) -> Response<()> {
        let mut head = Response::builder().header("capsule-protocol", "?1");
        if self.ordering == Ordering::Numbered {
            head = head.header(ORDER, "?1");
        }
        if self.lane == TcpLane::On {
            head = head.header(TCP, "?1");
        }
        head.body(()).expect("the fields are constants")
    }

    /// Takes the capsules that are to be written to the request's stream after the head, from addresses and routes on.
    /// There is nothing a second time.
    pub fn capsules(&mut self) -> mpsc::Receiver<Bytes> {
        std::mem::replace(&mut self.capsules, mpsc::channel(1).1)
    }

    /// Carries packets until the connection or `pieces`, what comes on the request's stream, end; returns why.
    pub async fn run(self, pieces: mpsc::Receiver<Bytes>) -> Ended {
        let Self { server, lease, destinations, meter, own, connection, .. } = self;
        let inbound = Inbound::new(connection, own, pieces);
        server.receive(inbound, &Rights { addresses: lease.addresses, destinations, meter }).await
    }
}

impl Server {
    /// A server of tunnels that end at `device`.
    pub fn new(options: ServerOptions, device: AsyncDevice) -> Arc<Self> {
        let sessions = Mutex::new(Leases::new(options.allotment));
        Arc::new(Self { options, device, sessions, flows: Flows::default() })
    }

    /// Returns true if `request` asks for a tunnel.
    pub fn is_asked(request: &Request<()>) -> bool {
        let protocol = request.extensions().get::<Protocol>().map(Protocol::as_str);
        request.method() == Method::CONNECT
            && matches!(protocol, Some(PROTOCOL | FORMER_PROTOCOL))
            && request.uri().path().starts_with(PATH)
    }

    /// Accepts connections of `endpoint` and carries packets, until the endpoint closes or the device fails.
    ///
    /// # Errors
    /// The device failed.
    pub async fn run(self: &Arc<Self>, endpoint: &hvq::Endpoint) -> io::Result<()> {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                result = self.carry() => return result,
                accepted = endpoint.accept() => match accepted {
                    Some(connection) => {
                        let server = Arc::clone(self);
                        connections.spawn(async move { server.serve(connection).await });
                    }
                    None => return Ok(()),
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }

    /// Takes packets from the device to the tunnels that they are for. A program that does not call [`Server::run`] has
    /// to keep this going. Cancel-safe.
    ///
    /// # Errors
    /// The device failed.
    pub async fn carry(&self) -> io::Result<()> {
        let (mut buffer, mut pieces) = (Buffer::default(), Pieces::default());
        loop {
            let size = self.device.receive(&mut buffer).await?;
            let Some(segment) = self.device.segment(&mut buffer, size) else { continue };
            let Some(header) = Header::read(segment.bytes()) else { continue };
            let host = self.options.host(header.destination);
            match host.and_then(|host| self.sessions().get(host).cloned()) {
                Some(session) => self.send(&session, segment, &mut pieces),
                None => tracing::trace!(to = %header.destination, "a packet for nobody"),
            }
        }
    }

    /// Sends the packets of `segment` to a client.
    fn send(&self, session: &Session, segment: Segment<'_>, pieces: &mut Pieces) {
        let packets = match segment.split(pieces) {
            Ok(packets) => packets,
            Err(error) => return tracing::debug!(%error, "packets without sense are dropped"),
        };
        for packet in packets {
            if !session.meter.pass(packet.len()) {
                tracing::debug!("a quota is exhausted");
            } else if let Some(answer) = session.outbound.send(packet, Header::read(packet).as_ref())
                && let Err(error) = self.device.send(&answer)
            {
                tracing::debug!(%error, "an answer is not taken");
            }
        }
    }

    /// Serves one connection that is there for tunnels only.
    async fn serve(self: Arc<Self>, connection: hvq::Connection) {
        let datagrams = Datagrams::new(connection.clone());
        let settings = Settings { tunnels: Tunnels::Taken, ..Settings::default() };
        let mut http = match serving::Server::new(connection.clone(), settings).await {
            Ok(http) => http,
            Err(error) => return tracing::debug!(%error, "no HTTP/3"),
        };
        let mut sessions = JoinSet::new();
        sessions.spawn(http.watch());
        let sorting = Arc::clone(&datagrams);
        sessions.spawn(async move { sorting.run().await });
        loop {
            tokio::select! {
                accepted = http.accept() => {
                    let Ok(incoming) = accepted else { break };
                    let (server, connection, datagrams) =
                        (Arc::clone(&self), connection.clone(), datagrams.clone());
                    sessions.spawn(async move {
                        if let Err(error) = server.answer(incoming, connection, &datagrams).await {
                            tracing::debug!(%error, "a request failed");
                        }
                    });
                }
                Some(_) = sessions.join_next() => {}
            }
        }
    }

    /// Returns true if TCP flows may ride streams, to `address` among others by the rules for packets.
    pub fn takes_flows_to(&self, address: IpAddr) -> bool {
        self.options.lane == TcpLane::On && self.options.takes_flows_to(address)
    }

    /// Answers a request that came over `connection`, whose datagrams are `datagrams`, and carries the packets of its tunnel
    /// to its end.
    async fn answer(
        &self,
        incoming: Incoming,
        connection: hvq::Connection,
        datagrams: &Arc<Datagrams>,
    ) -> Result<(), SendError> {
        let Ok((request, mut sending, receiving)) = incoming.request(HEADERS).await else { return Ok(()) };
        let flow = destination(&request).filter(|_| self.options.lane == TcpLane::On);
        if flow.is_none() && !Self::is_asked(&request) {
            return refuse(&mut sending, StatusCode::NOT_FOUND).await;
        }
        let Some(token) = self.options.token(request.headers()) else {
            tracing::info!(from = %connection.remote_address(), "a tunnel is refused: no token, or a wrong one");
            return refuse(&mut sending, StatusCode::UNAUTHORIZED).await;
        };
        let meter = self.options.meter(token);
        if !meter.is_open() {
            return refuse(&mut sending, StatusCode::TOO_MANY_REQUESTS).await;
        }
        if let Some(destination) = flow {
            return self.flows.serve(&self.options, (destination, meter), (sending, receiving)).await;
        }
        let asked = Asked {
            fields: request.headers(),
            id: sending.id(),
            client: &token.to_string(),
            destinations: self.options.destinations.clone(),
            meter,
        };
        let mut granted = match self.grant(asked, &connection, datagrams) {
            Ok(granted) => granted,
            Err(refusal) => return refuse(&mut sending, refusal.status()).await,
        };
        sending.head(&granted.head()).await?;
        let (pieces, _halves) = halves((sending, receiving), granted.capsules());
        let addresses = granted.lease.addresses;
        let ended = granted.run(pieces).await;
        tracing::info!(%ended, ?addresses, "a tunnel ended");
        Ok(())
    }

    /// A tunnel for whoever asked over `connection`, whose datagrams are `datagrams`. Nobody is asked for a token: this is for
    /// servers that let clients in themselves, and answer.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn grant(
        &self,
        asked: Asked<'_>,
        connection: &hvq::Connection,
        datagrams: &Arc<Datagrams>,
    ) -> Result<Granted<'_>, Refusal> {
        let Asked { fields, id, client, destinations, meter } = asked;
        let own = datagrams.flow(id).ok_or(Refusal::Twice)?;
        let ordering = match fields.contains_key(ORDER) {
            true => Ordering::Numbered,
            false => Ordering::Plain,
        };
        let (capsule, capsules) = mpsc::channel(PIECES);
        let outbound = Arc::new(Outbound::new(connection.clone(), id, capsule.clone(), ordering));
        let lease = self.lease(client, Session { outbound, meter: meter.clone() })?;
        let assigned = lease.addresses.map(Prefix::only).to_vec();
        let routes = Capsule::RouteAdvertisement(self.options.routes.clone());
        for first in [Capsule::AddressAssign(assigned), routes] {
            capsule.try_send(first.bytes()).expect("the channel is new and has room for more than two");
        }
        let connection = connection.clone();
        let lane = if is_marked(fields) { self.options.lane } else { TcpLane::Off };
        Ok(Granted { server: self, lease, destinations, meter, ordering, lane, own, connection, capsules })
    }

    /// Hands the packets of one tunnel to the device until it ends; returns why.
    async fn receive(&self, mut inbound: Inbound, rights: &Rights) -> Ended {
        let mut coalescer = Coalescer::default();
        loop {
            match inbound.next().await {
                Ok(Arrived::Packets(mut packets)) => {
                    packets.retain(|packet| self.permits(packet, rights));
                    if let Err(error) = self.device.send_all(&packets, &mut coalescer) {
                        tracing::debug!(%error, "a packet is not taken");
                    }
                }
                Ok(Arrived::Capsule(capsule)) => {
                    tracing::debug!(?capsule, "clients have nothing to assign or to advertise");
                }
                Err(ended) => return ended,
            }
        }
    }

    /// Returns true if a packet may come from where it says and go to where it wants.
    fn permits(&self, packet: &[u8], rights: &Rights) -> bool {
        let Some(header) = Header::read(packet) else { return false };
        // RFC 9484 §11: packets with other source addresses than assigned are dropped.
        let honest = rights.addresses.contains(&header.source);
        let permitted =
            self.options.leads_to(header.destination) && rights.destinations.include(header.destination);
        if !honest || !permitted {
            tracing::debug!(from = %header.source, to = %header.destination, "a packet is not permitted");
            return false;
        }
        let passes = rights.meter.pass(packet.len());
        if !passes {
            tracing::debug!(from = %header.source, "a quota is exhausted");
        }
        passes
    }

    /// Addresses, one of each version, for a tunnel of `client` that packets are sent to by `session`.
    fn lease(&self, client: &str, session: Session) -> Result<Lease<'_>, Refusal> {
        let taken = self.sessions().take(client, session, Instant::now());
        let host = taken.map_err(|refused| match refused {
            Refused::Full => Refusal::Full,
            Refused::Enough => Refusal::Enough,
        })?;
        Ok(Lease { server: self, host, addresses: self.options.addresses(host) })
    }

    fn sessions(&self) -> MutexGuard<'_, Leases<Session>> {
        // They are whole after every statement.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads pieces from the stream of a tunnel and writes `capsules` to it, for as long as the tasks live.
fn halves(
    (mut sending, mut receiving): (Sending, Receiving),
    mut capsules: mpsc::Receiver<Bytes>,
) -> (mpsc::Receiver<Bytes>, JoinSet<()>) {
    let (piece, pieces) = mpsc::channel(PIECES);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok(Some(data)) = poll_fn(|context| receiving.poll_data(context)).await {
            if piece.send(data).await.is_err() {
                break;
            }
        }
    });
    tasks.spawn(async move {
        while let Some(capsule) = capsules.recv().await {
            if sending.data(capsule).await.is_err() {
                break;
            }
        }
    });
    (pieces, tasks)
}

async fn refuse(sending: &mut Sending, status: StatusCode) -> Result<(), SendError> {
    let mut response = Response::builder().status(status);
    if status == StatusCode::UNAUTHORIZED {
        // RFC 6750 §3.
        response = response.header("www-authenticate", "Bearer");
    }
    sending.whole(&response.body(()).expect("the fields are constants"), Bytes::new()).await
}
