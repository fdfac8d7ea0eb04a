//! One connection over two loopback addresses: a download that uses both paths.
//!
//! `cargo run -p hvq --example two_paths`

use hvq::{
    ClientConfig, ClientTls, Endpoint, Identity, LocalAddress, PathOptions, Policy, ServerConfig, ServerTls,
    TransportConfig, Verify,
};
use std::error::Error;
use std::sync::Arc;

/// Bytes of the download.
const DOWNLOAD: usize = 5_000_000;

/// Both ends take turns, so that both paths carry data. Unlike channels are for `Policy::Hvc`, with hints.
fn transport() -> Arc<TransportConfig> {
    Arc::new(TransportConfig::new(Arc::new(|| Policy::RoundRobin.scheduler())))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (chain, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());

    // The server listens on an address for each channel.
    let identity = Identity::Pem { chain: chain.clone().into_bytes(), key: key.into_bytes() };
    let tls = ServerTls::builder(identity).alpn(["download"]).build()?;
    let listen: [LocalAddress; 2] = ["127.0.0.1:0".parse()?, "127.0.0.2:0".parse()?];
    let server = Endpoint::server(ServerConfig::new(tls, transport()), &listen)?;
    let addresses = server.local_addrs();
    let serving = server.clone();
    tokio::spawn(async move {
        let Some(connection) = serving.accept().await else { return };
        let Ok((mut send, mut receive)) = connection.accept_bi().await else { return };
        // The request comes once the second path is there.
        if receive.read_to_end(16).await.is_ok() {
            // The client may have gone meanwhile.
            let _sent = send.write_all(&vec![7; DOWNLOAD]).await.and_then(|()| send.finish());
        }
        connection.closed().await;
    });

    let tls = ClientTls::builder().alpn(["download"]).verify(Verify::CaPem(chain.into_bytes())).build()?;
    let client = Endpoint::client(&["127.0.0.1:0".parse()?])?;
    let connection = client.connect(ClientConfig::new(tls, transport()), addresses[0], "localhost")?.await?;
    let second: LocalAddress = "127.0.0.2:0".parse()?;
    connection.open_path(PathOptions::new("second", second).to(addresses[1])).await?;

    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(b"go").await?;
    send.finish()?;
    let received = receive.read_to_end(DOWNLOAD).await?.len();
    let paths = connection.paths();
    for path in &paths {
        println!("path {}: {} bytes received", path.id, path.stats.counters.bytes_received);
    }
    connection.close(0, b"done");
    client.wait_idle().await;
    let used = paths.iter().filter(|path| path.stats.counters.bytes_received > 100_000).count();
    if received == DOWNLOAD && used == 2 { Ok(()) } else { Err("not both paths were used".into()) }
}
