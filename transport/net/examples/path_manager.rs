//! A client whose paths follow the links of this machine: they come and go with them, by rules as in a firewall.
//!
//! `cargo run -p hvq --example path_manager`

use hvq::links::Links;
use hvq::path_manager::LinkUse;
use hvq::{
    ClientConfig, ClientTls, ConnectOptions, Endpoint, Identity, LocalAddress, PathManager, Policy,
    ServerConfig, ServerTls, TransportConfig, Verify,
};
use std::error::Error;
use std::sync::Arc;

/// Wi-Fi as it likes, mobile networks up to a budget, and nothing over a VPN.
const RULES: &str = "
    kind:wifi=use
    kind:cellular=metered,budget=500MB/month
    kind:tunnel=never
";

fn transport() -> Arc<TransportConfig> {
    Arc::new(TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler())))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (chain, key) = (certified.cert.pem(), certified.signing_key.serialize_pem());
    let identity = Identity::Pem { chain: chain.clone().into_bytes(), key: key.into_bytes() };
    let tls = ServerTls::builder(identity).alpn(["hello"]).build()?;
    let listen: [LocalAddress; 1] = ["127.0.0.1:0".parse()?];
    let server = Endpoint::server(ServerConfig::new(tls, transport()), &listen)?;
    let remote = server.local_addrs()[0];
    let serving = server.clone();
    tokio::spawn(async move { Some(serving.accept().await?.closed().await) });

    // The connection begins on whichever link answers first: here there is but loopback.
    let links = Links::watch().await?;
    let builder = PathManager::builder().rules(RULES.parse()?).remotes([remote]).links(links.clone());
    let paths = builder.paths(&links.current());
    let tls = ClientTls::builder().alpn(["hello"]).verify(Verify::CaPem(chain.into_bytes())).build()?;
    let client = Endpoint::client(&[])?;
    let options = ConnectOptions::new(remote, "localhost").racing(0, &paths);
    let connection = client.connect_with(ClientConfig::new(tls, transport()), options)?.await?;

    // From here on paths follow the links.
    let manager = builder.spawn(&connection).await?;
    let status = manager.status();
    for link in &status.links {
        match &link.usage {
            LinkUse::Path { id, .. } => println!("{} ({}): path {id}", link.name, link.kind),
            LinkUse::Unused(reason) => println!("{} ({}): {reason}", link.name, link.kind),
        }
    }
    connection.close(0, b"done");
    client.wait_idle().await;
    let used = status.links.iter().filter(|link| matches!(link.usage, LinkUse::Path { .. })).count();
    if used == 1 { Ok(()) } else { Err("not one link is used".into()) }
}
