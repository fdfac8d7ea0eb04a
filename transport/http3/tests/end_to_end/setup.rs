//! A client and a server, connected, each with its `h3` objects.

use bytes::{Buf, Bytes};
use h3::error::{ConnectionError, StreamError};
use h3::quic::RecvStream;
use h3::{client, server};
use http::{Request, Response};
use hvq::config::{MemoryQuota, PartialDelivery};
use hvq::{
    ClientConfig, ClientTls, Endpoint, EndpointConfig, EndpointOptions, Identity, Policy, ServerConfig,
    ServerTls, TransportConfig, Verify,
};
use hvq_h3::adapter::{BidiStream, Connection, OpenStreams};
use hvq_h3::client::Client;
use hvq_h3::{Priorities, ReceiveError, Receiving, Sending, Settings, serving};
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

pub type Requests = client::SendRequest<OpenStreams, Bytes>;
pub type Driver = client::Connection<Connection, Bytes>;
pub type Server = server::Connection<Connection, Bytes>;
pub type ServerStream = server::RequestStream<BidiStream<Bytes>, Bytes>;
pub type ClientStream = client::RequestStream<BidiStream<Bytes>, Bytes>;

/// No test takes as long as this unless it hangs.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Two QUIC connections that are each other's peer.
pub struct Pair {
    pub client: hvq::Connection,
    pub server: hvq::Connection,
    _endpoints: [Endpoint; 2],
}

/// A connected pair whose connections end after `idle` without a packet.
pub async fn pair(idle: Duration) -> Pair {
    pair_within(idle, Arc::default()).await
}

/// The same, with a server that holds what `memory` allows.
pub async fn pair_within(idle: Duration, memory: Arc<MemoryQuota>) -> Pair {
    pair_of(idle, memory, 128).await
}

/// The same, with so many unidirectional streams at a time.
pub async fn pair_of(idle: Duration, memory: Arc<MemoryQuota>, max_streams_uni: u64) -> Pair {
    pair_with(&["localhost"], idle, memory, max_streams_uni).await
}

/// A connected pair whose server has a certificate for `names`.
pub async fn pair_for(names: &[&str]) -> Pair {
    pair_with(names, Duration::from_secs(20), Arc::default(), 128).await
}

async fn pair_with(names: &[&str], idle: Duration, memory: Arc<MemoryQuota>, max_streams_uni: u64) -> Pair {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let key = rcgen::generate_simple_self_signed(names).unwrap();
    let chain = key.cert.pem().into_bytes();
    let identity = Identity::Pem { chain: chain.clone(), key: key.signing_key.serialize_pem().into_bytes() };
    let mut transport = TransportConfig::new(Arc::new(|| Policy::default().scheduler()));
    transport.set_idle_timeout(idle);
    transport.set_partial_delivery(PartialDelivery::On);
    transport.streams_mut().max_streams_uni = max_streams_uni;
    let transport = Arc::new(transport);

    let tls = ServerTls::builder(identity).alpn([hvq_h3::ALPN]).build().unwrap();
    let config = ServerConfig::new(tls, transport.clone());
    let options = EndpointOptions {
        config: EndpointConfig::default().set_memory(Some(memory)).clone(),
        server: Some(config),
        local: vec![IpAddr::from(Ipv4Addr::LOCALHOST).into()],
        ..EndpointOptions::default()
    };
    let listener = Endpoint::new(options).unwrap();
    let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(chain)).build().unwrap();
    let endpoint = Endpoint::client(&[]).unwrap();
    let remote = listener.local_addr().unwrap();
    let connecting = endpoint.connect(ClientConfig::new(tls, transport), remote, "localhost").unwrap();
    let (client, server) = tokio::join!(connecting, listener.accept());
    Pair { client: client.unwrap(), server: server.unwrap(), _endpoints: [endpoint, listener] }
}

/// Both ends with their `h3` objects; nothing is driven yet.
pub struct Ends {
    pub requests: Requests,
    pub driver: Driver,
    pub server: Server,
    pub priorities: Priorities,
    pub pair: Pair,
}

pub async fn ends() -> Ends {
    let pair = pair(Duration::from_secs(20)).await;
    let (driver, requests) = client::new(Connection::new(pair.client.clone())).await.unwrap();
    let connection = Connection::new(pair.server.clone());
    let priorities = connection.priorities();
    let server = server::Connection::new(connection).await.unwrap();
    Ends { requests, driver, server, priorities, pair }
}

/// A client whose driver runs, and a server that answers every request with `handler` in a task of its own.
pub async fn served<H, F>(handler: H) -> Requests
where
    H: Fn(Request<()>, ServerStream) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), StreamError>> + Send + 'static,
{
    let Ends { requests, driver, server, pair, .. } = ends().await;
    drive(driver);
    tokio::spawn(async move {
        let _pair = pair;
        serve(server, handler).await
    });
    requests
}

/// Answers requests until the connection ends.
pub async fn serve<H, F>(mut server: Server, handler: H) -> Result<(), ConnectionError>
where
    H: Fn(Request<()>, ServerStream) -> F,
    F: Future<Output = Result<(), StreamError>> + Send + 'static,
{
    while let Some(resolver) = server.accept().await? {
        let Ok((request, stream)) = resolver.resolve_request().await else { continue };
        tokio::spawn(handler(request, stream));
    }
    Ok(())
}

/// Drives a client's connection to its end.
pub fn drive(mut driver: Driver) -> JoinHandle<ConnectionError> {
    tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await })
}

/// Returns the result of `future`; panics if it takes too long.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("the test hangs")
}

pub fn get(path: &str) -> Request<()> {
    Request::get(format!("https://localhost{path}")).body(()).unwrap()
}

pub fn post(path: &str) -> Request<()> {
    Request::post(format!("https://localhost{path}")).body(()).unwrap()
}

pub fn ok() -> Response<()> {
    Response::new(())
}

/// `length` bytes that are not the same everywhere.
pub fn body(length: usize) -> Bytes {
    (0..length).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// All of a request's body.
pub async fn request_body<S: RecvStream>(
    stream: &mut server::RequestStream<S, Bytes>,
) -> Result<Vec<u8>, StreamError> {
    let mut all = Vec::new();
    while let Some(mut part) = stream.recv_data().await? {
        all.extend_from_slice(&part.copy_to_bytes(part.remaining()));
    }
    Ok(all)
}

/// All of a response's body.
pub async fn response_body<S: RecvStream>(
    stream: &mut client::RequestStream<S, Bytes>,
) -> Result<Vec<u8>, StreamError> {
    let mut all = Vec::new();
    while let Some(mut part) = stream.recv_data().await? {
        all.extend_from_slice(&part.copy_to_bytes(part.remaining()));
    }
    Ok(all)
}

/// Sends a GET and receives the whole answer.
pub async fn fetch(requests: &mut Requests, path: &str) -> Result<Vec<u8>, StreamError> {
    let mut stream = requests.send_request(get(path)).await?;
    stream.finish().await?;
    stream.recv_response().await?;
    response_body(&mut stream).await
}

/// Has the server of `pair` answer each request with `handler`.
pub async fn answer<H, F>(pair: Pair, settings: Settings, handler: H)
where
    H: Fn(Request<()>, Sending, Receiving) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let mut server = serving::Server::new(pair.server.clone(), settings).await.unwrap();
    tokio::spawn(server.watch());
    tokio::spawn(async move {
        let _pair = pair;
        while let Ok(incoming) = server.accept().await {
            if let Ok((request, sending, receiving)) = incoming.request(LIMIT).await {
                tokio::spawn(handler(request, sending, receiving));
            }
        }
    });
}

/// The client of a server with `settings` that answers each request with `handler`.
pub async fn client_of<H, F>(settings: Settings, handler: H) -> Client
where
    H: Fn(Request<()>, Sending, Receiving) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let pair = pair(Duration::from_secs(20)).await;
    let client = Client::new(pair.client.clone(), settings).await.unwrap();
    tokio::spawn(client.watch());
    answer(pair, settings, handler).await;
    client
}

/// All of a body.
pub async fn all(receiving: &mut Receiving) -> Result<Vec<u8>, ReceiveError> {
    let mut all = Vec::new();
    while let Some(piece) = receiving.data().await? {
        all.extend_from_slice(&piece);
    }
    Ok(all)
}
