//! A WebTransport server that sends back what comes on streams and in datagrams, and a client of it, in one process.
//!
//! ```sh
//! cargo run -p hvq-h3 --example web_transport_echo
//! ```

use anyhow::{Context as _, ensure};
use hvq_h3::client::Client;
use hvq_h3::hvq::config::PartialDelivery;
use hvq_h3::hvq::{
    ClientConfig, ClientTls, Connection, Endpoint, Identity, Policy, ServerConfig, ServerTls,
    TransportConfig, Verify,
};
use hvq_h3::serving::{Incoming, Server};
use hvq_h3::web_transport::{Session, SessionEnd, SessionRequest, StreamError, Terms};
use hvq_h3::{ALPN, Settings, Tunnels};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

/// The time that a client has for its request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest text that is sent back, in bytes.
const LONGEST: usize = 1 << 20;

/// Runs both ends; fails unless all came back.
#[tokio::main]
pub async fn main() -> anyhow::Result<()> {
    let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let chain = certificate.cert.pem().into_bytes();
    let key = certificate.signing_key.serialize_pem().into_bytes();
    let server = listen(Identity::Pem { chain: chain.clone(), key })?;
    let address = server.local_addr().context("no address")?;
    let terms = Terms { protocols: vec!["echo-1".to_owned()], ..Terms::default() };
    tokio::spawn(serve(server, terms, drop));

    let tls = ClientTls::builder().alpn([ALPN]).verify(Verify::CaPem(chain)).build()?;
    let endpoint = Endpoint::client(&[])?;
    let connection = endpoint.connect(ClientConfig::new(tls, transport()), address, "localhost")?.await?;
    talk(connection).await
}

/// The configuration of connections: a stream that is reset still tells its session.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::new(Arc::new(|| Policy::default().scheduler()));
    transport.set_partial_delivery(PartialDelivery::On);
    Arc::new(transport)
}

/// The settings of HTTP/3 at both ends.
fn settings() -> Settings {
    Settings { tunnels: Tunnels::WebTransport, ..Settings::default() }
}

/// An endpoint that takes connections.
pub fn listen(identity: Identity) -> anyhow::Result<Endpoint> {
    let tls = ServerTls::builder(identity).alpn([ALPN]).build()?;
    Ok(Endpoint::server(ServerConfig::new(tls, transport()), &["127.0.0.1:0".parse()?])?)
}

/// Echoes in sessions on these `terms` until the endpoint is gone; `ended` is told how each session ends.
pub async fn serve(
    endpoint: Endpoint,
    terms: Terms,
    ended: impl Fn(SessionEnd) + Clone + Send + Sync + 'static,
) {
    while let Some(connection) = endpoint.accept().await {
        let (terms, ended) = (terms.clone(), ended.clone());
        tokio::spawn(async move {
            let Ok(server) = Server::new(connection, settings()).await else { return };
            let answer = |incoming| answer(incoming, terms.clone(), ended.clone());
            server.run(pending(), || PATIENCE, answer).await;
        });
    }
}

/// Answers a request: one for a session begins it, and what comes in it is sent back.
async fn answer(incoming: Incoming, terms: Terms, ended: impl Fn(SessionEnd)) {
    let Ok((request, sending, receiving)) = incoming.request(PATIENCE).await else { return };
    match SessionRequest::new(request, sending, receiving).accept(&terms).await {
        Ok(session) => ended(echo(session).await),
        Err(error) => eprintln!("no session: {error}"),
    }
}

/// Sends back all that comes in a session, until it ends.
async fn echo(session: Session) -> SessionEnd {
    loop {
        tokio::select! {
            Ok((mut send, mut receive)) = session.accept_bi() => {
                tokio::spawn(async move {
                    while let Some(bytes) = receive.read(1 << 16).await? {
                        send.write_all(&bytes).await?;
                    }
                    send.finish()
                });
            }
            Ok(mut receive) = session.accept_uni() => {
                let session = session.clone();
                tokio::spawn(async move {
                    let text = receive.read_to_end(LONGEST).await?;
                    let mut send = session.open_uni().await?;
                    send.write_all(&text).await?;
                    send.finish()?;
                    Ok::<_, StreamError>(())
                });
            }
            Ok(datagram) = session.read_datagram() => {
                // One that is lost is lost.
                let _lost = session.send_datagram(&datagram);
            }
            end = session.closed() => return end,
        }
    }
}

/// A client that says something in each way, and hears it again.
async fn talk(connection: Connection) -> anyhow::Result<()> {
    let client = Client::new(connection, settings()).await?;
    tokio::spawn(client.watch());
    let request = http::Request::get("https://localhost/echo").body(())?;
    let session = client.web_transport(&request, &["echo-2", "echo-1"]).await?;
    ensure!(session.protocol() == Some("echo-1"), "both ends speak echo-1");

    let (mut send, mut receive) = session.open_bi().await?;
    send.write_all(b"there and back").await?;
    send.finish()?;
    ensure!(receive.read_to_end(LONGEST).await? == b"there and back", "another text came back");

    let mut send = session.open_uni().await?;
    send.write_all(b"one way").await?;
    send.finish()?;
    ensure!(session.accept_uni().await?.read_to_end(LONGEST).await? == b"one way", "another text came back");

    let echoed = async {
        loop {
            session.send_datagram(b"quick")?;
            let answer = tokio::time::timeout(Duration::from_millis(100), session.read_datagram());
            if let Ok(answer) = answer.await {
                return answer;
            }
        }
    };
    ensure!(&echoed.await?[..] == b"quick", "another datagram came back");
    session.close(0, "that was all");
    println!("{}", session.closed().await);
    Ok(())
}
