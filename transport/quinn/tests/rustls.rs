//! Programs for quinn that bring configurations of the crate rustls.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use hvq_quinn as quinn;
use quinn::congestion::BbrConfig;
use quinn::crypto::rustls::{HandshakeData, NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, ConnectionError, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig,
    ServerConfig, TransportConfig, VarInt,
};
use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::future::Future;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than any test takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// A resolver of the program, which notes the names that it is asked for.
#[derive(Debug)]
struct Resolver {
    key: Arc<CertifiedKey>,
    asked: Mutex<Vec<String>>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.asked.lock().unwrap().extend(hello.server_name().map(str::to_owned));
        Some(Arc::clone(&self.key))
    }
}

/// A certificate for `localhost`, and who shows it.
struct Pki {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
    resolver: Arc<Resolver>,
}

impl Pki {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.der().clone(), made.signing_key.serialize_der());
        let signer = ring::sign::any_supported_type(&private(&key)).unwrap();
        let own = Arc::new(CertifiedKey::new(vec![certificate.clone()], signer));
        let resolver = Arc::new(Resolver { key: own, asked: Mutex::default() });
        Self { certificate, key, resolver }
    }

    fn server(&self) -> rustls::ServerConfig {
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&self.resolver) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"moq-lite-04".to_vec(), b"h3".to_vec()];
        config
    }

    fn client(&self) -> rustls::ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut config = trusting(roots);
        config.alpn_protocols = vec![b"h3".to_vec()];
        config
    }
}

fn private(key: &[u8]) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(key.to_vec()).into()
}

fn trusting(roots: RootCertStore) -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

fn serving(config: rustls::ServerConfig) -> ServerConfig {
    let tls: QuicServerConfig = config.try_into().unwrap();
    ServerConfig::with_crypto(Arc::new(tls))
}

fn asking(config: rustls::ClientConfig) -> ClientConfig {
    let tls: QuicClientConfig = config.try_into().unwrap();
    let mut config = ClientConfig::new(Arc::new(tls));
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
    config.transport_config(Arc::new(transport));
    config
}

#[tokio::test]
async fn rustls_shakes_hands_and_the_connection_takes_a_second_path() {
    let pki = Pki::new();
    let second = UdpSocket::bind("127.0.0.2:0").unwrap();
    let server = Endpoint::server(serving(pki.server()), loopback()).unwrap();
    let further = server.hvq().add_socket(second).unwrap();
    let client = Endpoint::client(loopback()).unwrap();
    let near = client.connect_with(asking(pki.client()), server.local_addr().unwrap(), "localhost").unwrap();
    let (near, far) =
        within(async { tokio::join!(near, async { server.accept().await.unwrap().await }) }).await;
    let (near, far) = (near.unwrap(), far.unwrap());

    assert_eq!(*pki.resolver.asked.lock().unwrap(), ["localhost"], "the resolver of the program was asked");
    let data = far.handshake_data().unwrap().downcast::<HandshakeData>().unwrap();
    assert_eq!((data.protocol.unwrap(), data.server_name.unwrap()), (b"h3".to_vec(), "localhost".to_owned()));
    let chain = near.peer_identity().unwrap().downcast::<Vec<CertificateDer<'static>>>().unwrap();
    assert_eq!(*chain, std::slice::from_ref(&pki.certificate));
    let (mut one, mut other) = ([0; 16], [1; 16]);
    near.export_keying_material(&mut one, b"label", b"context").unwrap();
    far.export_keying_material(&mut other, b"label", b"context").unwrap();
    assert_eq!(one, other);

    let local: hvq::LocalAddress = "127.0.0.2".parse().unwrap();
    within(near.hvq().open_path(hvq::PathOptions::new("second", local).to(further))).await.unwrap();
    near.force_key_update();
    let (send, mut receive) = within(near.open_bi()).await.unwrap();
    send.set_priority(2).unwrap();
    let mut send = send;
    let sent = tokio::spawn(async move {
        send.write_all(&vec![7; 1_000_000]).await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.priority().unwrap(), 2);
    });
    let (mut answer, mut request) = within(far.accept_bi()).await.unwrap();
    assert_eq!(within(request.read_to_end(2_000_000)).await.unwrap().len(), 1_000_000);
    answer.write_all(b"thanks").await.unwrap();
    answer.finish().unwrap();
    assert_eq!(within(receive.read_to_end(100)).await.unwrap(), b"thanks");
    within(sent).await.unwrap();
    assert_eq!(near.hvq().stats().paths.len(), 2);
}

#[tokio::test]
async fn a_certificate_that_rustls_does_not_trust_ends_the_connection_with_its_alert() {
    let (pki, other) = (Pki::new(), Pki::new());
    let server = Endpoint::server(serving(pki.server()), loopback()).unwrap();
    let client = Endpoint::client(loopback()).unwrap();
    let near =
        client.connect_with(asking(other.client()), server.local_addr().unwrap(), "localhost").unwrap();
    let (near, far) =
        within(async { tokio::join!(near, async { server.accept().await.unwrap().await }) }).await;
    let ConnectionError::TransportError(error) = near.unwrap_err() else { panic!("the client refuses") };
    assert!((0x100..0x200).contains(&u64::from(error.code)), "{error}");
    let ConnectionError::ConnectionClosed(told) = far.unwrap_err() else { panic!("the server is told") };
    assert_eq!(told.error_code, error.code);
}

#[tokio::test]
async fn no_protocol_in_common_ends_the_handshake() {
    let pki = Pki::new();
    let server = Endpoint::server(serving(pki.server()), loopback()).unwrap();
    let client = Endpoint::client(loopback()).unwrap();
    let mut config = pki.client();
    config.alpn_protocols = vec![b"another".to_vec()];
    let near = client.connect_with(asking(config), server.local_addr().unwrap(), "localhost").unwrap();
    let (near, _far) =
        within(async { tokio::join!(near, async { server.accept().await.unwrap().await }) }).await;
    let ConnectionError::ConnectionClosed(closed) = near.unwrap_err() else { panic!("the server refuses") };
    assert_eq!(u64::from(closed.error_code), 0x178, "no_application_protocol (RFC 9001 §8.1)");
}

#[tokio::test]
async fn rustls_and_boringssl_understand_each_other() {
    let pki = Pki::new();
    let boring = ServerConfig::with_single_cert(vec![pki.certificate.clone()], private(&pki.key)).unwrap();
    let server = Endpoint::server(boring, loopback()).unwrap();
    let client = Endpoint::client(loopback()).unwrap();
    let mut config = pki.client();
    config.alpn_protocols = Vec::new();
    let near = client.connect_with(asking(config), server.local_addr().unwrap(), "localhost").unwrap();
    let (near, far) =
        within(async { tokio::join!(near, async { server.accept().await.unwrap().await }) }).await;
    let (near, far) = (near.unwrap(), far.unwrap());
    let data = near.handshake_data().unwrap().downcast::<HandshakeData>().unwrap();
    assert_eq!(data.protocol, None, "neither program named one");
    near.close(VarInt::from_u32(5), b"done");
    assert!(matches!(within(far.closed()).await, ConnectionError::ApplicationClosed(_)));
}

#[tokio::test]
async fn later_connections_resume_the_session_of_an_earlier_one() {
    let pki = Pki::new();
    let server = Endpoint::server(serving(pki.server()), loopback()).unwrap();
    let client = Endpoint::client(loopback()).unwrap();
    let config = asking(pki.client());
    for _ in 0..3 {
        let near = client.connect_with(config.clone(), server.local_addr().unwrap(), "localhost").unwrap();
        let (near, far) =
            within(async { tokio::join!(near, async { server.accept().await.unwrap().await }) }).await;
        let (near, far) = (near.unwrap(), far.unwrap());
        let mut sent = far.open_uni().await.unwrap();
        sent.finish().unwrap();
        within(async { near.accept_uni().await.unwrap().read_to_end(10).await.unwrap() }).await;
        near.close(VarInt::from_u32(0), b"");
        within(far.closed()).await;
    }
}

#[test]
fn a_provider_without_the_suite_of_initial_packets_is_refused() {
    let pki = Pki::new();
    let mut suites = ring::default_provider().cipher_suites;
    suites.retain(|suite| suite.suite() != rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    let provider = Arc::new(CryptoProvider { cipher_suites: suites, ..ring::default_provider() });
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(pki.resolver);
    let refused: Result<QuicServerConfig, NoInitialCipherSuite> = config.try_into();
    assert!(refused.is_err());
}

/// Connection IDs that begin with a number of the program, as those for load balancers do.
struct Numbered(AtomicU64);

impl ConnectionIdGenerator for Numbered {
    fn generate_cid(&mut self) -> ConnectionId {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        ConnectionId::new(&[&[0xab, 0xcd], &number.to_be_bytes()[..]].concat())
    }

    fn cid_len(&self) -> usize {
        10
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[tokio::test]
async fn packets_to_a_server_carry_the_connection_ids_of_the_program() {
    let pki = Pki::new();
    let mut config = EndpointConfig::default();
    config.cid_generator(|| Box::new(Numbered(AtomicU64::new(1))));
    let runtime = quinn::default_runtime().unwrap();
    let socket = UdpSocket::bind(loopback()).unwrap();
    let at = socket.local_addr().unwrap();
    let server = Endpoint::new(config, Some(serving(pki.server())), socket, runtime).unwrap();

    // Somebody between the two looks at the first bytes of packets with short headers.
    let between = Arc::new(tokio::net::UdpSocket::bind(loopback()).await.unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (relay, noted) = (Arc::clone(&between), Arc::clone(&seen));
    tokio::spawn(async move {
        let (mut buffer, mut client) = (vec![0; 65_536], None);
        loop {
            let (length, from) = relay.recv_from(&mut buffer).await.unwrap();
            let to = if from == at { client.unwrap() } else { at };
            if from != at {
                client = Some(from);
                if buffer[0] & 0x80 == 0 {
                    noted.lock().unwrap().push([buffer[1], buffer[2]]);
                }
            }
            relay.send_to(&buffer[..length], to).await.unwrap();
        }
    });
    let client = Endpoint::client(loopback()).unwrap();
    let near = client.connect_with(asking(pki.client()), between.local_addr().unwrap(), "localhost").unwrap();
    let (near, far) =
        within(async { tokio::join!(near, async { server.accept().await.unwrap().await }) }).await;
    let (near, far) = (near.unwrap(), far.unwrap());
    let mut sent = within(near.open_uni()).await.unwrap();
    sent.write_all(b"hello").await.unwrap();
    sent.finish().unwrap();
    within(async { far.accept_uni().await.unwrap().read_to_end(10).await.unwrap() }).await;
    let seen = seen.lock().unwrap();
    assert!(!seen.is_empty() && seen.iter().all(|id| *id == [0xab, 0xcd]), "{seen:02x?}");
}
