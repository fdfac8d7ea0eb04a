//! attacks.md K1: clients that ask for much and permit nothing to be sent. HVQ_MISERS sets how many there are.

use crate::idle::{Counted, runtime};
use crate::setup::{Client, get, within};
use hvq::{
    ClientConfig, ClientTls, Connection, Endpoint, Policy, RecvStream, SendStream, TransportConfig, Verify,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Such clients, unless the environment says how many.
const MISERS: usize = 20;
/// Requests of each.
const REQUESTS: usize = 100;
/// Bytes of what each asks for.
const FILE: usize = 20 << 20;
/// Bytes on the heap that such a client may cost.
const BOUND: i64 = 2 << 20;
/// The same for one that permits a little and then nothing more.
const BOUND_OF_LITTLE: i64 = 3 << 20;
/// Bytes that stay of all when they are gone: memory that is used again.
const LEFT: i64 = 6 << 20;

/// The bytes that clients permit the gateway to send.
#[derive(Clone, Copy, Debug)]
struct Credit {
    stream: u64,
    connection: u64,
}

/// A GET for `/large` of localhost: HEADERS with a field section that refers to the static table (RFC 9204 appendix A).
fn request() -> Vec<u8> {
    let fields = [&[0, 0, 0xd1, 0xd7, 0x51, 6][..], b"/large", &[0x50, 9], b"localhost"].concat();
    [&[0x01, fields.len() as u8][..], &fields].concat()
}

/// A client that has asked as often as it may and reads nothing, with its streams.
struct Miser {
    connection: Connection,
    _streams: Vec<(SendStream, RecvStream)>,
}

impl Miser {
    async fn new(endpoint: &Endpoint, gateway: &Counted, credit: Credit) -> Self {
        let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(gateway.trust.pem()));
        let mut transport = TransportConfig::new(Arc::new(|| Policy::default().scheduler()));
        transport.streams_mut().max_data = credit.connection;
        transport.streams_mut().stream_data_bidi_local = credit.stream;
        transport.streams_mut().max_window = credit.connection.max(credit.stream);
        let config = ClientConfig::new(tls.build().unwrap(), Arc::new(transport));
        let connection =
            within(endpoint.connect(config, gateway.address, "localhost").unwrap()).await.unwrap();
        let mut streams = Vec::new();
        for _ in 0..REQUESTS {
            let (mut send, receive) = within(connection.open_bi()).await.unwrap();
            within(send.write_all(&request())).await.unwrap();
            send.finish().unwrap();
            // Nobody reads it, and nobody says so.
            streams.push((send, receive));
        }
        Self { connection, _streams: streams }
    }
}

/// An origin that answers with as many bytes, or with few at `/small`.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let mut part = [0; 4096];
                while let Ok(length @ 1..) = stream.read(&mut part) {
                    if part[..length].starts_with(b"GET /small") {
                        let small = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nsmall");
                        if small.is_err() {
                            return;
                        }
                        continue;
                    }
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {FILE}\r\n\r\n");
                    let block = vec![7; 64 << 10];
                    let all = stream.write_all(head.as_bytes());
                    if all
                        .and_then(|()| (0..FILE / block.len()).try_for_each(|_| stream.write_all(&block)))
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Measures the time of an honest request, with a handshake.
async fn honest(gateway: &Counted) -> Duration {
    let endpoint = Endpoint::client(&[]).unwrap();
    let begun = Instant::now();
    let client = Client::of(&endpoint, gateway.address, &gateway.trust).await.unwrap();
    assert_eq!(client.status(get("/small")).await, 200);
    begun.elapsed()
}

/// Measures the cost of each client, and the memory that stays of them when they are gone.
async fn cost(gateway: &Counted, credit: Credit, count: usize) -> (i64, i64) {
    let endpoint = Endpoint::client(&[]).unwrap();
    honest(gateway).await;
    sleep(Duration::from_millis(600)).await;
    let before = gateway.bytes();
    let mut misers = Vec::new();
    for _ in 0..count {
        misers.push(Miser::new(&endpoint, gateway, credit).await);
    }
    sleep(Duration::from_secs(1)).await;
    let each = (gateway.bytes() - before) / count as i64;
    println!("{credit:?}: {each} bytes each, and an honest request in {:?}", honest(gateway).await);
    for miser in &misers {
        miser.connection.close(0, b"");
    }
    drop(misers);
    let mut left = i64::MAX;
    for _ in 0..40 {
        sleep(Duration::from_millis(250)).await;
        left = left.min(gateway.bytes() - before);
    }
    (each, left)
}

fn try_all(text: &str) {
    let count = std::env::var("HVQ_MISERS").map_or(MISERS, |count| count.parse().unwrap());
    let text = format!("{text}[timeouts]\nidle = '60s'\nfirst_byte = '60s'\n");
    let without = [(0, 0), (0, 1 << 30), (1 << 20, 0)].map(|credit| (credit, BOUND));
    for ((stream, connection), bound) in without.into_iter().chain([((10_000, 500_000), BOUND_OF_LITTLE)]) {
        let files = vec![("large", "x".repeat(FILE)), ("small", "a few bytes".to_owned())];
        let gateway = Counted::new(text.clone(), files);
        let (each, left) = runtime().block_on(cost(&gateway, Credit { stream, connection }, count));
        assert!(each <= bound, "{each} bytes each with {stream} and {connection}");
        assert!(left <= LEFT, "{left} bytes are left");
        gateway.stop();
    }
}

#[test]
fn clients_that_permit_nothing_cost_little_whatever_files_they_ask_for() {
    try_all("[[host]]\nnames = ['localhost']\nfiles = 'DIR'\n");
}

#[test]
fn clients_that_permit_nothing_cost_little_whatever_they_ask_of_an_origin() {
    try_all(&format!("[[host]]\nnames = ['localhost']\norigin = 'http://{}'\n", origin()));
}
