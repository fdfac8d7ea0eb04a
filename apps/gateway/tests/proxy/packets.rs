//! UDP of programs through SOCKS5, CONNECT-UDP and a gateway: every size, and HTTP/3.

use crate::setup::{Fixture, within};
use bytes::Buf;
use hvq::{ClientConfig, ClientTls, Endpoint, Identity, TransportConfig, Verify};
use hvq_gateway::{Config, Gateway, Overrides};
use std::fs;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// The largest UDP payload in a QUIC datagram of 1,452 bytes: without 29 bytes around frames, 3 around the datagram, the quarter
/// stream ID (1 or 2 bytes) and the context ID.
const LARGEST: usize = 1452 - 29 - 3 - 1 - 1;

/// A place to send packets to by SOCKS5, and what keeps it.
struct Association {
    socket: UdpSocket,
    relay: SocketAddr,
    _kept: TcpStream,
}

impl Association {
    async fn new(proxy: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(proxy).await.unwrap();
        stream.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer[..6], [5, 0, 5, 0, 0, 1]);
        let port = u16::from_be_bytes([answer[10], answer[11]]);
        let relay = SocketAddr::from(([answer[6], answer[7], answer[8], answer[9]], port));
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        Self { socket, relay, _kept: stream }
    }

    async fn send(&self, to: SocketAddr, payload: &[u8]) {
        let SocketAddr::V4(to) = to else { panic!("a test over IPv4") };
        let head = [&[0, 0, 0, 1][..], &to.ip().octets(), &to.port().to_be_bytes()].concat();
        self.socket.send_to(&[&head, payload].concat(), self.relay).await.unwrap();
    }

    /// The payload of the next packet, which comes within `limit` or not at all.
    async fn receive(&self, limit: Duration) -> Option<Vec<u8>> {
        let mut packet = vec![0; 2048];
        let (length, _) = timeout(limit, self.socket.recv_from(&mut packet)).await.ok()?.unwrap();
        Some(packet[10..length].to_vec())
    }
}

/// A host that sends every packet back.
async fn echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut packet = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut packet).await {
            socket.send_to(&packet[..length], from).await.unwrap();
        }
    });
    address
}

/// Returns the proxy's count of datagrams that were too large.
async fn too_large(proxy: SocketAddr) -> usize {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {proxy}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("hvq_proxy_datagrams_dropped_total{reason=\"too_large\"} "));
    line.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

#[tokio::test]
async fn packets_of_every_size_come_back_or_are_dropped_and_counted() {
    let (place, host) = (Fixture::new().await, echo().await);
    let association = Association::new(place.address()).await;
    let long = Duration::from_secs(20);
    within(async {
        // The first opens the tunnel, which is the reason to find out what the paths carry.
        association.send(host, b"first").await;
        assert_eq!(association.receive(long).await.as_deref(), Some(&b"first"[..]));
        loop {
            association.send(host, &[1; LARGEST]).await;
            if association.receive(Duration::from_millis(50)).await.is_some() {
                break;
            }
        }
        while association.receive(Duration::from_millis(20)).await.is_some() {}
        let before = too_large(place.address()).await;
        for size in 1..=1500 {
            association.send(host, &vec![size as u8; size]).await;
            if size <= LARGEST {
                assert_eq!(association.receive(long).await, Some(vec![size as u8; size]));
            } else {
                // So that no queue overflows.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        // The answer to one that follows shows that the others do not come.
        association.send(host, b"last").await;
        assert_eq!(association.receive(long).await.as_deref(), Some(&b"last"[..]));
        assert_eq!(too_large(place.address()).await - before, 1500 - LARGEST);
    })
    .await;
}

/// A gateway that serves a file of `size` bytes, its address and its certificates.
async fn site(size: usize) -> (Gateway, SocketAddr, Vec<u8>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("large.bin"), vec![7; size]).unwrap();
    let made = rcgen::generate_simple_self_signed(["inner.test".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes());
    let file = folder.path().join("gateway.toml");
    let text = format!("[[host]]\nnames = ['*']\nfiles = '{}'\n", folder.path().display());
    fs::write(&file, text).unwrap();
    let overrides = Overrides {
        listen: vec![([127, 0, 0, 1], 0).into()],
        identity: Some(Identity::Pem { chain: chain.clone(), key }),
        ..Overrides::default()
    };
    let gateway = Gateway::start(Config::load(Some(&file), &overrides).unwrap()).await.unwrap();
    let address = gateway.local_addrs()[0];
    (gateway, address, chain, folder)
}

#[tokio::test]
async fn http3_goes_through_the_tunnel_with_datagrams_as_large_as_that_carries() {
    const SIZE: usize = 2_000_000;
    let place = Fixture::new().await;
    let (_gateway, address, chain, _folder) = site(SIZE).await;
    // What a program that knows SOCKS does for its QUIC: packets of a client between its socket and the association.
    let association = Association::new(place.address()).await;
    let outside = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let near = outside.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut packet, mut client) = (vec![0; 2048], None);
        loop {
            tokio::select! {
                received = outside.recv_from(&mut packet) => {
                    let (length, from) = received.unwrap();
                    client = Some(from);
                    association.send(address, &packet[..length]).await;
                }
                payload = association.receive(Duration::MAX) => {
                    outside.send_to(&payload.unwrap(), client.unwrap()).await.unwrap();
                }
            }
        }
    });
    let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(chain)).build().unwrap();
    let transport = TransportConfig::new(Arc::new(|| hvq::Policy::MinRtt.scheduler()));
    let endpoint = Endpoint::client(&[]).unwrap();
    within(async {
        let config = ClientConfig::new(tls, Arc::new(transport));
        let connection = endpoint.connect(config, near, "inner.test").unwrap().await.unwrap();
        let (mut driver, mut requests) =
            h3::client::new(hvq_h3::adapter::Connection::new(connection.clone())).await.unwrap();
        tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });
        for _ in 0..2 {
            let request = http::Request::get("https://inner.test/large.bin").body(()).unwrap();
            let mut stream = requests.send_request(request).await.unwrap();
            stream.finish().await.unwrap();
            assert_eq!(stream.recv_response().await.unwrap().status(), 200);
            let mut bytes = 0;
            while let Some(mut part) = stream.recv_data().await.unwrap() {
                bytes += part.remaining();
                part.advance(part.remaining());
            }
            assert_eq!(bytes, SIZE);
        }
        connection.close(0x100, b"");
    })
    .await;
}
