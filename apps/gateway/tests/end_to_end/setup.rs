//! A gateway, clients over one or two paths, and origins that do as a test wants.

pub use crate::common::within;
use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::StreamError;
use http::{Method, Request, Response};
use hvq::trace::TracerFactory;
use hvq::{
    ClientConfig, ClientTls, Connection, Endpoint, Identity, LocalAddress, PathOptions, Policy,
    TransportConfig, Verify,
};
use hvq_gateway::{Config, Gateway, Overrides, StartError};
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub type Stream = RequestStream<hvq_h3::adapter::BidiStream<Bytes>, Bytes>;

/// A gateway on two loopback ports, with a certificate for localhost.
pub struct Fixture {
    pub gateway: Gateway,
    pub folder: tempfile::TempDir,
    chain: Vec<u8>,
    identity: Identity,
}

pub const TOKEN: &str = "0123456789abcdef";

impl Fixture {
    /// A gateway whose file says `text`; `DIR` in it stands for a folder of its own, in which `tokens` is.
    pub async fn new(text: &str) -> Self {
        Self::with(text, &[]).await
    }

    /// Starts a gateway like [`Fixture::new`], with further files in the folder, by name.
    pub async fn with(text: &str, files: &[(&str, &str)]) -> Self {
        Self::start(text, files).await.unwrap()
    }

    /// Starts a gateway like [`Fixture::new`], or returns the reason why it does not start.
    pub async fn try_new(text: &str) -> Result<Self, StartError> {
        Self::start(text, &[]).await
    }

    /// Starts a gateway like [`Fixture::new`], with `tracer` to watch its connections.
    pub async fn traced(text: &str, tracer: Option<TracerFactory>) -> Self {
        Self::start_traced(text, &[], tracer).await.unwrap()
    }

    async fn start(text: &str, files: &[(&str, &str)]) -> Result<Self, StartError> {
        Self::start_traced(text, files, None).await
    }

    async fn start_traced(
        text: &str,
        files: &[(&str, &str)],
        tracer: Option<TracerFactory>,
    ) -> Result<Self, StartError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tokens"), format!("ann {TOKEN}\n")).unwrap();
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let chain = key.cert.pem().into_bytes();
        let identity =
            Identity::Pem { chain: chain.clone(), key: key.signing_key.serialize_pem().into_bytes() };
        let config = Config { tracer, ..config(&folder, &identity, text).unwrap() };
        let gateway = Gateway::start(config).await?;
        Ok(Self { gateway, folder, chain, identity })
    }

    /// In front of one origin.
    pub async fn before(origin: SocketAddr) -> Self {
        Self::new(&to(origin)).await
    }

    /// Writes another file, and has the gateway read it.
    pub fn reload(&mut self, text: &str) -> Result<Vec<&'static str>, String> {
        let config = config(&self.folder, &self.identity, text)?;
        self.gateway.reload(config).map_err(|error| error.to_string())
    }

    /// Makes another certificate for localhost, good until the first day of `year`: the next reload presents it, and clients trust it alone.
    pub fn replace_certificate(&mut self, year: i32) {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        self.chain = params.self_signed(&key).unwrap().pem().into_bytes();
        self.identity = Identity::Pem { chain: self.chain.clone(), key: key.serialize_pem().into_bytes() };
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The hash of its public key, as browsers are told which one to trust.
    pub fn public_key(&self) -> String {
        public_key(&self.chain)
    }

    /// Returns the certificates that its clients trust.
    pub fn trust(&self) -> Trust {
        Trust(self.chain.clone())
    }

    /// A client with one path.
    pub async fn client(&self) -> Client {
        Client::connect(self.gateway.local_addrs()[0], self.chain.clone()).await.unwrap()
    }

    /// A client that asks for the host `name`, whose certificate goes back to one in `trust` (PEM).
    pub async fn client_for(&self, name: &str, trust: &[u8]) -> Result<Client, hvq::ConnectionError> {
        let (endpoint, remote) = (Endpoint::client(&[]).unwrap(), self.gateway.local_addrs()[0]);
        let connection = connect(&endpoint, (remote, name), trust.to_vec(), None).await?;
        Ok(Client::over((connection, endpoint)).await)
    }

    /// A client that says who it is.
    pub async fn client_as(&self, identity: &Identity) -> Client {
        let remote = self.gateway.local_addrs()[0];
        let connection = dial(remote, self.chain.clone(), Some(identity.clone())).await.unwrap();
        Client::over(connection).await
    }

    /// The end of a connection of a client that says who it is.
    pub async fn end_of(&self, identity: &Identity) -> hvq::ConnectionError {
        let remote = self.gateway.local_addrs()[0];
        match dial(remote, self.chain.clone(), Some(identity.clone())).await {
            // A client knows that the handshake is complete before the server has seen its certificate (RFC 8446 §2).
            Ok((connection, _endpoint)) => within(connection.closed()).await,
            Err(error) => error,
        }
    }

    /// A client with a path to each of the two ports.
    pub async fn client_of_two_paths(&self) -> Client {
        let client = self.client().await;
        let local = LocalAddress::Ip(IpAddr::from(Ipv4Addr::LOCALHOST));
        let second = PathOptions::new("second", local).to(self.gateway.local_addrs()[1]);
        within(client.connection.open_path(second)).await.unwrap();
        client
    }

    /// A client with one path to `remote`, behind which this gateway may be, or another.
    pub async fn try_client_at(&self, remote: SocketAddr) -> Result<Client, hvq::ConnectionError> {
        Client::connect(remote, self.chain.clone()).await
    }

    /// A client with one path from `address`.
    pub async fn client_from(&self, address: [u8; 4]) -> Client {
        let endpoint = Endpoint::client(&[LocalAddress::Ip(address.into())]).unwrap();
        Client::of(&endpoint, self.gateway.local_addrs()[0], &self.trust()).await.unwrap()
    }

    /// A client that permits nothing to be sent on the streams of its requests.
    pub async fn client_without_credit(&self) -> Client {
        let mut transport = transport();
        transport.streams_mut().stream_data_bidi_local = 0;
        let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(self.chain.clone()));
        let config = ClientConfig::new(tls.build().unwrap(), Arc::new(transport));
        let (endpoint, remote) = (Endpoint::client(&[]).unwrap(), self.gateway.local_addrs()[0]);
        let connection = within(endpoint.connect(config, remote, "localhost").unwrap()).await.unwrap();
        Client::over((connection, endpoint)).await
    }

    pub async fn try_client(&self) -> Result<Client, hvq::ConnectionError> {
        Client::connect(self.gateway.local_addrs()[0], self.chain.clone()).await
    }
}

/// The hash of the public key of a certificate, in PEM, as browsers are told which one to trust (RFC 7469 §2.4).
pub fn public_key(chain: &[u8]) -> String {
    let certificate = boring::x509::X509::from_pem(chain).unwrap();
    let key = certificate.public_key().unwrap().public_key_to_der().unwrap();
    boring::base64::encode_block(&boring::sha::sha256(&key))
}

/// The file of a gateway in front of `origin`, with timeouts that tests can wait for.
pub fn to(origin: SocketAddr) -> String {
    format!(
        "[timeouts]\nheader = '500ms'\nfirst_byte = '700ms'\nidle = '1s'\nconnect = '500ms'\n\
         [[host]]\nnames = ['localhost']\norigin = 'http://{origin}'\n"
    )
}

fn config(folder: &tempfile::TempDir, identity: &Identity, text: &str) -> Result<Config, String> {
    let path = folder.path().join("gateway.toml");
    let text = format!(
        "channel = ['embb=127.0.0.1:0,rate=1gbit']\nlisten = ['127.0.0.1:0', '127.0.0.1:0']\n{}",
        text.replace("DIR", folder.path().to_str().unwrap())
    );
    std::fs::write(&path, text).unwrap();
    let overrides = Overrides { identity: Some(identity.clone()), ..Overrides::default() };
    Config::load(Some(&path), &overrides).map_err(|error| error.to_string())
}

/// A client.
pub struct Client {
    pub connection: Connection,
    pub requests: SendRequest<hvq_h3::adapter::OpenStreams, Bytes>,
    driver: JoinHandle<()>,
    _endpoint: Endpoint,
}

/// The certificates that clients trust: those under this chain.
#[derive(Clone)]
pub struct Trust(Vec<u8>);

impl Trust {
    /// The chain, in PEM.
    pub fn pem(&self) -> Vec<u8> {
        self.0.clone()
    }
}

/// A connection to `remote`, which `chain` vouches for.
async fn dial(
    remote: SocketAddr,
    chain: Vec<u8>,
    identity: Option<Identity>,
) -> Result<(Connection, Endpoint), hvq::ConnectionError> {
    let endpoint = Endpoint::client(&[]).unwrap();
    let connection = connect(&endpoint, (remote, "localhost"), chain, identity).await?;
    Ok((connection, endpoint))
}

async fn connect(
    endpoint: &Endpoint,
    (remote, name): (SocketAddr, &str),
    chain: Vec<u8>,
    identity: Option<Identity>,
) -> Result<Connection, hvq::ConnectionError> {
    let mut tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(chain));
    if let Some(identity) = identity {
        tls = tls.identity(identity);
    }
    let config = ClientConfig::new(tls.build().unwrap(), Arc::new(transport()));
    within(endpoint.connect(config, remote, name).unwrap()).await
}

fn transport() -> TransportConfig {
    TransportConfig::new(Arc::new(|| Policy::default().scheduler()))
        .set_handshake_timeout(Duration::from_secs(2))
        .clone()
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.close(0x100, b"");
        self.driver.abort();
    }
}

impl Client {
    async fn connect(remote: SocketAddr, chain: Vec<u8>) -> Result<Self, hvq::ConnectionError> {
        Ok(Self::over(dial(remote, chain, None).await?).await)
    }

    /// A client of an endpoint that it shares.
    pub async fn of(
        endpoint: &Endpoint,
        remote: SocketAddr,
        trust: &Trust,
    ) -> Result<Self, hvq::ConnectionError> {
        let connection = connect(endpoint, (remote, "localhost"), trust.0.clone(), None).await?;
        Ok(Self::over((connection, endpoint.clone())).await)
    }

    async fn over((connection, endpoint): (Connection, Endpoint)) -> Self {
        let (mut driver, requests) =
            h3::client::new(hvq_h3::adapter::Connection::new(connection.clone())).await.unwrap();
        let driver = tokio::spawn(async move { drop(poll_fn(|context| driver.poll_close(context)).await) });
        Self { connection, requests, driver, _endpoint: endpoint }
    }

    /// Sends a request with all of its body.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Stream, StreamError> {
        let (parts, body) = request.into_parts();
        let mut stream = self.requests.clone().send_request(Request::from_parts(parts, ())).await?;
        if !body.is_empty() {
            stream.send_data(body).await?;
        }
        stream.finish().await?;
        Ok(stream)
    }

    /// Sends a request, and receives all of its response.
    pub async fn ask(&self, request: Request<Bytes>) -> Result<(Response<()>, Vec<u8>), StreamError> {
        within(async {
            let mut stream = self.send(request).await?;
            let response = stream.recv_response().await?;
            let body = body(&mut stream).await?;
            Ok((response, body))
        })
        .await
    }

    /// Sends the head of a request whose stream stays open, and receives that of the response: its status, and the stream.
    pub async fn open(&self, request: Request<()>) -> (u16, Stream) {
        within(async {
            let mut stream = self.requests.clone().send_request(request).await.unwrap();
            let status = stream.recv_response().await.unwrap().status().as_u16();
            (status, stream)
        })
        .await
    }

    /// Asks for a tunnel to `to` with `token`.
    pub async fn tunnel(&self, to: &str, token: &str) -> (u16, Stream) {
        self.open(holding(token, Method::CONNECT, to).map(|_| ())).await
    }

    /// The status of the response to a request.
    pub async fn status(&self, request: Request<Bytes>) -> u16 {
        self.ask(request).await.unwrap().0.status().as_u16()
    }
}

/// All of a response's body.
pub async fn body(stream: &mut Stream) -> Result<Vec<u8>, StreamError> {
    let mut all = Vec::new();
    while let Some(mut part) = stream.recv_data().await? {
        all.extend_from_slice(&part.copy_to_bytes(part.remaining()));
    }
    Ok(all)
}

pub fn get(path: &str) -> Request<Bytes> {
    Request::get(format!("https://localhost{path}")).body(Bytes::new()).unwrap()
}

pub fn post(path: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    Request::post(format!("https://localhost{path}")).body(body.into()).unwrap()
}

/// A request for a host and a port, with a token.
pub fn through(method: Method, uri: &str) -> Request<Bytes> {
    holding(TOKEN, method, uri)
}

/// The same with `token`.
fn holding(token: &str, method: Method, uri: &str) -> Request<Bytes> {
    let request =
        Request::builder().method(method).uri(uri).header("proxy-authorization", format!("Bearer {token}"));
    request.body(Bytes::new()).unwrap()
}

/// `length` bytes that are not the same everywhere.
pub fn bytes(length: usize) -> Bytes {
    (0..length).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// An origin whose connections are handled by a function of the test.
pub struct Origin {
    pub address: SocketAddr,
    /// The heads of all requests that came.
    pub heads: Arc<Mutex<Vec<String>>>,
    accepting: JoinHandle<()>,
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A connection at an origin.
pub struct Visit {
    pub stream: TcpStream,
    heads: Arc<Mutex<Vec<String>>>,
    rest: Vec<u8>,
}

impl Visit {
    /// The head of the next request; `None` at the end of the connection.
    pub async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let head: Vec<u8> = self.rest.drain(..end + 4).collect();
                let head = String::from_utf8(head).unwrap();
                self.heads.lock().unwrap().push(head.clone());
                return Some(head);
            }
            let mut part = [0; 16_384];
            match self.stream.read(&mut part).await {
                Ok(count) if count > 0 => self.rest.extend_from_slice(&part[..count]),
                _ => return None,
            }
        }
    }

    /// The next `length` bytes of a body; fewer at the end of the connection.
    pub async fn body(&mut self, length: usize) -> Vec<u8> {
        let mut part = [0; 16_384];
        while self.rest.len() < length {
            match self.stream.read(&mut part).await {
                Ok(count) if count > 0 => self.rest.extend_from_slice(&part[..count]),
                _ => break,
            }
        }
        let length = length.min(self.rest.len());
        self.rest.drain(..length).collect()
    }

    pub async fn write(&mut self, text: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(text.as_ref()).await.is_ok()
    }

    /// Answers with 200 and a body.
    pub async fn ok(&mut self, body: &[u8]) {
        self.ok_with("", body).await;
    }

    /// Answers with 200 and a page.
    pub async fn page(&mut self, page: &str) {
        self.ok_with("content-type: text/html\r\n", page.as_bytes()).await;
    }

    async fn ok_with(&mut self, fields: &str, body: &[u8]) {
        let head = format!("HTTP/1.1 200 OK\r\n{fields}content-length: {}\r\n\r\n", body.len());
        self.write([head.as_bytes(), body].concat()).await;
    }
}

impl Origin {
    /// An origin that has `handle` deal with each connection.
    pub async fn new<F>(handle: impl Fn(Visit) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let known = heads.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(handle(Visit { stream, heads: known.clone(), rest: Vec::new() }));
            }
        });
        Self { address, heads, accepting }
    }

    /// An origin that answers every request with the length of its path, and goes on.
    pub async fn plain() -> Self {
        Self::new(|mut visit| async move {
            while let Some(head) = visit.head().await {
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                visit.ok(path.as_bytes()).await;
            }
        })
        .await
    }

    /// The heads of all requests that came, in lower case.
    pub fn seen(&self) -> Vec<String> {
        self.heads.lock().unwrap().iter().map(|head| head.to_lowercase()).collect()
    }
}

/// The length of the body that a request announces.
pub fn length(head: &str) -> Option<usize> {
    let line = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    line.trim().parse().ok()
}

/// The code of the reset that ended `result`.
pub fn code<T: std::fmt::Debug>(result: Result<T, StreamError>) -> u64 {
    match result {
        Err(StreamError::RemoteTerminate { code, .. }) => code.value(),
        other => panic!("the stream was not reset: {other:?}"),
    }
}
