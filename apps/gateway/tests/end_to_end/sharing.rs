//! One client that takes all there is, and others who want some: attacks.md K4 and K5.

use crate::operation::ask_admin;
use crate::setup::{Fixture, Origin, TOKEN, body, code, get, to, within};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

const EXCESSIVE_LOAD: u64 = 0x107;
/// Networks of loopback, as far as limits are concerned: a /24 each.
const GREEDY: [u8; 4] = [127, 0, 1, 1];
const OTHER: [u8; 4] = [127, 0, 2, 1];

/// An origin that answers `/` at once, and everything else once `leave` gives a permit.
async fn origin(leave: &Arc<Semaphore>) -> Origin {
    let leave = leave.clone();
    Origin::new(move |mut visit| {
        let leave = leave.clone();
        async move {
            while let Some(head) = visit.head().await {
                if !head.starts_with("GET / ") {
                    leave.acquire().await.unwrap().forget();
                }
                visit.ok(b"here").await;
            }
        }
    })
    .await
}

fn told(text: &str, line: &str) -> bool {
    text.lines().any(|present| present == line)
}

/// The metrics, once they have `line`.
async fn metrics(place: &Fixture, line: &str) -> String {
    let admin = place.gateway.admin_addr().unwrap();
    within(async {
        loop {
            let text = ask_admin(admin, "/metrics", "localhost").await;
            if told(&text, line) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

#[tokio::test]
async fn a_client_that_takes_every_request_gives_way_to_others() {
    // K5.
    let leave = Arc::new(Semaphore::new(0));
    let origin = origin(&leave).await;
    let text = to(origin.address).replace("700ms", "60s").replace("idle = '1s'", "idle = '60s'");
    let place = Fixture::new(&format!("admin = '127.0.0.1:0'\n[limits]\nrequests = 20\n{text}")).await;
    let (greedy, other) = (place.client_from(GREEDY).await, place.client_from(OTHER).await);
    within(async {
        let mut held = Vec::new();
        for _ in 0..20 {
            held.push(greedy.send(get("/later")).await.unwrap());
        }
        while origin.heads.lock().unwrap().len() < 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // As long as nobody else wants any, all are its own, and no more.
        assert_eq!(greedy.status(get("/")).await, 503);
        for _ in 0..5 {
            assert_eq!(other.status(get("/")).await, 200);
        }
        // What gave way, the newest, is told so, and the rest goes on.
        let mut last = held.pop().unwrap();
        assert_eq!(code(last.recv_response().await), EXCESSIVE_LOAD);
        leave.add_permits(19);
        for stream in &mut held {
            assert_eq!(stream.recv_response().await.unwrap().status().as_u16(), 200);
            assert_eq!(body(stream).await.unwrap(), b"here");
        }
    })
    .await;
    // What gave way is no longer under way.
    let metrics = metrics(&place, "hvq_gateway_requests 0").await;
    assert!(told(&metrics, "hvq_gateway_refused_total{what=\"request\"} 1"), "{metrics}");
    assert!(told(&metrics, "hvq_gateway_displaced_total{what=\"request\"} 1"), "{metrics}");
}

#[tokio::test]
async fn a_token_that_takes_every_tunnel_gives_way_to_others_wherever_it_is_shown() {
    // K5.
    let origin = Origin::new(|mut visit| async move {
        let mut first = [0; 5];
        tokio::io::AsyncReadExt::read_exact(&mut visit.stream, &mut first).await.unwrap();
        visit.write(first).await;
        visit.body(usize::MAX).await;
    })
    .await;
    let bob = "fedcba9876543210";
    let tokens = format!("ann {TOKEN}\nbob {bob}\n");
    let text = "admin = '127.0.0.1:0'\n[limits]\ntunnels = 4\n\
                [proxy]\nallow = ['127.0.0.1:*']\ntokens = 'DIR/tokens'\nreach = ['127.0.0.0/8']\n";
    let place = Fixture::with(text, &[("tokens", &tokens)]).await;
    let to = origin.address.to_string();
    // The same token from four networks is one client.
    let mut held = Vec::new();
    for network in 1..=4 {
        let client = place.client_from([127, 0, network, 1]).await;
        let (status, stream) = client.tunnel(&to, TOKEN).await;
        assert_eq!(status, 200);
        held.push((client, stream));
    }
    let more = place.client_from([127, 0, 5, 1]).await;
    assert_eq!(more.tunnel(&to, TOKEN).await.0, 503);
    // Another's gets its half, though it comes from the address of the first.
    let other = place.client_from([127, 0, 1, 1]).await;
    let mut others = Vec::new();
    for expected in [200, 200, 503] {
        let (status, mut stream) = other.tunnel(&to, bob).await;
        assert_eq!(status, expected);
        if status == 200 {
            within(async {
                stream.send_data(Bytes::from_static(b"hello")).await.unwrap();
                assert!(stream.recv_data().await.unwrap().is_some());
            })
            .await;
            others.push(stream);
        }
    }
    let metrics = metrics(&place, "hvq_gateway_tunnels 4").await;
    assert!(told(&metrics, "hvq_gateway_displaced_total{what=\"tunnel\"} 2"), "{metrics}");
    assert!(told(&metrics, "hvq_gateway_refused_total{what=\"tunnel\"} 2"), "{metrics}");
    let mut ended = 0;
    for (_client, stream) in &mut held {
        let data = tokio::time::timeout(Duration::from_millis(200), stream.recv_data()).await;
        if let Ok(data) = data {
            assert_eq!(code(data.map(|_| ())), EXCESSIVE_LOAD);
            ended += 1;
        }
    }
    assert_eq!(ended, 2);
}

#[tokio::test]
async fn an_address_that_takes_every_connection_gives_way_to_others() {
    // K4, of connections that are complete: the crowded network loses one, and is told.
    let origin = Origin::plain().await;
    let text =
        format!("admin = '127.0.0.1:0'\n[limits]\nconnections = 4\nhandshakes = 8\n{}", to(origin.address));
    let place = Fixture::new(&text).await;
    let mut crowd = Vec::new();
    for _ in 0..4 {
        crowd.push(place.client_from(GREEDY).await);
    }
    for client in &crowd {
        assert_eq!(client.status(get("/")).await, 200);
    }
    let other = place.client_from(OTHER).await;
    assert_eq!(other.status(get("/")).await, 200);
    let closed = within(async {
        loop {
            let closed: Vec<_> = crowd.iter().filter_map(|client| client.connection.close_reason()).collect();
            if !closed.is_empty() {
                return closed;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert_eq!(closed.len(), 1);
    assert!(closed[0].to_string().contains("too many connections from this network"), "{}", closed[0]);
    let metrics = metrics(&place, "hvq_gateway_displaced_total{what=\"connection\"} 1").await;
    // J8: no labels of clients.
    assert!(!metrics.contains("127.0.1.1") && !metrics.contains("127.0.2.1"), "{metrics}");
}

#[tokio::test]
async fn places_that_a_reload_adds_or_takes_count_at_once() {
    let leave = Arc::new(Semaphore::new(0));
    let origin = origin(&leave).await;
    let text = |requests: usize| {
        let host = to(origin.address).replace("700ms", "60s").replace("idle = '1s'", "idle = '60s'");
        format!("[limits]\nrequests = {requests}\n{host}")
    };
    let mut place = Fixture::new(&text(1)).await;
    let client = place.client().await;
    let _held = client.send(get("/later")).await.unwrap();
    within(async {
        while origin.heads.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(client.status(get("/")).await, 503);
    assert_eq!(place.reload(&text(2)), Ok(Vec::new()));
    assert_eq!(client.status(get("/")).await, 200);
}
