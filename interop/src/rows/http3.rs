//! HTTP/3 with quiche, in both roles.

use crate::content::{check, content};
use crate::identity::Identity;
use crate::report::{Exchange, PathUse, locked_version};
use crate::{ours, peer};
use anyhow::{Context, Result};
use std::time::Duration;

/// Bytes of the response.
const CONTENT: usize = 10_000_000;
const PATH: &str = "/content";
/// The time before the end of its row at which quiche gives up, so that its thread ends.
const MARGIN: Duration = Duration::from_secs(5);

fn exchange(paths: Vec<PathUse>) -> Exchange {
    let peer = format!("quiche {}", locked_version("quiche"));
    Exchange { bytes: CONTENT as u64, paths, peer, note: String::new() }
}

/// Our client fetches from a quiche server.
pub async fn client(identity: &Identity, patience: Duration) -> Result<Exchange> {
    let body = content(CONTENT, 5);
    let server = peer::quiche::Server::bind(identity)?;
    let remote = server.address()?;
    let served = body.clone();
    let patience = patience.saturating_sub(MARGIN);
    let serving = tokio::task::spawn_blocking(move || server.run(&served, patience));
    let (received, paths) = ours::get(identity, remote, PATH).await.context("hvq fetches")?;
    check(&received, &body, "received by hvq")?;
    serving.await?.context("quiche serves")?;
    Ok(exchange(paths))
}

/// A quiche client fetches from our server.
pub async fn server(identity: &Identity, patience: Duration) -> Result<Exchange> {
    let body = content(CONTENT, 6);
    let endpoint = ours::http3_server(identity)?;
    let remote = endpoint.local_addr()?;
    let certificate = identity.certificate_file().to_str().context("a path in UTF-8")?.to_owned();
    let patience = patience.saturating_sub(MARGIN);
    let fetching =
        tokio::task::spawn_blocking(move || peer::quiche::get(&certificate, remote, PATH, patience));
    let fetched = async { fetching.await?.context("quiche fetches") };
    let answered = async { ours::answer(&endpoint, body.clone()).await.context("hvq serves") };
    let (received, paths) = tokio::try_join!(fetched, answered)?;
    check(&received, &body, "received by quiche")?;
    Ok(exchange(paths))
}
