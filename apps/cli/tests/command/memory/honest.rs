//! Clients that ask for a few bytes, and how long that takes.

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use http::{Request, StatusCode};
use hvq::{ClientConfig, ClientTls, Connection, Endpoint, Policy, TransportConfig, Verify};
use hvq_h3::adapter::OpenStreams;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Durations of many requests.
pub struct Times {
    pub median: Duration,
    p99: Duration,
}

impl Times {
    fn of(mut all: Vec<Duration>) -> Self {
        all.sort();
        let at = |share: usize| all.get((all.len().max(1) - 1) * share / 100).copied().unwrap_or_default();
        Self { median: at(50), p99: at(99) }
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} / {:.2} ms", self.median.as_secs_f64() * 1e3, self.p99.as_secs_f64() * 1e3)
    }
}

/// An honest client.
pub struct Honest {
    endpoint: Endpoint,
    server: SocketAddr,
    config: ClientConfig,
    /// A connection that stays.
    requests: SendRequest<OpenStreams, Bytes>,
}

impl Honest {
    /// A client of `server`, which shows `chain`.
    pub async fn new(server: SocketAddr, chain: &[u8]) -> Self {
        let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(chain.to_vec()));
        let mut transport = TransportConfig::new(Arc::new(|| Policy::default().scheduler()));
        transport.set_keep_alive(Some(Duration::from_secs(5)));
        let config = ClientConfig::new(tls.build().unwrap(), Arc::new(transport));
        let endpoint = Endpoint::client(&[]).unwrap();
        let (_, requests) = connect(&endpoint, config.clone(), server).await;
        Self { endpoint, server, config, requests }
    }

    /// The durations of `count` requests, one after the other: each over a connection of its own, and over one that stays.
    pub async fn measure(&self, count: usize) -> [Times; 2] {
        let (mut new, mut kept) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let begun = Instant::now();
            let (connection, mut requests) = connect(&self.endpoint, self.config.clone(), self.server).await;
            ask(&mut requests).await;
            new.push(begun.elapsed());
            connection.close(0x100, b"");
        }
        let mut requests = self.requests.clone();
        for _ in 0..count {
            let begun = Instant::now();
            ask(&mut requests).await;
            kept.push(begun.elapsed());
        }
        [Times::of(new), Times::of(kept)]
    }
}

async fn connect(
    endpoint: &Endpoint,
    config: ClientConfig,
    server: SocketAddr,
) -> (Connection, SendRequest<OpenStreams, Bytes>) {
    let connection = endpoint.connect(config, server, "localhost").unwrap().await.unwrap();
    let (mut driver, requests) =
        h3::client::new(hvq_h3::adapter::Connection::new(connection.clone())).await.unwrap();
    tokio::spawn(async move { drop(poll_fn(|context| driver.poll_close(context)).await) });
    (connection, requests)
}

async fn ask(requests: &mut SendRequest<OpenStreams, Bytes>) {
    let request = Request::get("https://localhost/small").body(()).unwrap();
    let mut stream = requests.send_request(request).await.unwrap();
    // The answer may be there before the end of the question: RFC 9114 §4.1.
    let _answered = stream.finish().await;
    assert_eq!(stream.recv_response().await.unwrap().status(), StatusCode::OK);
    let mut length = 0;
    while let Some(part) = stream.recv_data().await.unwrap() {
        length += part.remaining();
    }
    assert_eq!(length, 11);
}
