//! Several origins behind one host: who gets which request, and what becomes of those that fail.

use crate::operation::ask_admin;
use crate::setup::{Client, Fixture, Origin, get, post, within};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

/// A gateway in front of these origins, with `health` as the rules.
fn before(origins: &[String], health: &str) -> String {
    let origins: Vec<String> = origins.iter().map(|origin| format!("'{origin}'")).collect();
    format!(
        "admin = '127.0.0.1:0'\n[timeouts]\nconnect = '500ms'\nfirst_byte = '2s'\n[[host]]\nnames = ['localhost']\n\
         origins = [{}]\n[host.health]\n{health}\n",
        origins.join(", ")
    )
}

fn url(origin: &Origin) -> String {
    format!("http://{}", origin.address)
}

/// The value of a metric with this label.
async fn metric(place: &Fixture, name: &str, origin: &str) -> u64 {
    let text = ask_admin(place.gateway.admin_addr().unwrap(), "/metrics", "localhost").await;
    let start = format!("hvq_gateway_{name}{{origin=\"{origin}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start));
    line.unwrap_or_else(|| panic!("{start} is not in\n{text}")).parse().unwrap()
}

/// Waits until `what` holds.
async fn until<F: Future<Output = bool>>(mut what: impl FnMut() -> F) {
    within(async {
        while !what().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// An origin that closes each connection once a request came, for as long as `broken` says so.
async fn fragile(broken: &Arc<AtomicBool>) -> Origin {
    let broken = broken.clone();
    Origin::new(move |mut visit| {
        let broken = broken.clone();
        async move {
            while visit.head().await.is_some() && !broken.load(Ordering::Relaxed) {
                visit.ok(b"fragile").await;
            }
        }
    })
    .await
}

async fn asked(client: &Client, requests: usize) {
    for number in 0..requests {
        assert_eq!(client.status(get("/")).await, 200, "request {number}");
    }
}

#[tokio::test]
async fn a_request_goes_where_the_fewest_are_under_way() {
    let gate = Arc::new(Semaphore::new(0));
    let waits = gate.clone();
    let slow = Origin::new(move |mut visit| {
        let waits = waits.clone();
        async move {
            while visit.head().await.is_some() {
                waits.acquire().await.unwrap().forget();
                visit.ok(b"slow").await;
            }
        }
    })
    .await;
    let quick = Origin::plain().await;
    let place = Fixture::new(&before(&[url(&slow), url(&quick)], "").replace("'2s'", "'30s'")).await;
    let client = place.client().await;
    // Until one hangs at the slow one.
    let mut held = Vec::new();
    while slow.seen().is_empty() {
        held.push(client.send(get("/")).await.unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let before = quick.seen().len();
    assert_eq!(metric(&place, "origin_requests", &url(&slow)).await, 1);
    asked(&client, 20).await;
    assert_eq!((slow.seen().len(), quick.seen().len()), (1, before + 20));
    gate.add_permits(100);
    until(async || metric(&place, "origin_requests", &url(&slow)).await == 0).await;
}

#[tokio::test]
async fn an_origin_that_fails_costs_no_safe_request_and_is_ejected_for_a_while() {
    // I18.
    let broken = Arc::new(AtomicBool::new(true));
    let (fragile, sound) = (fragile(&broken).await, Origin::plain().await);
    let place = Fixture::new(&before(&[url(&fragile), url(&sound)], "failures = 3\nrest = '700ms'")).await;
    let client = place.client().await;
    let admin = place.gateway.admin_addr().unwrap();
    asked(&client, 20).await;
    assert_eq!(fragile.seen().len(), 3, "no more than it takes");
    assert_eq!(metric(&place, "origin_up", &url(&fragile)).await, 0);
    assert_eq!(metric(&place, "origin_ejections_total", &url(&fragile)).await, 1);
    let health = ask_admin(admin, "/health", "localhost").await;
    let line = format!("ok\norigin {} is ejected\n", url(&fragile));
    assert!(health.starts_with("HTTP/1.1 200") && health.ends_with(&line), "{health}");
    let metrics = ask_admin(admin, "/metrics", "localhost").await;
    assert!(metrics.contains("hvq_gateway_retries_total 3\n"), "{metrics}");
    broken.store(false, Ordering::Relaxed);
    until(async || metric(&place, "origin_up", &url(&fragile)).await == 1).await;
    asked(&client, 10).await;
    assert!(fragile.seen().len() > 5, "it is asked again: {}", fragile.seen().len());
}

#[tokio::test]
async fn what_may_do_harm_twice_is_tried_once() {
    let broken = Arc::new(AtomicBool::new(true));
    let (first, second) = (fragile(&broken).await, fragile(&broken).await);
    let place = Fixture::new(&before(&[url(&first), url(&second)], "failures = 100")).await;
    let client = place.client().await;
    assert_eq!(client.status(post("/", "")).await, 502);
    assert_eq!(first.seen().len() + second.seen().len(), 1, "POST is not idempotent");
    assert_eq!(client.status(get("/")).await, 502);
    assert_eq!(first.seen().len() + second.seen().len(), 3, "GET is: once at each");
}

#[tokio::test]
async fn nothing_is_asked_for_again_once_a_part_of_the_answer_has_passed() {
    let half = Origin::new(|mut visit| async move {
        visit.head().await;
        visit.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
    })
    .await;
    let sound = Origin::plain().await;
    let place = Fixture::new(&before(&[url(&half), url(&sound)], "")).await;
    let client = place.client().await;
    let mut broke_off = 0;
    for _ in 0..2 {
        broke_off += usize::from(client.ask(get("/")).await.is_err());
    }
    assert_eq!((broke_off, half.seen().len(), sound.seen().len()), (1, 1, 1));
}

#[tokio::test]
async fn an_origin_that_is_not_there_is_passed_over_and_the_last_one_is_never_ejected() {
    let gone: SocketAddr = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let broken = Arc::new(AtomicBool::new(false));
    let (gone, sound) = (format!("http://{gone}"), fragile(&broken).await);
    let place =
        Fixture::new(&before(&[gone.clone(), url(&sound)], "failures = 1\nrest = '60s'\nmost = 100")).await;
    let client = place.client().await;
    asked(&client, 5).await;
    assert_eq!(metric(&place, "origin_up", &gone).await, 0);
    broken.store(true, Ordering::Relaxed);
    for _ in 0..5 {
        assert_eq!(client.status(get("/")).await, 502);
    }
    let text = ask_admin(place.gateway.admin_addr().unwrap(), "/metrics", "localhost").await;
    let up = text.lines().filter(|line| line.starts_with("hvq_gateway_origin_up") && line.ends_with(" 1"));
    assert_eq!(up.count(), 1, "{text}");
}

#[tokio::test]
async fn checks_take_an_origin_out_before_a_client_meets_it() {
    let well = Arc::new(AtomicBool::new(false));
    let says = well.clone();
    let checked = Origin::new(move |mut visit| {
        let says = says.clone();
        async move {
            while let Some(head) = visit.head().await {
                if head.starts_with("GET /well ") && !says.load(Ordering::Relaxed) {
                    visit.write("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await;
                } else {
                    visit.ok(b"checked").await;
                }
            }
        }
    })
    .await;
    let sound = Origin::plain().await;
    let health = "failures = 2\npath = '/well'\ninterval = '50ms'\ntimeout = '1s'";
    let mut place = Fixture::new(&before(&[url(&checked), url(&sound)], health)).await;
    until(async || metric(&place, "origin_up", &url(&checked)).await == 0).await;
    let client = place.client().await;
    asked(&client, 10).await;
    assert!(checked.seen().iter().all(|head| head.starts_with("get /well ")), "{:?}", checked.seen());
    well.store(true, Ordering::Relaxed);
    until(async || metric(&place, "origin_up", &url(&checked)).await == 1).await;
    asked(&client, 4).await;
    assert!(checked.seen().iter().any(|head| head.starts_with("get / ")));
    // A configuration without checks ends them.
    place.reload(&before(&[url(&checked), url(&sound)], "")).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let seen = checked.seen().len();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(checked.seen().len(), seen);
}

#[cfg(unix)]
#[tokio::test]
async fn an_origin_may_be_behind_a_socket_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let serving = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut seen, mut part) = (Vec::new(), [0; 4096]);
                while let Ok(count @ 1..) = stream.read(&mut part).await {
                    seen.extend_from_slice(&part[..count]);
                    if seen.ends_with(b"\r\n\r\n") {
                        let is_named = String::from_utf8_lossy(&seen).contains("\r\nhost: localhost\r\n");
                        let body = if is_named { "local" } else { "nameless" };
                        let length = body.len();
                        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
                        stream.write_all(answer.as_bytes()).await.unwrap();
                        seen.clear();
                    }
                }
            });
        }
    });
    let place = Fixture::new(&before(&[format!("unix:{}", path.display())], "")).await;
    let client = place.client().await;
    for _ in 0..3 {
        assert_eq!(client.ask(get("/")).await.unwrap().1, b"local");
    }
    serving.abort();
}
