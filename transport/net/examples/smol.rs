//! A connection with two paths on smol, without a runtime of tokio.
//!
//! `cargo run -p hvq --features runtime-smol --example smol`

use hvq::runtime::SmolRuntime;
use hvq::{
    ClientConfig, ClientTls, Endpoint, EndpointOptions, Identity, LocalAddress, PathOptions, Policy,
    ServerConfig, ServerTls, TransportConfig, Verify,
};
use std::error::Error;
use std::sync::Arc;

/// Bytes of the upload.
const UPLOAD: usize = 2_000_000;

/// Both ends take turns, so that both paths carry data, and take datagrams.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::new(Arc::new(|| Policy::RoundRobin.scheduler()));
    transport.set_max_datagram_frame(1_200);
    Arc::new(transport)
}

/// An endpoint on smol: outside of tokio this is the runtime anyway, here it is named.
fn endpoint(server: Option<ServerConfig>, local: Vec<LocalAddress>) -> std::io::Result<Endpoint> {
    let runtime = Some(Arc::new(SmolRuntime) as _);
    Endpoint::new(EndpointOptions { server, local, runtime, ..EndpointOptions::default() })
}

/// Reads a stream to its end, and answers with the number of its bytes in a datagram.
async fn serve(server: Endpoint) -> Result<(), Box<dyn Error + Send + Sync>> {
    let connection = server.accept().await.ok_or("closed")?;
    // Streams have the traits of futures-io, too.
    let received = smol::io::copy(connection.accept_uni().await?, smol::io::sink()).await?;
    connection.send_datagram(received.to_string().into())?;
    connection.closed().await;
    Ok(())
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    smol::block_on(async {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        let (chain, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
        let identity = Identity::Pem { chain: chain.clone().into_bytes(), key: key.into_bytes() };
        let tls = ServerTls::builder(identity).alpn(["upload"]).build()?;
        let listen = vec!["127.0.0.1:0".parse()?, "127.0.0.2:0".parse()?];
        let server = endpoint(Some(ServerConfig::new(tls, transport())), listen)?;
        let addresses = server.local_addrs();
        let serving = smol::spawn(serve(server));

        let tls = ClientTls::builder().alpn(["upload"]).verify(Verify::CaPem(chain.into_bytes())).build()?;
        let client = endpoint(None, vec!["127.0.0.1:0".parse()?])?;
        let config = ClientConfig::new(tls, transport());
        let connection = client.connect(config, addresses[0], "localhost")?.await?;
        let second: LocalAddress = "127.0.0.2:0".parse()?;
        connection.open_path(PathOptions::new("second", second).to(addresses[1])).await?;

        let mut stream = connection.open_uni().await?;
        stream.write_all(&vec![7; UPLOAD]).await?;
        smol::io::AsyncWriteExt::close(&mut stream).await?;
        let answer = connection.read_datagram().await?;
        let paths = connection.paths();
        for path in &paths {
            println!("path {}: {} bytes sent", path.id, path.stats.counters.bytes_sent);
        }
        connection.close(0, b"done");
        client.wait_idle().await;
        serving.await.map_err(|error| error.to_string())?;
        let used = paths.iter().filter(|path| path.stats.counters.bytes_sent > 100_000).count();
        let is_whole = answer == UPLOAD.to_string();
        if is_whole && used == 2 { Ok(()) } else { Err("not both paths were used".into()) }
    })
}
