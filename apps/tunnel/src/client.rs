//! The end of a tunnel that asks for it.

use crate::capsule::Capsule;
use crate::device::AsyncDevice;
use crate::order::Ordering;
use crate::outbound::Outbound;
use crate::prefix::Prefix;
pub use crate::session::Ended;
use crate::session::{Arrived, Inbound};
use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::{ConnectionError as HttpEnd, StreamError};
use h3::ext::Protocol;
use http::{Method, Request, StatusCode};
use hvq_h3::Datagrams;
use hvq_tun::packet::Header;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long the server may take to assign an address.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pieces of a stream that wait.
const PIECES: usize = 64;

/// Why there is no tunnel.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no HTTP/3 connection.
    #[error("no HTTP/3: {0}")]
    Connection(#[from] HttpEnd),
    /// The request failed.
    #[error("the request for a tunnel failed: {0}")]
    Stream(#[from] StreamError),
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

/// A tunnel with addresses, ready to carry packets.
#[derive(Debug)]
pub struct Client {
    outbound: Arc<Outbound>,
    inbound: Inbound,
    addresses: Vec<Prefix>,
    routes: Vec<Prefix>,
    tasks: JoinSet<()>,
}

impl Client {
    /// Asks the server at the other end of `connection`, which `authority` names, for a tunnel, and waits until it has said
    /// which addresses and routes there are. Without `token`, the client's certificate says who it is.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn open(
        connection: hvq::Connection,
        authority: &str,
        token: Option<&str>,
    ) -> Result<Self, ClientError> {
        let datagrams = Datagrams::new(connection.clone());
        let mut builder = h3::client::builder();
        builder.enable_datagram(true).enable_extended_connect(true);
        let (mut driver, mut requests) =
            builder.build::<_, _, Bytes>(hvq_h3::Connection::new(connection.clone())).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let end = poll_fn(|context| driver.poll_close(context)).await;
            tracing::debug!(%end, "HTTP/3 ended");
        });
        let mut stream = requests.send_request(request(authority, token)?).await?;
        let id = stream.id();
        let own = datagrams.flow(id).ok_or(ClientError::NoAddress)?;
        tasks.spawn(async move { datagrams.run().await });
        let response = stream.recv_response().await?;
        if !response.status().is_success() {
            return Err(ClientError::Refused(response.status()));
        }
        let ordering = match response.headers().contains_key("hvq-order") {
            true => Ordering::Numbered,
            false => Ordering::Plain,
        };
        let (send, receive) = stream.split();
        let (piece, pieces) = mpsc::channel(PIECES);
        let (capsule, capsules) = mpsc::channel(PIECES);
        // A tunnel without requests would end HTTP/3.
        tasks.spawn(read(receive, piece, requests));
        tasks.spawn(write(send, capsules));
        let outbound = Arc::new(Outbound::new(connection.clone(), id, capsule, ordering));
        let inbound = Inbound::new(connection, own, pieces);
        let mut client = Self { outbound, inbound, addresses: Vec::new(), routes: Vec::new(), tasks };
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

    /// Where packets may go.
    pub fn routes(&self) -> &[Prefix] {
        &self.routes
    }

    /// Carries packets between the tunnel and `device` until one of them ends; returns why.
    pub async fn run(mut self, device: AsyncDevice) -> ClientError {
        let mut buffer = vec![0; 65_535];
        loop {
            tokio::select! {
                read = device.receive(&mut buffer) => match read {
                    Ok(size) => {
                        let packet = buffer.get(..size).unwrap_or_default();
                        self.outbound.send(packet, Header::read(packet).as_ref());
                    }
                    Err(error) => return error.into(),
                },
                arrived = self.inbound.next() => match arrived {
                    Ok(Arrived::Packets(packets)) => deliver(&device, &self.addresses, packets),
                    Ok(Arrived::Capsule(capsule)) => {
                        tracing::debug!(?capsule, "addresses and routes stay as they are");
                    }
                    Err(ended) => return ended.into(),
                },
                Some(_) = self.tasks.join_next() => {}
            }
        }
    }
}

/// Asks for all addresses and protocols (RFC 9484 §3).
fn request(authority: &str, token: Option<&str>) -> Result<Request<()>, http::Error> {
    let mut request = Request::builder()
        .method(Method::CONNECT)
        .uri(format!("https://{authority}/.well-known/masque/ip/*/*/"))
        .extension(Protocol::CONNECT_UDP)
        .header("capsule-protocol", "?1")
        .header("hvq-order", "?1");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    request.body(())
}

/// Reads pieces from the stream of a tunnel, to its end.
async fn read(
    mut stream: RequestStream<hvq_h3::RecvStream, Bytes>,
    pieces: mpsc::Sender<Bytes>,
    _requests: SendRequest<hvq_h3::OpenStreams, Bytes>,
) {
    while let Ok(Some(mut data)) = stream.recv_data().await {
        if pieces.send(data.copy_to_bytes(data.remaining())).await.is_err() {
            break;
        }
    }
}

/// Writes capsules to it.
async fn write(
    mut stream: RequestStream<hvq_h3::SendStream<Bytes>, Bytes>,
    mut capsules: mpsc::Receiver<Bytes>,
) {
    while let Some(capsule) = capsules.recv().await {
        if stream.send_data(capsule).await.is_err() {
            break;
        }
    }
}

/// Hands packets to the device, if they are for one of `addresses`: a server might send others, and this machine might
/// forward them.
fn deliver(device: &AsyncDevice, addresses: &[Prefix], packets: Vec<Bytes>) {
    for packet in packets {
        let header = Header::read(&packet);
        let own = |header: &Header| addresses.iter().any(|prefix| prefix.contains(header.destination));
        if !header.as_ref().is_some_and(own) {
            tracing::debug!(?header, "a packet for somebody else is dropped");
            continue;
        }
        if let Err(error) = device.send(&packet) {
            tracing::debug!(%error, "a packet is not taken");
        }
    }
}
