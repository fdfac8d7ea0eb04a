//! Programs for quinn over hvq-quinn, over the sockets of this machine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use bytes::Bytes;
use hvq_quinn as quinn;
use quinn::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::rustls::{self, RootCertStore, ServerCertVerifier};
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, ReadError, ServerConfig, TransportConfig, VarInt,
};
use std::future::Future;
use std::net::{SocketAddr, UdpSocket};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Longer than any test takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A certificate for `localhost` that vouches for itself, and its key.
struct Pki {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Pki {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Self { certificate: made.cert.der().clone(), key: made.signing_key.serialize_der() }
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone()).into()
    }

    fn server(&self) -> ServerConfig {
        ServerConfig::with_single_cert(vec![self.certificate.clone()], self.key()).unwrap()
    }

    fn client(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        ClientConfig::with_root_certificates(Arc::new(roots)).unwrap()
    }
}

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn code(code: u32) -> VarInt {
    VarInt::from_u32(code)
}

/// A client, a server that is its own default, and their connection.
struct Pair {
    client: Endpoint,
    server: Endpoint,
    near: Connection,
    far: Connection,
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

fn ends(pki: &Pki, server: ServerConfig) -> (Endpoint, Endpoint) {
    let server = Endpoint::server(server, loopback()).unwrap();
    let mut client = Endpoint::client(loopback()).unwrap();
    client.set_default_client_config(pki.client());
    (client, server)
}

async fn pair_with(server: impl FnOnce(&mut TransportConfig)) -> Pair {
    let pki = Pki::new();
    let mut config = pki.server();
    server(Arc::get_mut(&mut config.transport).unwrap());
    let (client, server) = ends(&pki, config);
    let connecting = client.connect(server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (near, far) = within(async { tokio::join!(connecting, accepting) }).await;
    Pair { near: near.unwrap(), far: far.unwrap(), client, server }
}

async fn pair() -> Pair {
    pair_with(|_| {}).await
}

/// The result of a future that has one now.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[tokio::test]
async fn files_are_asked_for_over_http_0_9_with_a_protocol_that_both_name() {
    let pki = Pki::new();
    let builder = rustls::ServerConfig::builder().with_no_client_auth();
    let mut crypto = builder.with_single_cert(vec![pki.certificate.clone()], pki.key()).unwrap();
    crypto.alpn_protocols = vec![b"hq-29".to_vec()];
    let server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(crypto).unwrap()));
    let server = Endpoint::server(server, loopback()).unwrap();
    let address = server.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        let connection = server.accept().await.unwrap().await.unwrap();
        let data = connection.handshake_data().unwrap().downcast::<HandshakeData>().unwrap();
        assert_eq!(
            (data.protocol.as_deref(), data.server_name.as_deref()),
            (Some(&b"hq-29"[..]), Some("localhost"))
        );
        let (mut send, mut receive) = connection.accept_bi().await.unwrap();
        assert_eq!(receive.read_to_end(1_000).await.unwrap(), b"GET /file\r\n");
        send.write_all(b"a file").await.unwrap();
        send.finish().unwrap();
        connection.closed().await
    });
    let mut roots = RootCertStore::empty();
    roots.add(pki.certificate.clone()).unwrap();
    let mut crypto = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    crypto.alpn_protocols = vec![b"h3".to_vec(), b"hq-29".to_vec()];
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(crypto).unwrap()));
    let client = Endpoint::client(loopback()).unwrap();
    let connection = within(client.connect_with(config, address, "localhost").unwrap()).await.unwrap();
    let identity = connection.peer_identity().unwrap().downcast::<Vec<CertificateDer<'static>>>().unwrap();
    assert_eq!(*identity, std::slice::from_ref(&pki.certificate));
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(b"GET /file\r\n").await.unwrap();
    send.finish().unwrap();
    assert_eq!(within(receive.read_to_end(1_000)).await.unwrap(), b"a file");
    connection.close(code(7), b"done");
    assert_eq!(connection.close_reason(), Some(ConnectionError::LocallyClosed));
    let ended = within(serving).await.unwrap();
    assert!(
        matches!(ended, ConnectionError::ApplicationClosed(close) if close.error_code == code(7) && close.reason == "done")
    );
    within(client.wait_idle()).await;
}

#[tokio::test]
async fn one_socket_reaches_several_servers_whose_certificates_have_the_same_name() {
    let (first, second) = (Pki::new(), Pki::new());
    let mut roots = RootCertStore::empty();
    roots.add(first.certificate.clone()).unwrap();
    roots.add(second.certificate.clone()).unwrap();
    let mut client = Endpoint::client(loopback()).unwrap();
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots)).unwrap());
    let local = client.local_addr().unwrap();
    for pki in [&first, &second] {
        let server = Endpoint::server(pki.server(), loopback()).unwrap();
        let connecting = client.connect(server.local_addr().unwrap(), "localhost").unwrap();
        let accepting = async { server.accept().await.unwrap().await };
        let (near, far) = within(async { tokio::join!(connecting, accepting) }).await;
        near.unwrap();
        assert_eq!(far.unwrap().remote_address(), local);
    }
    let other = Pki::new();
    let server = Endpoint::server(other.server(), loopback()).unwrap();
    let connecting = client.connect(server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (near, _far) = within(async { tokio::join!(connecting, accepting) }).await;
    assert!(matches!(near, Err(ConnectionError::TransportError(_))), "nobody trusts it: {near:?}");
}

/// Trusts the servers with one certificate, whatever it says.
#[derive(Debug)]
struct Pinned(CertificateDer<'static>);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        name: &str,
    ) -> Result<(), rustls::Error> {
        assert_eq!(name, "another.name");
        if *own == self.0 { Ok(()) } else { Err(rustls::Error::General("not pinned".to_owned())) }
    }
}

#[tokio::test]
async fn a_program_judges_certificates_itself() {
    let (pki, other) = (Pki::new(), Pki::new());
    let server = Endpoint::server(pki.server(), loopback()).unwrap();
    let client = Endpoint::client(loopback()).unwrap();
    for (pinned, is_trusted) in [(&pki, true), (&other, false)] {
        let judge = Arc::new(Pinned(pinned.certificate.clone()));
        let builder = rustls::ClientConfig::builder().dangerous().with_custom_certificate_verifier(judge);
        let crypto = QuicClientConfig::try_from(builder.with_no_client_auth()).unwrap();
        let config = ClientConfig::new(Arc::new(crypto));
        let connecting = client.connect_with(config, server.local_addr().unwrap(), "another.name").unwrap();
        let accepting = async { server.accept().await.unwrap().await };
        let (near, _far) = within(async { tokio::join!(connecting, accepting) }).await;
        assert_eq!(near.is_ok(), is_trusted);
    }
}

#[tokio::test]
async fn a_server_accepts_asks_for_a_proof_refuses_and_ignores() {
    let pki = Pki::new();
    let (client, server) = ends(&pki, pki.server());
    let address = server.local_addr().unwrap();
    let proving = async {
        let incoming = server.accept().await.unwrap();
        assert!(!incoming.remote_address_validated() && incoming.may_retry());
        assert_eq!(incoming.remote_address(), client.local_addr().unwrap());
        incoming.retry().unwrap();
        let incoming = server.accept().await.unwrap();
        assert!(incoming.remote_address_validated());
        let incoming = incoming.retry().expect_err("it has proved it").into_incoming();
        let mut config = pki.server();
        let mut transport = TransportConfig::default();
        transport.max_concurrent_bidi_streams(code(0));
        config.transport_config(Arc::new(transport));
        incoming.accept_with(Arc::new(config)).unwrap().await.unwrap()
    };
    let connecting = client.connect(address, "localhost").unwrap();
    let (near, far) = within(async { tokio::join!(connecting, proving) }).await;
    let near = near.unwrap();
    assert!(now(near.open_bi()).is_none(), "the configuration of this client permits none");
    far.set_max_concurrent_bi_streams(code(1));
    within(near.open_bi()).await.unwrap();

    for refuse in [true, false] {
        let connecting = client.connect(address, "localhost").unwrap();
        let turning_away = async {
            let incoming = server.accept().await.unwrap();
            if refuse { incoming.refuse() } else { drop(incoming) }
        };
        let (refused, ()) = within(async { tokio::join!(connecting, turning_away) }).await;
        let refused = refused.expect_err("refused");
        assert!(
            matches!(&refused, ConnectionError::ConnectionClosed(close) if u64::from(close.error_code) == 2),
            "{refused}"
        );
    }

    let mut impatient = TransportConfig::default();
    impatient.max_idle_timeout(Some(Duration::from_millis(300).try_into().unwrap()));
    let mut config = pki.client();
    config.transport_config(Arc::new(impatient));
    let connecting = client.connect_with(config, address, "localhost").unwrap();
    let ignoring = async { server.accept().await.unwrap().ignore() };
    let (ignored, ()) = within(async { tokio::join!(connecting, ignoring) }).await;
    assert_eq!(ignored.expect_err("nobody answers"), ConnectionError::TimedOut);
}

#[tokio::test]
async fn streams_are_read_in_any_order_and_not_in_order_after_that() {
    let pair = pair().await;
    let mut send = pair.near.open_uni().await.unwrap();
    let data: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
    let writing = async {
        send.write_all_chunks(&mut [Bytes::from(data.clone())]).await.unwrap();
        send.finish().unwrap();
    };
    let reading = async {
        let mut receive = pair.far.accept_uni().await.unwrap();
        let first = receive.read_chunk(10, true).await.unwrap().unwrap();
        assert_eq!((first.offset, &first.bytes[..]), (0, &data[..10]));
        let (mut got, mut total) = (vec![None; data.len()], 10);
        while let Some(chunk) = receive.read_chunk(5_000, false).await.unwrap() {
            for (place, byte) in got[chunk.offset as usize..].iter_mut().zip(&chunk.bytes) {
                assert_eq!(place.replace(*byte), None, "read once");
            }
            total += chunk.bytes.len();
            if total < 50_000 {
                let refused = receive.read_chunk(1, true).await;
                assert_eq!(refused, Err(ReadError::IllegalOrderedRead));
            }
        }
        assert_eq!(total, data.len());
        assert!(got[10..].iter().zip(&data[10..]).all(|(got, sent)| *got == Some(*sent)));
    };
    within(async { tokio::join!(writing, reading) }).await;
}

#[tokio::test]
async fn the_end_of_a_stream_is_known_beside_writes_and_after_the_stream_is_dropped() {
    let pair = pair().await;
    let mut send = pair.near.open_uni().await.unwrap();
    let stopped = send.stopped();
    let also = tokio::spawn(send.stopped());
    send.write_all(b"hello").await.unwrap();
    let mut receive = within(pair.far.accept_uni()).await.unwrap();
    let mut buffer = [0; 5];
    receive.read_exact(&mut buffer).await.unwrap();
    receive.stop(code(42)).unwrap();
    assert!(receive.stop(code(43)).is_err());
    drop(send);
    assert_eq!(within(stopped).await, Ok(Some(code(42))));
    assert_eq!(within(also).await.unwrap(), Ok(Some(code(42))));

    let send = pair.near.open_uni().await.unwrap();
    let whole = send.stopped();
    drop(send);
    assert_eq!(within(whole).await, Ok(None));
}

#[tokio::test]
async fn datagrams_wait_for_room_where_others_would_give_way() {
    let pki = Pki::new();
    let (client, server) = ends(&pki, pki.server());
    let mut transport = TransportConfig::default();
    transport.datagram_send_buffer_size(3_000);
    let mut config = pki.client();
    config.transport_config(Arc::new(transport));
    let connecting = client.connect_with(config, server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (near, far) = within(async { tokio::join!(connecting, accepting) }).await;
    let (near, far) = (near.unwrap(), far.unwrap());
    assert!(near.datagram_send_buffer_space() <= 3_000);
    let size = near.max_datagram_size().unwrap();
    let sending = async {
        for number in 0..100_u8 {
            let datagram = Bytes::from(vec![number; size.min(1_000)]);
            near.send_datagram_wait(datagram).await.unwrap();
        }
    };
    let reading = async {
        for number in 0..100_u8 {
            assert_eq!(far.read_datagram().await.unwrap()[0], number);
        }
    };
    within(async { tokio::join!(sending, reading) }).await;
    assert_eq!(near.hvq().stats().datagrams.displaced, 0);
}

#[tokio::test]
async fn both_ends_export_the_same_keying_material() {
    let pair = pair().await;
    // A server may not have heard of the end of the handshake yet.
    let mut send = pair.near.open_uni().await.unwrap();
    send.finish().unwrap();
    within(pair.far.accept_uni()).await.unwrap();
    let (mut near, mut far) = ([0; 32], [0; 32]);
    pair.near.export_keying_material(&mut near, b"label", b"context").unwrap();
    pair.far.export_keying_material(&mut far, b"label", b"context").unwrap();
    assert_eq!(near, far);
    pair.far.export_keying_material(&mut far, b"label", b"").unwrap();
    assert_ne!(near, far);
}

#[tokio::test]
async fn closing_tells_readers_at_once_and_a_client_moves_to_another_socket() {
    let pair = pair().await;
    let before = pair.client.local_addr().unwrap();
    // The handshake is confirmed when the server's first data arrives.
    let mut hello = pair.far.open_uni().await.unwrap();
    hello.write_all(b"hello").await.unwrap();
    within(pair.near.accept_uni()).await.unwrap();
    pair.client.rebind(UdpSocket::bind(loopback()).unwrap()).unwrap();
    let after = pair.client.local_addr().unwrap();
    assert_ne!(before, after);
    let mut send = pair.near.open_uni().await.unwrap();
    send.write_all(b"from elsewhere").await.unwrap();
    let mut receive = within(pair.far.accept_uni()).await.unwrap();
    let mut buffer = [0; 14];
    within(receive.read_exact(&mut buffer)).await.unwrap();
    let moved = async {
        while pair.far.remote_address() != after {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(moved).await;
    pair.far.close(code(1), b"");
    let lost = now(receive.read(&mut buffer)).expect("known at once");
    assert_eq!(lost, Err(ReadError::ConnectionLost(ConnectionError::LocallyClosed)));
    assert_eq!(pair.server.open_connections(), 1, "it still tells the peer");
}

#[tokio::test]
async fn a_connection_takes_a_second_path() {
    let pki = Pki::new();
    let second: SocketAddr = ([127, 0, 0, 2], 0).into();
    let server = Endpoint::server_on(pki.server(), &[loopback(), second]).unwrap();
    let addresses = server.hvq().local_addrs();
    let mut client = Endpoint::client(loopback()).unwrap();
    client.set_default_client_config(pki.client());
    let connecting = client.connect(addresses[0], "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (near, far) = within(async { tokio::join!(connecting, accepting) }).await;
    let (near, _far) = (near.unwrap(), far.unwrap());
    let local: hvq::LocalAddress = "127.0.0.2".parse().unwrap();
    within(near.hvq().open_path(hvq::PathOptions::new("second", local).to(addresses[1]))).await.unwrap();
    assert_eq!(near.hvq().paths().len(), 2);
}
