//! A GET of one URL with hyperium's `h3`, over hvq.
//!
//! Only the lines between the marks are about QUIC; with quinn, the last of them would be
//! `h3_quinn::Connection::new(connection)`.
//!
//! ```sh
//! cargo run -p hvq-h3 --example h3_get -- https://localhost:4433/index.html [CA.pem]
//! ```

use anyhow::Context as _;
use bytes::Buf;
use hvq_h3::hvq::{ClientConfig, ClientTls, Endpoint, Policy, TransportConfig, Verify};
use std::future::poll_fn;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use url::Url;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url: Url = arguments.next().context("usage: h3_get URL [CA.pem]")?.parse()?;
    let verify = arguments.next().map_or(Verify::SystemRoots, |ca| Verify::CaFile(PathBuf::from(ca)));
    let host = url.host_str().context("the URL has no host")?;
    let remote = url.socket_addrs(|| None)?.into_iter().next().context("the host has no address")?;

    // --- QUIC
    let tls = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(verify).build()?;
    let transport = Arc::new(TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler())));
    let endpoint = Endpoint::client(&[])?;
    let connection = endpoint.connect(ClientConfig::new(tls, transport), remote, host)?.await?;
    let connection = hvq_h3::adapter::Connection::new(connection);
    // --- HTTP/3

    let (mut driver, mut requests) = h3::client::new(connection).await?;
    let drive = async move { poll_fn(|context| driver.poll_close(context)).await };
    let request = async move {
        let mut stream = requests.send_request(http::Request::get(url.as_str()).body(())?).await?;
        stream.finish().await?;
        let response = stream.recv_response().await?;
        eprintln!("{:?} {}", response.version(), response.status());
        while let Some(mut part) = stream.recv_data().await? {
            std::io::stdout().write_all(&part.copy_to_bytes(part.remaining()))?;
        }
        anyhow::Ok(())
    };
    // The driver ends when `requests` is dropped.
    let (result, end) = tokio::join!(request, drive);
    result?;
    anyhow::ensure!(end.is_h3_no_error(), "the connection ended with {end}");
    endpoint.wait_idle().await;
    Ok(())
}
