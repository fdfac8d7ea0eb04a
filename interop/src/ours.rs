//! Our side: endpoints of hvq, and what they do with a connection.

use crate::content;
use crate::identity::{Identity, NAME};
use crate::report::PathUse;
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hvq::{
    ClientConfig, ClientTls, Connection, ConnectionError, Endpoint, Policy, ServerConfig, ServerTls,
    TransportConfig, Verify,
};
use hvq_h3::client::Client;
use hvq_h3::serving::{Incoming, Server};
use hvq_h3::{Code, Settings};
use std::collections::BTreeMap;
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// The interval at which the counters of paths are read: a path that was given up has none.
const SAMPLE: Duration = Duration::from_millis(5);

/// The time that a client may take for a header section, and requests at the end of their connection.
const PATIENCE: Duration = Duration::from_secs(10);

fn transport(policy: Policy) -> Arc<TransportConfig> {
    Arc::new(TransportConfig::new(Arc::new(move || policy.scheduler())))
}

/// Returns the configuration of a client that speaks `alpn` and trusts only `identity`.
///
/// # Errors
/// The certificate is refused.
pub fn client(identity: &Identity, alpn: &[u8], policy: Policy) -> Result<ClientConfig> {
    let verify = Verify::CaPem(identity.certificate.clone().into_bytes());
    let tls = ClientTls::builder().alpn([alpn]).verify(verify).build()?;
    Ok(ClientConfig::new(tls, transport(policy)))
}

/// Returns the configuration of a server that speaks `alpn`.
///
/// # Errors
/// The certificate is refused.
pub fn server(identity: &Identity, alpn: &[u8], policy: Policy) -> Result<ServerConfig> {
    let pem = hvq::Identity::Pem {
        chain: identity.certificate.clone().into_bytes(),
        key: identity.key.clone().into_bytes(),
    };
    let tls = ServerTls::builder(pem).alpn([alpn]).build()?;
    Ok(ServerConfig::new(tls, transport(policy)))
}

/// Sends `sent` on a stream and receives another, which must hold `wanted`.
///
/// # Errors
/// The connection ended, or something else arrived.
pub async fn swap(connection: &Connection, sent: Bytes, wanted: &Bytes) -> Result<()> {
    let send = async {
        let mut stream = connection.open_uni().await?;
        stream.write_all(&sent).await.context("hvq writes")?;
        stream.finish()?;
        anyhow::Ok(())
    };
    let receive = async {
        let mut stream = connection.accept_uni().await?;
        let received = stream.read_to_end(wanted.len() + 1).await.context("hvq reads")?;
        content::check(&received, wanted, "received by hvq")
    };
    tokio::try_join!(send, receive)?;
    Ok(())
}

/// Waits for `work`, and tells what `connection` did on each path, those included that were given up meanwhile.
///
/// # Errors
/// Those of `work`.
pub async fn watched<T>(
    connection: &Connection,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, Vec<PathUse>)> {
    let mut used = BTreeMap::new();
    let mut sample = || {
        for path in connection.paths() {
            let counters = path.stats.counters;
            let id = path.id.0;
            used.insert(id, PathUse { id, sent: counters.bytes_sent, received: counters.bytes_received });
        }
    };
    let mut ticks = tokio::time::interval(SAMPLE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tokio::pin!(work);
    let result = loop {
        tokio::select! {
            result = &mut work => break result,
            _ = ticks.tick() => sample(),
        }
    };
    sample();
    let counted = format!("{:?}", used.values());
    let done = result.with_context(|| format!("paths of hvq: {counted}"))?;
    Ok((done, used.into_values().collect()))
}

/// Fetches `path` from the HTTP/3 server at `remote`, and tells the body and what was done on each path.
///
/// # Errors
/// The connection or the request failed, or the status is not 200.
pub async fn get(identity: &Identity, remote: SocketAddr, path: &str) -> Result<(Bytes, Vec<PathUse>)> {
    let endpoint = Endpoint::client(&[])?;
    let config = client(identity, hvq_h3::ALPN, Policy::default())?;
    let connection = endpoint.connect(config, remote, NAME)?.await.context("the handshake")?;
    let fetched = watched(&connection, fetch(connection.clone(), path)).await;
    endpoint.close(Code::H3_NO_ERROR.value(), b"");
    // The peer is told; a peer that does not listen keeps nobody waiting.
    let _told = tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
    fetched
}

async fn fetch(connection: Connection, path: &str) -> Result<Bytes> {
    let client = Client::new(connection.clone(), Settings::default()).await?;
    let request = Request::get(format!("https://{NAME}{path}")).body(())?;
    let answer = async {
        let (_sent, mut receiving) = client.whole(&request, Bytes::new()).await?;
        let response = receiving.response().await?;
        ensure!(response.status() == StatusCode::OK, "the server answers {}", response.status());
        let mut body = Vec::new();
        while let Some(part) = receiving.data().await? {
            body.extend_from_slice(&part);
        }
        Ok(Bytes::from(body))
    };
    tokio::select! {
        result = answer => result,
        () = client.watch() => Err(connection.closed().await).context("the connection ended"),
    }
}

/// An HTTP/3 server that answers every request with `body`.
///
/// # Errors
/// The server cannot be bound.
pub fn http3_server(identity: &Identity) -> Result<Endpoint> {
    let config = server(identity, hvq_h3::ALPN, Policy::default())?;
    Ok(Endpoint::server(config, &[SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()])?)
}

/// Answers the requests of the next connection, until the client closes it, and tells what was done on each path.
///
/// # Errors
/// The connection ended otherwise.
pub async fn answer(endpoint: &Endpoint, body: Bytes) -> Result<Vec<PathUse>> {
    let connection = endpoint.accept().await.context("the endpoint is closed")?;
    let served = watched(&connection, serve(connection.clone(), body)).await?;
    Ok(served.1)
}

async fn serve(connection: Connection, body: Bytes) -> Result<()> {
    let server = Server::new(connection.clone(), Settings::default()).await?;
    let answer = move |incoming: Incoming| {
        let body = body.clone();
        async move {
            let Ok((_, mut sending, _)) = incoming.request(PATIENCE).await else { return };
            let response = Response::builder().header("content-length", body.len()).body(());
            if let Ok(response) = response {
                let _gone = sending.whole(&response, body).await;
            }
        }
    };
    server.run(pending(), || PATIENCE, answer).await;
    match connection.closed().await {
        ConnectionError::PeerApplication { code, .. } if code == Code::H3_NO_ERROR.value() => Ok(()),
        error => Err(error.into()),
    }
}
