//! WebSockets over each protocol to origins, with tungstenite at both ends.

use crate::operation::ask_admin;
use crate::setup::{Fixture, Origin, bytes, to, within};
use crate::tls::{TlsClient, exchange};
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::{Method, Request, Response, StatusCode};
use http_body_util::Empty;
use hvq::{ClientConfig, ClientTls, Endpoint, Policy, TransportConfig, Verify};
use hvq_h3::client::Client;
use hvq_h3::{Receiving, Sending, Settings};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::server::{
    ErrorResponse, Request as Asked, Response as Answer,
};
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};

/// An origin that says each message again, as often as it comes, and speaks the protocol `chat`; `/no` is refused.
struct Echo {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

#[expect(clippy::result_large_err, reason = "the signature is tungstenite's")]
fn greet(asked: &Asked, mut answer: Answer) -> Result<Answer, ErrorResponse> {
    if asked.uri().path() == "/no" {
        let refused = Response::builder().status(StatusCode::FORBIDDEN).header("x-why", "no");
        return Err(refused.body(Some("not here".to_owned())).unwrap());
    }
    if let Some(protocol) = asked.headers().get("sec-websocket-protocol") {
        answer.headers_mut().insert("sec-websocket-protocol", protocol.clone());
    }
    answer.headers_mut().insert("x-forwarded", asked.headers()["x-forwarded-proto"].clone());
    Ok(answer)
}

impl Echo {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, greet).await else {
                        return;
                    };
                    while let Some(Ok(message)) = socket.next().await {
                        if message.is_text() || message.is_binary() {
                            socket.send(message).await.unwrap();
                        }
                    }
                });
            }
        });
        Self { address, accepting }
    }

    /// A gateway in front of it, over UDP and TCP.
    async fn place(&self, more: &str) -> Fixture {
        let text =
            format!("admin = '127.0.0.1:0'\n{more}[tcp]\nlisten = ['127.0.0.1:0']\n{}", to(self.address));
        // A busy machine makes pauses.
        Fixture::new(&text.replace("idle = '1s'", "idle = '30s'")).await
    }
}

/// Says something on `socket`, hears it again, and closes it in order.
async fn converse<S: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<S>) {
    within(async {
        for message in [Message::text("hello"), Message::binary(bytes(300_000)), Message::text("")] {
            socket.send(message.clone()).await.unwrap();
            assert!(socket.next().await.unwrap().unwrap() == message);
        }
        socket.send(Message::Ping(Bytes::from_static(b"there?"))).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::Pong(Bytes::from_static(b"there?")));
        socket.close(None).await.unwrap();
        assert!(matches!(socket.next().await, Some(Ok(Message::Close(_)))));
        assert!(socket.next().await.is_none_or(|end| matches!(end, Err(Error::ConnectionClosed))));
    })
    .await;
}

fn request(path: &str) -> Request<()> {
    let uri = format!("https://localhost{path}");
    let request = Request::builder().method(Method::CONNECT).uri(uri);
    request.header("sec-websocket-version", "13").header("sec-websocket-protocol", "chat").body(()).unwrap()
}

/// Opens a WebSocket over HTTP/1.1.
async fn over_http1(
    place: &Fixture,
    path: &str,
) -> Result<WebSocketStream<tokio_boring::SslStream<tokio::net::TcpStream>>, Error> {
    let stream = TlsClient::connect(place, b"\x08http/1.1").await.stream;
    let opened = within(tokio_tungstenite::client_async(format!("wss://localhost{path}"), stream)).await;
    let (socket, answer) = opened?;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["x-forwarded"]),
        (101, &"https".parse().unwrap())
    );
    Ok(socket)
}

/// Opens a WebSocket over HTTP/2; returns the answer, and the socket if there is one.
async fn over_http2(
    place: &Fixture,
    path: &str,
) -> (Response<()>, Option<WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>>) {
    let stream = TlsClient::connect(place, b"\x02h2").await.stream;
    let (mut sender, connection) =
        http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    // RFC 8441 §3: not before the setting came.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut asked = request(path).map(|()| Empty::new());
    asked.extensions_mut().insert(hyper::ext::Protocol::from_static("websocket"));
    let answer = within(sender.send_request(asked)).await.unwrap();
    let head = {
        let mut head = Response::new(());
        (*head.status_mut(), *head.headers_mut()) = (answer.status(), answer.headers().clone());
        head
    };
    if head.status() != 200 {
        return (head, None);
    }
    let upgraded = within(hyper::upgrade::on(answer)).await.unwrap();
    // The sender keeps the connection.
    std::mem::forget(sender);
    (head, Some(WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await))
}

/// A client of HTTP/3.
struct Http3 {
    client: Client,
    _endpoint: Endpoint,
}

impl Http3 {
    async fn new(place: &Fixture) -> Self {
        let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(place.trust().pem()));
        let transport = Arc::new(TransportConfig::new(Arc::new(|| Policy::default().scheduler())));
        let (endpoint, remote) = (Endpoint::client(&[]).unwrap(), place.gateway.local_addrs()[0]);
        let connecting =
            endpoint.connect(ClientConfig::new(tls.build().unwrap(), transport), remote, "localhost");
        let connection = within(connecting.unwrap()).await.unwrap();
        let client = Client::new(connection, Settings::default()).await.unwrap();
        tokio::spawn(client.watch());
        Self { client, _endpoint: endpoint }
    }

    /// Opens a WebSocket; the answer, and the socket if there is one.
    async fn open(&self, path: &str) -> (Response<()>, Option<WebSocketStream<DuplexStream>>) {
        let (answer, sending, receiving) =
            within(self.client.tunnel(&request(path), "websocket")).await.unwrap();
        if answer.status() != 200 {
            return (answer, None);
        }
        (answer, Some(WebSocketStream::from_raw_socket(joined(sending, receiving), Role::Client, None).await))
    }
}

/// The halves of a stream of HTTP/3 as one that is read and written.
fn joined(mut sending: Sending, mut receiving: Receiving) -> DuplexStream {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (mut read, mut write) = tokio::io::split(far);
    tokio::spawn(async move {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = read.read(&mut buffer).await {
            sending.data(Bytes::copy_from_slice(&buffer[..length])).await.unwrap();
        }
        let _gone = sending.finish().await;
    });
    tokio::spawn(async move {
        while let Ok(Some(data)) = poll_fn(|context| receiving.poll_data(context)).await {
            write.write_all(&data).await.unwrap();
        }
        let _gone = write.shutdown().await;
    });
    near
}

async fn metric(place: &Fixture, line: &str) -> bool {
    ask_admin(place.gateway.admin_addr().unwrap(), "/metrics", "localhost").await.contains(line)
}

/// Waits until no WebSocket is open.
async fn none_open(place: &Fixture) {
    within(async {
        while !metric(place, "hvq_gateway_websockets 0\n").await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_websocket_is_the_same_over_each_protocol() {
    let echo = Echo::new().await;
    let place = echo.place("").await;
    converse(over_http1(&place, "/").await.unwrap()).await;
    let (answer, socket) = over_http2(&place, "/").await;
    assert_eq!(answer.headers()["sec-websocket-protocol"], "chat");
    assert!(!answer.headers().contains_key("sec-websocket-accept"), "RFC 8441 §5");
    converse(socket.unwrap()).await;
    let http3 = Http3::new(&place).await;
    let (answer, socket) = http3.open("/").await;
    assert_eq!(answer.headers()["sec-websocket-protocol"], "chat");
    assert!(
        !answer.headers().contains_key("sec-websocket-accept") && !answer.headers().contains_key("upgrade")
    );
    converse(socket.unwrap()).await;
    none_open(&place).await;
    assert!(metric(&place, "hvq_gateway_websockets_total 3\n").await);
}

#[tokio::test]
async fn a_refusal_of_the_origin_reaches_the_client_and_nothing_else_looks_like_a_websocket() {
    let echo = Echo::new().await;
    let place = echo.place("").await;
    match over_http1(&place, "/no").await {
        Err(Error::Http(answer)) => {
            assert_eq!((answer.status().as_u16(), &answer.headers()["x-why"]), (403, &"no".parse().unwrap()))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(over_http2(&place, "/no").await.0.status(), 403);
    assert_eq!(Http3::new(&place).await.open("/no").await.0.status(), 403);
    // An origin that answers 200, and one that proves nothing.
    let plain = Origin::plain().await;
    let liar = Origin::new(|mut visit| async move {
        visit.head().await;
        visit.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\n").await;
        tokio::time::sleep(Duration::from_secs(5)).await;
    })
    .await;
    for origin in [plain.address, liar.address] {
        let place = Fixture::new(&format!("[tcp]\nlisten = ['127.0.0.1:0']\n{}", to(origin))).await;
        assert!(matches!(over_http1(&place, "/").await, Err(Error::Http(answer)) if answer.status() == 502));
        assert_eq!(over_http2(&place, "/").await.0.status(), 502);
        assert_eq!(Http3::new(&place).await.open("/").await.0.status(), 502);
    }
    // Folders have none, and a key is needed.
    let text = "[tcp]\nlisten = ['127.0.0.1:0']\n[[host]]\nnames = ['localhost']\nfiles = 'DIR'\n";
    let files = Fixture::new(text).await;
    assert!(
        matches!(over_http1(&files, "/tokens").await, Err(Error::Http(answer)) if answer.status() == 501)
    );
    let keyless = "GET /tokens HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n\r\n";
    assert!(exchange(&files, keyless).await.starts_with("HTTP/1.1 200 "), "as if nothing had been said");
}

#[tokio::test]
async fn silence_and_the_number_of_tunnels_are_limits() {
    // I19.
    let echo = Echo::new().await;
    let text = format!(
        "admin = '127.0.0.1:0'\nlimits.tunnels = 2\n[tcp]\nlisten = ['127.0.0.1:0']\n{}",
        to(echo.address)
    );
    let place = Fixture::new(&text.replace("[timeouts]\n", "[timeouts]\ntunnel = '1s'\n")).await;
    let http3 = Http3::new(&place).await;
    let start = Instant::now();
    let (mut first, mut second) = (over_http1(&place, "/").await.unwrap(), http3.open("/").await.1.unwrap());
    assert_eq!(http3.open("/").await.0.status(), 503, "there are two");
    assert_eq!(over_http2(&place, "/").await.0.status(), 503);
    let ended = within(async { (first.next().await, second.next().await) }).await;
    assert!(ended.0.is_none_or(|end| end.is_err()) && ended.1.is_none_or(|end| end.is_err()));
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
    none_open(&place).await;
    converse(http3.open("/").await.1.unwrap()).await;
}

#[tokio::test]
async fn an_origin_that_goes_ends_the_websocket_and_each_direction_ends_by_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Answers once the client has said all.
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut stream = tokio_tungstenite::accept_async(stream).await.unwrap().into_inner();
                let mut all = Vec::new();
                stream.read_to_end(&mut all).await.unwrap();
                stream.write_all(&all).await.unwrap();
            });
        }
    });
    let place = Fixture::new(&format!("[tcp]\nlisten = ['127.0.0.1:0']\n{}", to(address))).await;
    async fn halves(mut stream: impl AsyncRead + AsyncWrite + Unpin, way: &str) {
        within(async {
            stream.write_all(b"all that there is").await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            assert_eq!(answer, b"all that there is", "{way}");
        })
        .await;
    }
    let stream = TlsClient::connect(&place, b"\x08http/1.1").await.stream;
    let opened = within(tokio_tungstenite::client_async("wss://localhost/", stream)).await;
    halves(opened.unwrap().0.into_inner(), "HTTP/1.1").await;
    halves(over_http2(&place, "/").await.1.unwrap().into_inner(), "HTTP/2").await;
    let http3 = Http3::new(&place).await;
    halves(http3.open("/").await.1.unwrap().into_inner(), "HTTP/3").await;
    serving.abort();
}

#[tokio::test]
async fn websockets_go_on_while_the_gateway_drains_and_end_with_its_patience() {
    let echo = Echo::new().await;
    let place = echo.place("drain = '2s'\n").await;
    let http3 = Http3::new(&place).await;
    let mut first = over_http1(&place, "/").await.unwrap();
    let mut second = over_http2(&place, "/").await.1.unwrap();
    let mut third = http3.open("/").await.1.unwrap();
    let start = Instant::now();
    let Fixture { gateway, folder, .. } = place;
    let stopping = tokio::spawn(gateway.stop());
    tokio::time::sleep(Duration::from_millis(500)).await;
    let hello = Message::text("still there");
    within(async {
        first.send(hello.clone()).await.unwrap();
        assert_eq!(first.next().await.unwrap().unwrap(), hello, "HTTP/1.1");
        second.send(hello.clone()).await.unwrap();
        assert_eq!(second.next().await.unwrap().unwrap(), hello, "HTTP/2");
        third.send(hello.clone()).await.unwrap();
        assert_eq!(third.next().await.unwrap().unwrap(), hello, "HTTP/3");
        assert!(first.next().await.is_none_or(|end| end.is_err()));
        assert!(second.next().await.is_none_or(|end| end.is_err()));
        assert!(third.next().await.is_none_or(|end| end.is_err()));
        assert!(start.elapsed() >= Duration::from_millis(1_900), "{:?}", start.elapsed());
        stopping.await.unwrap();
    })
    .await;
    drop(folder);
}
