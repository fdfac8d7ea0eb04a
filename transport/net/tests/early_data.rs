//! Resumption and 0-RTT over loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{PATIENCE, Pki, echo, local, transport, within};
use hvq::tls::MemorySessions;
use hvq::{ClientConfig, ClientTls, EarlyData, Endpoint, ServerConfig, ServerTls};
use std::sync::Arc;
use std::time::Duration;

/// A server that accepts 0-RTT and echoes, a client that offers it, and where it keeps its tickets.
fn world(pki: &Pki, accept: EarlyData) -> (Endpoint, Endpoint, ClientConfig, Arc<MemorySessions>) {
    let tls = ServerTls::builder(pki.identity()).alpn(["hq-test"]).early_data(accept).build().unwrap();
    let config = ServerConfig::new(tls, Arc::new(transport()));
    let server = Endpoint::server(config, &[local("127.0.0.1:0")]).unwrap();
    let sessions = Arc::new(MemorySessions::default());
    let builder = ClientTls::builder().alpn(["hq-test"]).verify(pki.verify());
    let tls = builder.sessions(sessions.clone()).early_data(EarlyData::On).build().unwrap();
    let client = Endpoint::client(&[local("127.0.0.1:0")]).unwrap();
    let accepting = server.clone();
    tokio::spawn(async move {
        while let Some(connection) = accepting.accept().await {
            echo(connection);
        }
    });
    (server, client, ClientConfig::new(tls, Arc::new(transport())), sessions)
}

async fn wait_for_tickets(sessions: &MemorySessions) {
    within(async {
        while sessions.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_second_connection_sends_before_the_handshake_is_complete() {
    let pki = Pki::new();
    let (server, client, config, sessions) = world(&pki, EarlyData::On);
    let remote = server.local_addr().unwrap();
    let connecting = client.connect(config.clone(), remote, common::NAME).unwrap();
    let connecting = connecting.into_0rtt().expect_err("there is no ticket yet");
    let first = within(connecting).await.unwrap();
    wait_for_tickets(&sessions).await;
    assert!(!first.is_early_data() && first.early_data_accepted() == Some(false));

    let connecting = client.connect(config, remote, common::NAME).unwrap();
    let (second, accepted) = connecting.into_0rtt().expect("the ticket permits it");
    assert!(second.is_early_data() && second.early_data_accepted().is_none());
    let (mut send, mut receive) = second.open_bi().await.unwrap();
    send.write_all(b"early").await.unwrap();
    send.finish().unwrap();
    assert_eq!(within(receive.read_to_end(100)).await.unwrap(), b"early");
    assert!(within(accepted).await);
    assert!(second.is_resumed() && !second.is_early_data());
    drop((first, second, send, receive));
    tokio::time::timeout(PATIENCE, client.wait_idle()).await.unwrap();
}

#[tokio::test]
async fn a_server_that_accepts_none_resumes_and_loses_nothing() {
    let pki = Pki::new();
    let (server, client, config, sessions) = world(&pki, EarlyData::Off);
    let remote = server.local_addr().unwrap();
    let first = within(client.connect(config.clone(), remote, common::NAME).unwrap()).await.unwrap();
    wait_for_tickets(&sessions).await;
    drop(first);
    let connecting = client.connect(config, remote, common::NAME).unwrap();
    // Tickets of such a server do not permit it.
    let second = within(connecting.into_0rtt().expect_err("no 0-RTT")).await.unwrap();
    assert!(second.is_resumed());
}
