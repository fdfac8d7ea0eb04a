//! Requests that come before the handshake is complete (RFC 8470).

use crate::setup::{Fixture, Origin, body, get, post, to, within};
use bytes::Bytes;
use http::Request;
use hvq::tls::MemorySessions;
use hvq::{ClientConfig, ClientTls, EarlyData, Endpoint, Policy, TransportConfig, Verify};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// The delay of a datagram either way: an early request is so by far.
const DELAY: Duration = Duration::from_millis(30);

/// Takes datagrams of one client to `remote` and back, late.
async fn slow(remote: SocketAddr) -> (SocketAddr, JoinHandle<()>) {
    let front = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = front.local_addr().unwrap();
    let relay = tokio::spawn(async move {
        let mut client = None;
        let (mut there, mut here) = (vec![0; 65_535], vec![0; 65_535]);
        loop {
            let (socket, to, datagram) = tokio::select! {
                Ok((size, from)) = front.recv_from(&mut there) => {
                    client = Some(from);
                    (back.clone(), remote, there[..size].to_vec())
                }
                Ok((size, _)) = back.recv_from(&mut here) => match client {
                    Some(client) => (front.clone(), client, here[..size].to_vec()),
                    None => continue,
                }
            };
            tokio::spawn(async move {
                tokio::time::sleep(DELAY).await;
                let _sent = socket.send_to(&datagram, to).await;
            });
        }
    });
    (address, relay)
}

#[tokio::test]
async fn what_is_safe_is_handed_on_as_early_and_the_rest_waits_for_the_handshake() {
    // I9.
    let origin = Origin::plain().await;
    let place =
        Fixture::new(&format!("early_data = true\n{}", to(origin.address).replace("500ms", "5s"))).await;
    let (remote, relay) = slow(place.gateway.local_addrs()[0]).await;
    let sessions = Arc::new(MemorySessions::default());
    let builder = ClientTls::builder().alpn([hvq_h3::ALPN]).verify(Verify::Insecure);
    let tls = builder.sessions(sessions.clone()).early_data(EarlyData::On).build().unwrap();
    let transport = TransportConfig::new(Arc::new(|| Policy::default().scheduler()));
    let config = ClientConfig::new(tls, Arc::new(transport));
    let endpoint = Endpoint::client(&[]).unwrap();
    let first = within(endpoint.connect(config.clone(), remote, "localhost").unwrap()).await.unwrap();
    within(async {
        while sessions.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    drop(first);
    let connecting = endpoint.connect(config, remote, "localhost").unwrap();
    let (connection, accepted) = connecting.into_0rtt().expect("the ticket permits it");
    let (mut driver, requests) =
        h3::client::new(hvq_h3::adapter::Connection::new(connection.clone())).await.unwrap();
    tokio::spawn(async move { drop(poll_fn(|context| driver.poll_close(context)).await) });
    let send = async |request: Request<Bytes>| {
        let (parts, content) = request.into_parts();
        let mut stream = requests.clone().send_request(Request::from_parts(parts, ())).await.unwrap();
        if !content.is_empty() {
            stream.send_data(content).await.unwrap();
        }
        stream.finish().await.unwrap();
        stream
    };
    let mut safe = within(send(get("/safe"))).await;
    let mut unsafe_one = within(send(post("/not-safe", "x"))).await;
    assert!(connection.is_early_data(), "both were sent before the handshake was complete");
    for stream in [&mut safe, &mut unsafe_one] {
        assert_eq!(within(stream.recv_response()).await.unwrap().status().as_u16(), 200);
        within(body(stream)).await.unwrap();
    }
    assert!(within(accepted).await);
    let seen = origin.seen();
    let head = |path: &str| seen.iter().find(|head| head.contains(path)).unwrap();
    assert!(head("get /safe ").contains("\r\nearly-data: 1\r\n"), "{}", head("get /safe "));
    assert!(!head("post /not-safe ").contains("early-data"), "{}", head("post /not-safe "));
    relay.abort();
}
