//! Requests and responses on their way, and origins that fail.

use crate::setup::{Fixture, Origin, body, bytes, code, get, length, post, to, within};
use bytes::Bytes;
use http::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn an_origin_is_told_who_asks_and_nothing_that_concerns_one_hop() {
    let origin = Origin::plain().await;
    let place = Fixture::before(origin.address).await;
    let client = place.client().await;
    let mut request = get("/a?b=c");
    for (name, value) in [
        ("x-forwarded-for", "10.9.8.7"),
        ("priority", "u=1, i"),
        ("te", "trailers"),
        ("cookie", "a=1"),
        ("cookie", "b=2"),
        ("x-kept", "yes"),
    ] {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    let (response, content) = client.ask(request).await.unwrap();
    assert_eq!((response.status().as_u16(), content.as_slice()), (200, &b"/a?b=c"[..]));
    let seen = origin.seen();
    let lines: Vec<&str> = seen[0].lines().collect();
    assert_eq!(lines[0], "get /a?b=c http/1.1");
    for line in [
        "host: localhost",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-proto: https",
        "forwarded: for=127.0.0.1;host=\"localhost\";proto=https",
        "via: 3 hvq-gateway",
        "priority: u=1, i",
        "cookie: a=1; b=2",
        "x-kept: yes",
    ] {
        assert!(lines.contains(&line), "{line} is not in {lines:?}");
    }
    assert!(
        !seen[0].contains("te:") && !seen[0].contains("10.9.8.7") && !seen[0].contains("transfer-encoding")
    );
}

#[tokio::test]
async fn large_bodies_go_both_ways_over_two_paths() {
    let origin = Origin::new(|mut visit| async move {
        while let Some(head) = visit.head().await {
            let body = visit.body(length(&head).unwrap()).await;
            visit.ok(&body).await;
        }
    })
    .await;
    let place = Fixture::before(origin.address).await;
    let client = place.client_of_two_paths().await;
    let content = bytes(3_000_000);
    let mut request = post("/", content.clone());
    request.headers_mut().insert("content-length", content.len().into());
    let (response, echo) = client.ask(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    assert!(echo == content, "{} bytes came back", echo.len());
}

#[tokio::test]
async fn a_body_of_unknown_length_is_sent_in_chunks_and_trailers_come_back() {
    let origin = Origin::new(|mut visit| async move {
        let head = visit.head().await.unwrap();
        assert!(head.contains("transfer-encoding: chunked") && length(&head).is_none(), "{head}");
        assert_eq!(visit.body(5 + 3 + 2 + 5).await, b"5\r\nhello\r\n0\r\n\r\n");
        visit
            .write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n")
            .await;
    })
    .await;
    let place = Fixture::before(origin.address).await;
    let client = place.client().await;
    within(async {
        let mut stream = client.send(post("/", "hello")).await.unwrap();
        let response = stream.recv_response().await.unwrap();
        assert!(!response.headers().contains_key("transfer-encoding"));
        assert_eq!(body(&mut stream).await.unwrap(), b"abc");
        let trailers = stream.recv_trailers().await.unwrap().unwrap();
        assert_eq!(trailers["x-sum"], "7");
    })
    .await;
}

#[tokio::test]
async fn a_post_without_a_body_says_so() {
    let origin = Origin::plain().await;
    let place = Fixture::before(origin.address).await;
    assert_eq!(place.client().await.status(post("/", "")).await, 200);
    assert_eq!(length(&origin.seen()[0]), Some(0));
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_the_origin_up() {
    let written = Arc::new(AtomicUsize::new(0));
    let count = written.clone();
    let origin = Origin::new(move |mut visit| {
        let count = count.clone();
        async move {
            visit.head().await;
            visit.write("HTTP/1.1 200 OK\r\n\r\n").await;
            let part = [7; 65_536];
            while visit.write(part).await {
                count.fetch_add(part.len(), Ordering::Relaxed);
            }
        }
    })
    .await;
    let place = Fixture::new(&to(origin.address).replace("idle = '1s'", "idle = '30s'")).await;
    let client = place.client().await;
    let mut stream = client.send(get("/")).await.unwrap();
    within(stream.recv_response()).await.unwrap();
    // Windows and buffers fill up, and then nothing moves any more.
    let mut last = 0;
    within(async {
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = written.load(Ordering::Relaxed);
            if now == last && now > 0 {
                break;
            }
            last = now;
        }
    })
    .await;
    assert!(last < 64 << 20, "{last} bytes went towards a client that reads nothing");
}

#[tokio::test]
async fn origins_that_are_dead_slow_or_silent_are_told_apart_in_time() {
    // I13.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let place = Fixture::before(closed).await;
    let (response, text) = place.client().await.ask(get("/")).await.unwrap();
    assert_eq!(response.status().as_u16(), 502);
    assert!(String::from_utf8(text).unwrap().contains("cannot be reached"));

    let slow = Origin::new(|mut visit| async move {
        visit.head().await;
        tokio::time::sleep(Duration::from_secs(30)).await;
    })
    .await;
    let place = Fixture::before(slow.address).await;
    let start = Instant::now();
    assert_eq!(place.client().await.status(get("/")).await, 504);
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_connection_that_is_closed_before_the_answer_is_tried_once_more_if_that_is_safe() {
    let visits = Arc::new(AtomicUsize::new(0));
    let count = visits.clone();
    let origin = Origin::new(move |mut visit| {
        let first = count.fetch_add(1, Ordering::Relaxed) == 0;
        async move {
            visit.head().await;
            if !first {
                visit.ok(b"second").await;
            }
        }
    })
    .await;
    let place = Fixture::before(origin.address).await;
    let client = place.client().await;
    assert_eq!(client.ask(get("/")).await.unwrap().1, b"second");
    visits.store(0, Ordering::Relaxed);
    let mut request = post("/", "once");
    request.headers_mut().insert("content-length", 4.into());
    assert_eq!(client.status(request).await, 502, "what may do harm twice is not sent twice");
    assert_eq!(visits.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_response_that_breaks_off_does_not_look_whole() {
    for head in ["content-length: 100\r\n\r\n", "transfer-encoding: chunked\r\n\r\n3\r\n"] {
        let origin = Origin::new(move |mut visit| async move {
            visit.head().await;
            visit.write(format!("HTTP/1.1 200 OK\r\n{head}abc")).await;
        })
        .await;
        let place = Fixture::before(origin.address).await;
        let client = place.client().await;
        let result = client.ask(get("/")).await;
        assert_eq!(code(result.map(|_| ())), 0x102, "RFC 9114 §8.1: H3_INTERNAL_ERROR");
    }
}

#[tokio::test]
async fn an_origin_that_pauses_for_too_long_breaks_off() {
    let origin = Origin::new(|mut visit| async move {
        visit.head().await;
        visit.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc").await;
        tokio::time::sleep(Duration::from_secs(30)).await;
    })
    .await;
    let place = Fixture::before(origin.address).await;
    let client = place.client().await;
    assert_eq!(code(client.ask(get("/")).await.map(|_| ())), 0x102);
}

#[tokio::test]
async fn an_answer_that_is_no_http_is_a_bad_gateway() {
    // I14.
    for answer in [
        "nonsense\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nbad header: 1\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\na: \u{1}\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!".to_owned(),
        format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "b".repeat(300_000)),
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n".to_owned(),
    ] {
        let said = answer.clone();
        let origin = Origin::new(move |mut visit| {
            let answer = answer.clone();
            async move {
                visit.head().await;
                visit.write(answer).await;
            }
        })
        .await;
        let place = Fixture::before(origin.address).await;
        let status = place.client().await.status(get("/")).await;
        assert_eq!(status, 502, "{}", &said[..said.len().min(60)]);
    }
}

#[tokio::test]
async fn an_early_answer_to_an_upload_arrives() {
    // H21: the origin does not read the body.
    let origin = Origin::new(|mut visit| async move {
        visit.head().await;
        visit.write("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbig").await;
        // As servers do, so that the answer is not lost with the connection.
        visit.stream.shutdown().await.unwrap();
        visit.body(usize::MAX).await;
    })
    .await;
    let place = Fixture::before(origin.address).await;
    let client = place.client().await;
    let request = Request::post("https://localhost/").header("content-length", 50_000_000).body(()).unwrap();
    within(async {
        let stream = client.requests.clone().send_request(request).await.unwrap();
        let (mut send, mut receive) = stream.split();
        let upload =
            tokio::spawn(
                async move { while send.send_data(Bytes::from_static(&[0; 65_536])).await.is_ok() {} },
            );
        let response = receive.recv_response().await.unwrap();
        assert_eq!(response.status().as_u16(), 413);
        upload.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn two_thousand_users_get_each_their_own_answer() {
    // I16, over connections that are used again.
    let origin = Origin::new(|mut visit| async move {
        while let Some(head) = visit.head().await {
            let token =
                head.lines().find_map(|line| line.strip_prefix("x-token: ")).unwrap_or("none").to_owned();
            visit.ok(token.as_bytes()).await;
        }
    })
    .await;
    let place = Fixture::new(&to(origin.address).replace("700ms", "20s")).await;
    let clients = [place.client().await, place.client_of_two_paths().await];
    let asked = clients.iter().enumerate().map(|(user, client)| async move {
        for round in 0..20 {
            let asked = (0..50).map(|index| async move {
                let token = format!("{user}-{round}-{index}");
                let mut request = get("/");
                request.headers_mut().insert("x-token", token.parse().unwrap());
                let (_, answer) = client.ask(request).await.unwrap();
                assert_eq!(String::from_utf8(answer).unwrap(), token);
            });
            futures::future::join_all(asked).await;
        }
    });
    futures::future::join_all(asked).await;
    assert_eq!(origin.heads.lock().unwrap().len(), 2_000);
}
