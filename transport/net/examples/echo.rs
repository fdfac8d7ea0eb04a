//! A server and a client in one program: the client sends a line, the server sends it back.
//!
//! `cargo run -p hvq --example echo`

use hvq::{
    ClientConfig, ClientTls, Endpoint, Identity, Policy, ServerConfig, ServerTls, TransportConfig, Verify,
};
use std::error::Error;
use std::sync::Arc;

/// Connections with the default scheduler.
fn transport() -> Arc<TransportConfig> {
    Arc::new(TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler())))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    // A certificate for this run only, which the client trusts.
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (chain, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());

    let identity = Identity::Pem { chain: chain.clone().into_bytes(), key: key.into_bytes() };
    let tls = ServerTls::builder(identity).alpn(["echo"]).build()?;
    let server = Endpoint::server(ServerConfig::new(tls, transport()), &["127.0.0.1:0".parse()?])?;
    let address = server.local_addr()?;
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                let Ok(line) = receive.read_to_end(1 << 16).await else { continue };
                // The client may have gone meanwhile.
                let _sent = send.write_all(&line).await.and_then(|()| send.finish());
            }
        }
    });

    let tls = ClientTls::builder().alpn(["echo"]).verify(Verify::CaPem(chain.into_bytes())).build()?;
    let client = Endpoint::client(&[])?;
    let connection = client.connect(ClientConfig::new(tls, transport()), address, "localhost")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(b"hello").await?;
    send.finish()?;
    let answer = receive.read_to_end(1 << 16).await?;
    println!("the server sent back: {}", String::from_utf8_lossy(&answer));
    connection.close(0, b"done");
    client.wait_idle().await;
    if answer == b"hello" { Ok(()) } else { Err("something else came back".into()) }
}
