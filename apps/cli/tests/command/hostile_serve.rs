//! A client that keeps `hvq serve` waiting or full: attacks.md H6, H19, K2.

use crate::support::{Running, code, run};
use hvq::{
    ClientConfig, ClientTls, ConnectionError, Endpoint, Policy, ReadError, ReadToEndError, TransportConfig,
    Verify,
};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Streams that the client opens.
const STREAMS: usize = 100;
/// Connections that do so after the first.
const OTHERS: usize = 5;
/// Bytes of a header section that each sends.
const EACH: usize = 100_000;
/// No answer takes as long, unless there is none.
const LIMIT: Duration = Duration::from_secs(40);

/// Bytes of memory that a process has.
fn memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// A client connection to `server`, and what keeps it.
async fn connect(server: &Running) -> (Endpoint, hvq::Connection) {
    let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::Insecure).build().unwrap();
    let transport = TransportConfig::new(Arc::new(|| Policy::default().scheduler()));
    let config = ClientConfig::new(tls, Arc::new(transport));
    let endpoint = Endpoint::client(&[]).unwrap();
    let connection = endpoint.connect(config, server.address(0), "localhost").unwrap().await.unwrap();
    (endpoint, connection)
}

/// Asserts that `server` still serves a file.
async fn assert_serves(server: &Running) {
    let url = server.url("/hello.txt");
    let output = tokio::task::spawn_blocking(move || run(["get", "-k", &url])).await.unwrap();
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b"hello world"[..]));
}

/// Returns the code with which the server gave a request up.
async fn given_up(receive: &mut hvq::RecvStream) -> u64 {
    match tokio::time::timeout(LIMIT, receive.read_to_end(100)).await.expect("it is not given up") {
        Err(ReadToEndError::Read(ReadError::Reset(code))) => code,
        other => panic!("{other:?}"),
    }
}

/// Opens streams and sends the beginning of a header section on each.
async fn burst(connection: &hvq::Connection) -> Vec<(hvq::SendStream, hvq::RecvStream)> {
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let (mut send, receive) = connection.open_bi().await.unwrap();
        let frame = [&[0x01][..], &(131_000u32 | 0x8000_0000).to_be_bytes(), &[0; EACH]].concat();
        // Whoever is refused is told to stop.
        let _refused = tokio::time::timeout(LIMIT, send.write_all(&frame)).await.expect("nobody reads");
        streams.push((send, receive));
    }
    streams
}

#[tokio::test(flavor = "multi_thread")]
async fn header_sections_without_end_are_refused_or_given_up_and_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hello.txt"), "hello world").unwrap();
    let server = Running::serve(folder.path(), &folder.path().join("certificate.pem"), &[]);
    assert_serves(&server).await;
    let (_endpoint, connection) = connect(&server).await;
    let start = Instant::now();
    let mut streams = burst(&connection).await;
    // Memory that the first connection needed on the way is used again. One connection more can cost
    // some MiB by chance (the allocator's), several in a row cost what is kept of each.
    let before = memory(server.id());
    let mut kept = Vec::new();
    for _ in 0..OTHERS {
        let (endpoint, connection) = connect(&server).await;
        kept.push((burst(&connection).await, connection, endpoint));
    }
    let grown = memory(server.id()).saturating_sub(before);
    assert_serves(&server).await;
    let mut codes = Vec::new();
    for (_send, receive) in &mut streams {
        codes.push(given_up(receive).await);
    }
    let late = codes.iter().filter(|code| **code == 0x10d).count();
    assert!(codes.iter().all(|code| [0x10b, 0x10d].contains(code)), "{codes:x?}");
    // 512 KiB of what is not whole, and each of the rest H3_REQUEST_REJECTED.
    assert!((1..=5).contains(&late), "{late} of {STREAMS} had room");
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    let sent = OTHERS * STREAMS * EACH;
    assert!(grown < sent as u64 / 4, "{grown} bytes for {sent} that came");
    assert_serves(&server).await;
}

#[tokio::test]
async fn frames_that_claim_to_be_endless_are_answered_and_end_no_other() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hello.txt"), "hello world").unwrap();
    let server = Running::serve(folder.path(), &folder.path().join("certificate.pem"), &[]);
    // The first connection takes some MiB that the process keeps for all.
    assert_serves(&server).await;
    let before = memory(server.id());
    let (_endpoint, connection) = connect(&server).await;
    for _ in 0..20 {
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        send.write_all(&[&[0x01][..], &[0xff; 8], &[0; 100]].concat()).await.unwrap();
        // RFC 9114 §4.2.2: a section that cannot be taken is answered with 431, whatever comes of it.
        let answer = tokio::time::timeout(LIMIT, receive.read_to_end(1 << 10)).await.unwrap().unwrap();
        assert_eq!(answer.first(), Some(&0x01), "{answer:x?}");
    }
    // A MiB for each of them would be more.
    let grown = memory(server.id()).saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes");
    // On the control stream it ends the connection, and nobody else's.
    let mut control = connection.open_uni().await.unwrap();
    control.write_all(&[&[0x00, 0x04][..], &[0xff; 8]].concat()).await.unwrap();
    let closed = tokio::time::timeout(LIMIT, connection.closed()).await.unwrap();
    assert!(matches!(closed, ConnectionError::PeerApplication { code: 0x107, .. }), "{closed}");
    assert_serves(&server).await;
}
