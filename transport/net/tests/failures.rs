//! Endpoints that fail, end, and leave nothing behind.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{NAME, Pair, Pki, echo, local, transport, within};
use hvq::{ClientConfig, ClientTls, ConnectError, ConnectionError, Endpoint, ErrorCode, Identity, Verify};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused_with_a_reason() {
    let server = Endpoint::server(Pki::new().server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let client = Endpoint::client(&[]).unwrap();
    let connecting = client.connect(Pki::new().client(transport()), server.local_addrs()[0], NAME).unwrap();
    let error = within(connecting).await.unwrap_err();
    let ConnectionError::Transport(error) = error else { panic!("{error}") };
    assert!((0x100..0x200).contains(&error.code.0), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let pki = Pki::new();
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let client = Endpoint::client(&[]).unwrap();
    let connecting = client.connect(pki.client(transport()), server.local_addrs()[0], "other.test").unwrap();
    let error = within(connecting).await.unwrap_err();
    assert!(matches!(&error, ConnectionError::Transport(_)), "{error}");
    let error = client.connect(pki.client(transport()), server.local_addrs()[0], "").unwrap_err();
    assert!(matches!(error, ConnectError::Transport(_)), "{error}");
    within(client.wait_idle()).await;
    assert_eq!(client.local_addrs(), []);
}

#[tokio::test]
async fn a_client_that_shares_no_protocol_with_the_server_learns_so() {
    let pki = Pki::new();
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let client = Endpoint::client(&[]).unwrap();
    let tls = ClientTls::builder().alpn(["other"]).verify(Verify::Insecure).build().unwrap();
    let config = ClientConfig::new(tls, Arc::new(transport()));
    let error = within(client.connect(config, server.local_addrs()[0], NAME).unwrap()).await.unwrap_err();
    let ConnectionError::PeerTransport(error) = error else { panic!("{error}") };
    // RFC 9001 §8.1: no_application_protocol, alert 120.
    assert_eq!(error.code, ErrorCode::crypto(120));
}

#[tokio::test]
async fn a_setting_out_of_its_range_starts_neither_a_server_nor_a_connection() {
    let nonsense = || transport().set_max_udp_payload(100).clone();
    let named = |error: &dyn std::error::Error| error.to_string().contains("max_udp_payload is 100 bytes");
    let pki = Pki::new();
    let error = Endpoint::server(pki.server(nonsense()), &[local("127.0.0.1:0")]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(named(&error), "{error}");
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    assert_eq!(server.set_server(Some(pki.server(nonsense()))).unwrap_err().setting, "max_udp_payload");
    let client = Endpoint::client(&[]).unwrap();
    let error = client.connect(pki.client(nonsense()), server.local_addrs()[0], NAME).unwrap_err();
    assert!(matches!(error, ConnectError::Transport(_)) && named(&error), "{error}");
    // The server is the one that it was before.
    within(client.connect(pki.client(transport()), server.local_addrs()[0], NAME).unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_timeout() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut hasty = transport();
    hasty.set_handshake_timeout(Duration::from_millis(300));
    let client = Endpoint::client(&[]).unwrap();
    let connecting = client.connect(Pki::new().client(hasty), silent.local_addr().unwrap(), NAME).unwrap();
    let error = within(connecting).await.unwrap_err();
    assert_eq!(error, ConnectionError::HandshakeTimeout);
    assert_eq!(std::io::Error::from(hvq::WriteError::from(error)).kind(), std::io::ErrorKind::TimedOut);
    within(client.wait_idle()).await;
}

#[tokio::test]
async fn a_port_that_nobody_listens_on_is_a_timeout_too() {
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut hasty = transport();
    hasty.set_handshake_timeout(Duration::from_millis(300));
    let client = Endpoint::client(&[]).unwrap();
    let error = within(client.connect(Pki::new().client(hasty), closed, NAME).unwrap()).await.unwrap_err();
    assert_eq!(error, ConnectionError::HandshakeTimeout);
}

#[tokio::test]
async fn a_peer_that_falls_silent_ends_the_connection_by_the_idle_timeout() {
    let mut short = transport();
    short.set_idle_timeout(Duration::from_millis(300));
    let pair = Pair::with(short, transport()).await;
    assert_eq!(within(pair.near.closed()).await, ConnectionError::IdleTimeout);
    within(pair.client.wait_idle()).await;
}

#[tokio::test]
async fn one_empty_datagram_does_not_make_a_server_deaf_to_what_comes_after_it() {
    // attacks.md A1: nothing else wakes a server without connections.
    let pki = Pki::new();
    let server = Endpoint::server(pki.server(transport()), &[local("127.0.0.1:0")]).unwrap();
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..3 {
        stranger.send_to(&[], server.local_addrs()[0]).unwrap();
        // It is looked at alone.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let client = Endpoint::client(&[]).unwrap();
    let connecting = client.connect(pki.client(transport()), server.local_addrs()[0], NAME).unwrap();
    let (near, far) = within(async { tokio::join!(connecting, server.accept()) }).await;
    assert!(near.is_ok() && far.is_some());
}

#[tokio::test]
async fn a_flood_of_empty_datagrams_leaves_time_for_connections_and_for_other_tasks() {
    // attacks.md A1, CVE-2026-11352. All run on one thread, that of the test.
    let pair = Pair::new().await;
    let (server, stop) = (pair.server_addr(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let flood = std::thread::spawn(move || {
        let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sent = 0;
        while !stopped.load(Ordering::Relaxed) {
            // The kernel has room for a few thousand; what comes to a full buffer is lost, be it ours or theirs.
            sent += (0..500).filter(|_| stranger.send_to(&[], server).is_ok()).count();
            std::thread::sleep(Duration::from_millis(1));
        }
        sent
    });
    let _echo = echo(pair.far.clone());
    for _ in 0..20 {
        let (mut send, mut receive) = within(pair.near.open_bi()).await.unwrap();
        within(send.write_all(&[7; 50_000])).await.unwrap();
        send.finish().unwrap();
        let mut received = 0;
        while let Some(chunk) = within(receive.read_chunk(1 << 16)).await.unwrap() {
            received += chunk.len();
        }
        assert_eq!(received, 50_000);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let sent = flood.join().unwrap();
    println!("{sent} empty datagrams meanwhile");
}

#[tokio::test]
async fn dropping_the_last_handle_closes_with_code_zero() {
    let pair = Pair::new().await;
    let stream = within(pair.near.open_uni()).await.unwrap();
    drop(pair.near);
    let early = tokio::time::timeout(Duration::from_millis(50), pair.far.closed()).await;
    assert!(early.is_err(), "a stream keeps the connection");
    drop(stream);
    let closed = within(pair.far.closed()).await;
    assert_eq!(closed, ConnectionError::PeerApplication { code: 0, reason: String::new() });
}

#[tokio::test]
async fn dropping_an_attempt_ends_it() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = Endpoint::client(&[]).unwrap();
    drop(client.connect(Pki::new().client(transport()), silent.local_addr().unwrap(), NAME).unwrap());
    within(client.wait_idle()).await;
    assert_eq!((client.open_connections(), client.local_addrs().len()), (0, 0));
}

#[tokio::test]
async fn closing_an_endpoint_closes_its_connections_and_accepts_no_more() {
    let pair = Pair::new().await;
    let server = pair.server.clone();
    let accepting = tokio::spawn(async move { server.accept().await.is_none() });
    tokio::time::sleep(Duration::from_millis(10)).await;
    pair.server.close(9, b"going home");
    assert!(within(accepting).await.unwrap());
    let closed = within(pair.near.closed()).await;
    assert_eq!(closed, ConnectionError::PeerApplication { code: 9, reason: "going home".to_owned() });
    let refused = pair.server.connect(pair.pki.client(transport()), pair.server_addr(), NAME);
    assert!(matches!(refused, Err(ConnectError::EndpointClosed)));
    within(async { tokio::join!(pair.server.wait_idle(), pair.client.wait_idle()) }).await;
}

#[tokio::test]
async fn a_server_that_stops_listening_goes_on_with_what_it_has() {
    let pair = Pair::new().await;
    let _echo = echo(pair.far.clone());
    pair.server.set_server(None).unwrap();
    let mut hasty = transport();
    hasty.set_handshake_timeout(Duration::from_millis(200));
    let late = pair.client.connect(pair.pki.client(hasty), pair.server_addr(), NAME).unwrap();
    assert_eq!(within(late).await.unwrap_err(), ConnectionError::HandshakeTimeout);
    let (mut send, mut receive) = within(pair.near.open_bi()).await.unwrap();
    send.write_all(b"still there").await.unwrap();
    send.finish().unwrap();
    assert_eq!(within(receive.read_to_end(100)).await.unwrap(), b"still there");
}

#[tokio::test]
async fn dropped_endpoints_leave_no_task_and_no_socket() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    let pair = Pair::new().await;
    let address = pair.server_addr();
    assert_eq!(metrics.num_alive_tasks(), before + 2);
    let Pair { server, client, near, far, .. } = pair;
    drop((server, client));
    // Connections go on without the handles of their endpoints.
    let mut send = within(near.open_uni()).await.unwrap();
    send.write_all(b"x").await.unwrap();
    within(far.accept_uni()).await.unwrap();
    drop((send, near, far));
    within(async {
        while metrics.num_alive_tasks() > before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    std::net::UdpSocket::bind(address).expect("the server's socket is closed");
}

#[test]
fn handles_that_outlive_the_runtime_report_errors_instead_of_hanging() {
    let build = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let runtime = build();
    let pair = runtime.block_on(Pair::new());
    drop(runtime);
    let Pair { near, server, .. } = pair;
    let later = build();
    later.block_on(async {
        within(near.closed()).await;
        assert!(within(near.open_uni()).await.is_err());
        assert!(within(server.accept()).await.is_none());
        within(server.wait_idle()).await;
    });
}

#[tokio::test]
async fn endpoints_that_cannot_be_made_say_why() {
    let pki = Pki::new();
    let error = Endpoint::server(pki.server(transport()), &[]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let first = Endpoint::client(&[local("127.0.0.1:0")]).unwrap();
    let taken = first.local_addr().unwrap();
    let error = Endpoint::client(&[taken.into()]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
    let identity = Identity::Pem { chain: b"no certificate".to_vec(), key: Vec::new() };
    assert!(hvq::ServerTls::builder(identity).alpn(["x"]).build().is_err());
}

#[tokio::test]
async fn garbage_does_not_disturb_an_endpoint() {
    let pair = Pair::new().await;
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [1, 20, 1200, 9000] {
        for first in [0x00, 0x40, 0xc0, 0xff] {
            stranger.send_to(&vec![first; length], pair.server_addr()).unwrap();
        }
    }
    let _echo = echo(pair.far.clone());
    let (mut send, mut receive) = within(pair.near.open_bi()).await.unwrap();
    send.write_all(b"fine").await.unwrap();
    send.finish().unwrap();
    assert_eq!(within(receive.read_to_end(100)).await.unwrap(), b"fine");
    assert!(pair.server.stats().dropped.values().sum::<u64>() > 0);
    assert!(pair.server.io_stats().datagrams_received > 16);
}

/// A transport whose connections do this when they begin, in the driver's task.
fn watched(begins: impl Fn() + Send + Sync + 'static) -> hvq::TransportConfig {
    let tracer: hvq::trace::TracerFactory = Arc::new(move |_| {
        begins();
        None
    });
    transport().set_tracer(Some(tracer)).clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_driver_that_hangs_has_no_beat_and_one_that_moves_has() {
    let pki = Pki::new();
    let ((go, wait), (begins, begun)) = (mpsc::channel::<()>(), mpsc::channel());
    let ends = Mutex::new((wait, begins));
    let server = Endpoint::server(
        pki.server(watched(move || {
            let (wait, begins) = &*ends.lock().unwrap();
            begins.send(()).unwrap();
            let _gone = wait.recv();
        })),
        &[local("127.0.0.1:0")],
    )
    .unwrap();
    let (asked, beats, runtime) =
        (server.clone(), Arc::new(AtomicU64::new(0)), tokio::runtime::Handle::current());
    let count = beats.clone();
    // On a thread of its own: a driver that hangs has the lock that everybody takes.
    std::thread::spawn(move || {
        loop {
            runtime.block_on(asked.beat());
            count.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let moves = async |since: u64| {
        while beats.load(Ordering::Relaxed) <= since {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    within(moves(3)).await;
    let client = Endpoint::client(&[]).unwrap();
    let connecting = client.connect(pki.client(transport()), server.local_addr().unwrap(), NAME).unwrap();
    begun.recv().unwrap();
    // Not by the runtime's clock: the worker that hangs may be the one that would look at it.
    std::thread::sleep(Duration::from_millis(50));
    let hung = beats.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(beats.load(Ordering::Relaxed), hung, "a beat of a driver that hangs");
    go.send(()).unwrap();
    within(connecting).await.unwrap();
    within(moves(hung + 1)).await;
}

#[tokio::test]
async fn a_driver_that_panics_is_known_to_have_ended() {
    let pki = Pki::new();
    let broken = Endpoint::server(pki.server(watched(|| panic!("as a bug would"))), &[local("127.0.0.1:0")]);
    let broken = broken.unwrap();
    let mut hasty = transport();
    hasty.set_handshake_timeout(Duration::from_millis(300));
    let alive = tokio::time::timeout(Duration::from_millis(50), broken.stopped()).await;
    assert!(alive.is_err());
    let client = Endpoint::client(&[]).unwrap();
    let connecting = client.connect(pki.client(hasty), broken.local_addr().unwrap(), NAME).unwrap();
    within(broken.stopped()).await;
    assert!(within(broken.accept()).await.is_none());
    let beat = tokio::time::timeout(Duration::from_millis(50), broken.beat()).await;
    assert!(beat.is_err(), "there is no beat any more");
    assert!(within(connecting).await.is_err());
}
