//! Clients over TLS: one that speaks HTTP/2, and one that writes what it likes.

use crate::setup::{Fixture, within};
use boring::ssl::{SslConnector, SslMethod, SslVersion};
use boring::x509::X509;
use boring::x509::store::X509StoreBuilder;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_boring::SslStream;

/// A connection over TLS.
pub struct TlsClient {
    pub stream: SslStream<TcpStream>,
}

impl TlsClient {
    /// Connects to the gateway, offering the protocols of `alpn` as TLS encodes them.
    pub async fn connect(place: &Fixture, alpn: &[u8]) -> Self {
        Self::try_connect(place, alpn, None).await.unwrap()
    }

    /// Connects with `newest` as the newest version of TLS.
    pub async fn try_connect(
        place: &Fixture,
        alpn: &[u8],
        newest: Option<SslVersion>,
    ) -> Result<Self, String> {
        let stream = TcpStream::connect(place.gateway.tcp_addrs()[0]).await.unwrap();
        shake(stream, &place.trust().pem(), (alpn, newest, "localhost")).await
    }

    /// Connects for the host `name`, whose certificate goes back to one in `trust`.
    pub async fn for_host(place: &Fixture, name: &str, trust: &[u8], alpn: &[u8]) -> Result<Self, String> {
        let stream = TcpStream::connect(place.gateway.tcp_addrs()[0]).await.unwrap();
        shake(stream, trust, (alpn, None, name)).await
    }

    /// Connects to `remote` from the address `local`.
    pub async fn from(place: &Fixture, local: IpAddr, alpn: &[u8]) -> Result<Self, String> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(local, 0)).unwrap();
        let stream = socket.connect(place.gateway.tcp_addrs()[0]).await.map_err(|error| error.to_string())?;
        shake(stream, &place.trust().pem(), (alpn, None, "localhost")).await
    }
}

async fn shake(
    stream: TcpStream,
    trust: &[u8],
    (alpn, newest, name): (&[u8], Option<SslVersion>, &str),
) -> Result<TlsClient, String> {
    let mut builder = SslConnector::builder(SslMethod::tls()).unwrap();
    let mut store = X509StoreBuilder::new().unwrap();
    for certificate in X509::stack_from_pem(trust).unwrap() {
        store.add_cert(certificate).unwrap();
    }
    builder.set_cert_store_builder(store);
    builder.set_alpn_protos(alpn).unwrap();
    builder.set_max_proto_version(newest).unwrap();
    let session = builder.build().configure().unwrap();
    let stream = within(tokio_boring::connect(session, name, stream)).await;
    stream.map(|stream| TlsClient { stream }).map_err(|error| error.to_string())
}

/// Writes `request` as HTTP/1.1, and reads all that comes until the connection ends, which `connection: close` asks for unless
/// there is another reason.
pub async fn exchange(place: &Fixture, request: &str) -> String {
    exchange_over(TlsClient::connect(place, b"\x08http/1.1").await, request).await
}

/// Does what [`exchange`] does over `client`, which speaks HTTP/1.1.
pub async fn exchange_over(client: TlsClient, request: &str) -> String {
    let mut stream = client.stream;
    let request = request.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    within(async {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // A connection that is cut has no orderly end.
        let _cut = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).unwrap()
    })
    .await
}

/// A client of HTTP/2.
pub struct Http2(SendRequest<Full<Bytes>>);

impl Http2 {
    pub async fn connect(place: &Fixture) -> Self {
        Self::over(TlsClient::connect(place, b"\x02h2").await).await
    }

    /// Speaks HTTP/2 over `client`.
    pub async fn over(client: TlsClient) -> Self {
        let stream = client.stream;
        assert_eq!(stream.ssl().selected_alpn_protocol(), Some(&b"h2"[..]));
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends a request, and receives all of its response.
    pub async fn ask(&self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, hyper::Error> {
        let mut sender = self.0.clone();
        within(async move {
            let (parts, body) = sender.send_request(request).await?.into_parts();
            Ok(Response::from_parts(parts, body.collect().await?.to_bytes()))
        })
        .await
    }
}
