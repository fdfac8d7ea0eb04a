//! The end of a tunnel that asks for it.

use crate::capsule::Capsule;
use crate::device::{AsyncDevice, Buffer};
use crate::lane::{Lane, Offload, Outgoing, Output, Requests, TcpLane};
use crate::order::Ordering;
use crate::outbound::Outbound;
use crate::prefix::Prefix;
use crate::server::{ORDER, PATH, PROTOCOL, TCP};
pub use crate::session::Ended;
use crate::session::{Arrived, Inbound};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, StatusCode};
use hvq_emulation::tun::offload::{Coalescer, Pieces, Segment};
use hvq_emulation::tun::packet::Header;
use hvq_h3::client::{Client as Http, RequestError};
use hvq_h3::{Code, Datagrams, Receiving, Sending, Settings, Tunnels};
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The time within which the server has to assign an address.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pieces of a stream that wait.
const PIECES: usize = 64;

/// The reason for which there is no tunnel.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The request failed.
    #[error("the request for a tunnel failed: {0}")]
    Asked(RequestError),
    /// The server knows tunnels for UDP at most: it refuses the name `connect-ip`.
    #[error(
        "the server knows no connect-ip (RFC 9484): it carries no IP packets, or is an hvq that is older than this one, \
         and has to be updated first"
    )]
    NoConnectIp,
    /// The server refused.
    #[error("the server refuses the tunnel: {0}")]
    Refused(StatusCode),
    /// The URL or the token cannot be sent.
    #[error("the request cannot be made: {0}")]
    Request(#[from] http::Error),
    /// The server assigned no address in time.
    #[error("the server assigns no address")]
    NoAddress,
    /// The tunnel ended.
    #[error("the tunnel ended: {0}")]
    Ended(#[from] Ended),
    /// The device failed.
    #[error("the TUN device: {0}")]
    Device(#[from] std::io::Error),
}

impl From<RequestError> for ClientError {
    fn from(error: RequestError) -> Self {
        match error {
            // What knows no such protocol takes the request for malformed (RFC 9114 §4.3), as `h3` 0.0.8 does.
            RequestError::Reset(code) if code == Code::H3_MESSAGE_ERROR.value() => Self::NoConnectIp,
            other => Self::Asked(other),
        }
    }
}

/// A tunnel with addresses, ready to carry packets.
#[derive(Debug)]
pub struct Client {
    outbound: Arc<Outbound>,
    inbound: Inbound,
    addresses: Vec<Prefix>,
    routes: Vec<Prefix>,
    tasks: JoinSet<()>,
    /// The requests for streams of TCP flows, if the server takes them.
    requests: Option<Requests>,
}

impl Client {
    /// Asks the server at the other end of `connection`, which `authority` names, for a tunnel, and waits until it has said
    /// which addresses and routes there are. Without `token`, the client's certificate says who it is. With `lane` on, TCP flows
    /// ride streams of their own if the server takes them.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn open(
        connection: hvq::Connection,
        authority: &str,
        token: Option<&str>,
        lane: TcpLane,
    ) -> Result<Self, ClientError> {
        // Packets come once there are addresses: the time until then is enough to try what the paths carry.
        connection.expect_datagrams(usize::MAX);
        let datagrams = Datagrams::new(connection.clone());
        let settings = Settings { tunnels: Tunnels::Taken, ..Settings::default() };
        let http = Arc::new(Http::new(connection.clone(), settings).await.map_err(RequestError::from)?);
        let mut tasks = JoinSet::new();
        tasks.spawn(http.watch());
        let request = request(authority, token, lane)?;
        let (response, send, receive) = http.tunnel(&request, PROTOCOL).await?;
        match response.status() {
            status if status.is_success() => {}
            // RFC 9220 §3: a protocol that is not known.
            StatusCode::NOT_IMPLEMENTED => return Err(ClientError::NoConnectIp),
            status => return Err(ClientError::Refused(status)),
        }
        let id = send.id();
        let own = datagrams.flow(id).ok_or(ClientError::NoAddress)?;
        tasks.spawn(async move { datagrams.run().await });
        let ordering = match response.headers().contains_key(ORDER) {
            true => Ordering::Numbered,
            false => Ordering::Plain,
        };
        let takes_flows = lane == TcpLane::On && response.headers().contains_key(TCP);
        let authorization = request.headers().get(AUTHORIZATION).cloned();
        let requests = takes_flows.then(|| Requests::new(http.clone(), authorization));
        let (piece, pieces) = mpsc::channel(PIECES);
        let (capsule, capsules) = mpsc::channel(PIECES);
        tasks.spawn(read(receive, piece, http));
        tasks.spawn(write(send, capsules));
        let outbound = Arc::new(Outbound::new(connection.clone(), id, capsule, ordering));
        let inbound = Inbound::new(connection, own, pieces);
        let mut client =
            Self { outbound, inbound, addresses: Vec::new(), routes: Vec::new(), tasks, requests };
        timeout(PATIENCE, client.settle()).await.map_err(|_| ClientError::NoAddress)??;
        Ok(client)
    }

    /// Waits for addresses and routes.
    async fn settle(&mut self) -> Result<(), ClientError> {
        while self.addresses.is_empty() || self.routes.is_empty() {
            match self.inbound.next().await? {
                Arrived::Capsule(Capsule::AddressAssign(addresses)) => self.addresses = addresses,
                Arrived::Capsule(Capsule::RouteAdvertisement(routes)) => self.routes = routes,
                // There is no device yet, and nobody could have been answered.
                Arrived::Capsule(Capsule::Datagram(_)) | Arrived::Packets(_) => {}
            }
        }
        Ok(())
    }

    /// The addresses that packets may come from.
    pub fn addresses(&self) -> &[Prefix] {
        &self.addresses
    }

    /// Returns the networks to which packets may go.
    pub fn routes(&self) -> &[Prefix] {
        &self.routes
    }

    /// Returns true if TCP flows ride streams of their own.
    pub fn has_tcp_lane(&self) -> bool {
        self.requests.is_some()
    }

    /// Carries packets between the tunnel and `device` until one of them ends; returns why.
    pub async fn run(mut self, device: impl Into<Arc<AsyncDevice>>) -> ClientError {
        let device = device.into();
        let mut lane =
            self.requests.take().map(|requests| Lane::new(self.addresses.clone(), requests, output(&device)));
        let (mut buffer, mut pieces, mut coalescer) =
            (Buffer::default(), Pieces::default(), Coalescer::default());
        loop {
            tokio::select! {
                read = device.receive(&mut buffer) => match read {
                    Ok(size) => if let Some(segment) = device.segment(&mut buffer, size) {
                        self.forward(segment, lane.as_mut(), &device, &mut pieces);
                    },
                    Err(error) => return error.into(),
                },
                arrived = self.inbound.next() => match arrived {
                    Ok(Arrived::Packets(packets)) => deliver(&device, &self.addresses, packets, &mut coalescer),
                    Ok(Arrived::Capsule(capsule)) => {
                        tracing::debug!(?capsule, "addresses and routes stay as they are");
                    }
                    Err(ended) => return ended.into(),
                },
                unplaced = ended(lane.as_mut()) => if let Some(syn) = unplaced {
                    self.send(&syn, &device);
                },
                Some(_) = self.tasks.join_next() => {}
            }
        }
    }

    /// Sends packets of a program on: to `lane`, if that takes them, or else as they are.
    fn forward(
        &self,
        segment: Segment<'_>,
        lane: Option<&mut Lane>,
        device: &AsyncDevice,
        pieces: &mut Pieces,
    ) {
        // What is damaged is left to the host to find out.
        if let Some(lane) = lane
            && segment.is_sound_tcp()
            && let Some(header) = Header::read(segment.bytes())
            && lane.take(segment.bytes(), &header)
        {
            return;
        }
        match segment.split(pieces) {
            Ok(packets) => packets.for_each(|packet| self.send(packet, device)),
            Err(error) => tracing::debug!(%error, "packets without sense are dropped"),
        }
    }

    /// Sends a packet as it is.
    fn send(&self, packet: &[u8], device: &AsyncDevice) {
        if let Some(answer) = self.outbound.send(packet, Header::read(packet).as_ref()) {
            hand(device, &answer);
        }
    }
}

/// Waits for the end of a flow of `lane`; without end if there is none.
async fn ended(lane: Option<&mut Lane>) -> Option<Vec<u8>> {
    match lane {
        Some(lane) => lane.ended().await,
        None => std::future::pending().await,
    }
}

/// Asks for all addresses and protocols (RFC 9484 §3).
fn request(authority: &str, token: Option<&str>, lane: TcpLane) -> Result<Request<()>, http::Error> {
    let mut request = Request::builder()
        .uri(format!("https://{authority}{PATH}*/*/"))
        .header("capsule-protocol", "?1")
        .header(ORDER, "?1");
    if lane == TcpLane::On {
        request = request.header(TCP, "?1");
    }
    if let Some(token) = token {
        let mut token = HeaderValue::from_str(&format!("Bearer {token}"))?;
        // RFC 9204 §7.1.3: nobody ever keeps it in a table.
        token.set_sensitive(true);
        request = request.header(AUTHORIZATION, token);
    }
    request.body(())
}

/// Reads pieces from the stream of a tunnel, to its end. HTTP/3 goes on for as long as `_http` is there.
async fn read(mut stream: Receiving, pieces: mpsc::Sender<Bytes>, _http: Arc<Http>) {
    while let Ok(Some(data)) = poll_fn(|context| stream.poll_data(context)).await {
        if pieces.send(data).await.is_err() {
            break;
        }
    }
}

/// Writes capsules to it.
async fn write(mut stream: Sending, mut capsules: mpsc::Receiver<Bytes>) {
    while let Some(capsule) = capsules.recv().await {
        if stream.data(capsule).await.is_err() {
            break;
        }
    }
}

/// Hands a packet to the programs behind `device`, which may be without room for it.
fn hand(device: &AsyncDevice, packet: &[u8]) {
    if let Err(error) = device.send(packet) {
        tracing::debug!(%error, "a packet is not taken");
    }
}

/// The way of packets of flows to the programs behind `device`.
fn output(device: &Arc<AsyncDevice>) -> Output {
    let behind = device.clone();
    let hand = move |Outgoing { mut packet, piece }| {
        let sent = match behind.offloads() {
            true => behind.send_unfinished(&mut packet, piece),
            false => behind.send(&packet),
        };
        if let Err(error) = sent {
            tracing::debug!(%error, "a segment is not taken");
        }
    };
    let offload = match device.offloads() {
        true => Offload::Segments,
        false => Offload::Nothing,
    };
    Output { hand: Arc::new(hand), offload }
}

/// Hands packets to the device, if they are for one of `addresses`: a server might send others, and this machine might
/// forward them.
fn deliver(device: &AsyncDevice, addresses: &[Prefix], mut packets: Vec<Bytes>, coalescer: &mut Coalescer) {
    packets.retain(|packet| {
        let header = Header::read(packet);
        let own = |header: &Header| addresses.iter().any(|prefix| prefix.contains(header.destination));
        let is_own = header.as_ref().is_some_and(own);
        if !is_own {
            tracing::debug!(?header, "a packet for somebody else is dropped");
        }
        is_own
    });
    if let Err(error) = device.send_all(&packets, coalescer) {
        tracing::debug!(%error, "a packet is not taken");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_too_old_is_told_apart_from_one_that_refuses() {
        let of = |code: Code| ClientError::from(RequestError::Reset(code.value())).to_string();
        assert!(of(Code::H3_MESSAGE_ERROR).contains("older than this one"));
        assert!(!of(Code::H3_INTERNAL_ERROR).contains("older"));
        assert!(ClientError::Refused(StatusCode::UNAUTHORIZED).to_string().contains("401"));
    }

    #[test]
    fn a_request_asks_for_everything_and_keeps_its_token_out_of_tables() {
        let request = request("gateway.example:443", Some("a-token"), TcpLane::On).unwrap();
        assert_eq!(request.uri(), "https://gateway.example:443/.well-known/masque/ip/*/*/");
        let token = &request.headers()["authorization"];
        assert!(token == "Bearer a-token" && token.is_sensitive());
        assert!(request.headers().contains_key(TCP));
        assert!(super::request("a", Some("a\nb"), TcpLane::Off).is_err());
        assert!(!super::request("a", None, TcpLane::Off).unwrap().headers().contains_key(TCP));
    }
}
