//! Clients that ask for a large file a hundred times each, and permit nothing to be sent.

use futures::future::join_all;
use hvq::{
    ClientConfig, ClientTls, Connection, Endpoint, LocalAddress, Policy, RecvStream, SendStream,
    TransportConfig, Verify,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Bytes of what they ask for.
pub const FILE: usize = 20 << 20;
/// Requests of each.
const REQUESTS: usize = 100;
/// Requests of each that begin at a time.
const AT_A_TIME: usize = 20;

/// Such clients, each from an address of its own.
pub struct Crowd(Vec<Member>);

struct Member {
    endpoint: Endpoint,
    connection: Connection,
    _streams: Vec<(SendStream, RecvStream)>,
}

/// A GET for `/large` of localhost: HEADERS with a field section that refers to the static table (RFC 9204 appendix A).
fn request() -> Vec<u8> {
    let fields = [&[0, 0, 0xd1, 0xd7, 0x51, 6][..], b"/large", &[0x50, 9], b"localhost"].concat();
    [&[0x01, fields.len() as u8][..], &fields].concat()
}

impl Member {
    async fn new(number: usize, server: SocketAddr, chain: &[u8]) -> Self {
        let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::CaPem(chain.to_vec()));
        let mut transport = TransportConfig::new(Arc::new(|| Policy::default().scheduler()));
        transport.streams_mut().max_data = 0;
        transport.streams_mut().stream_data_bidi_local = 0;
        let config = ClientConfig::new(tls.build().unwrap(), Arc::new(transport));
        let [.., high, low] = (number as u32).to_be_bytes();
        let local = LocalAddress::Ip(IpAddr::from(Ipv4Addr::new(127, 1 + high, low, 1)));
        let endpoint = Endpoint::client(&[local]).unwrap();
        let connection = endpoint.connect(config, server, "localhost").unwrap().await.unwrap();
        let mut streams = Vec::new();
        for _ in 0..REQUESTS {
            let (mut send, receive) = connection.open_bi().await.unwrap();
            send.write_all(&request()).await.unwrap();
            // The end may be refused where the request was.
            let _refused = send.finish();
            streams.push((send, receive));
        }
        Self { endpoint, connection, _streams: streams }
    }
}

impl Crowd {
    /// Brings as many as `count` to `server`, which shows `chain`.
    pub async fn come(count: usize, server: SocketAddr, chain: &[u8]) -> Self {
        let mut all = Vec::new();
        while all.len() < count {
            let next = all.len()..count.min(all.len() + AT_A_TIME);
            all.extend(join_all(next.map(|number| Member::new(number, server, chain))).await);
        }
        Self(all)
    }

    /// All of them go.
    pub async fn go(self) {
        for Member { connection, .. } in &self.0 {
            assert_eq!(connection.close_reason(), None, "it was there to the end");
            connection.close(0x100, b"");
        }
        join_all(self.0.iter().map(|member| member.endpoint.wait_idle())).await;
    }
}

/// An origin that answers with as many bytes, or with few at `/small`.
pub async fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Who asked may have gone.
            tokio::spawn(async move { drop(answer(stream).await) });
        }
    });
    address
}

async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut part = [0; 4096];
    while let length @ 1.. = stream.read(&mut part).await? {
        if part[..length].starts_with(b"GET /small") {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\na few bytes").await?;
            continue;
        }
        stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {FILE}\r\n\r\n").as_bytes()).await?;
        let block = vec![7; 64 << 10];
        for _ in 0..FILE / block.len() {
            stream.write_all(&block).await?;
        }
    }
    Ok(())
}
