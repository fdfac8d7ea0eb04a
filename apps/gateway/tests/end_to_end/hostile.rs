//! Clients that want the gateway or an origin to go wrong: tests/ATTACKS.md H and I.

use crate::setup::{Fixture, Origin, code, get, length, post, to, within};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, uri};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const MESSAGE_ERROR: u64 = 0x10e;

/// A request for what `path` says, which need not be a path.
fn request(method: Method, path: &str, fields: &[(&str, &str)]) -> Request<Bytes> {
    let mut parts = uri::Parts::default();
    parts.scheme = Some(uri::Scheme::HTTPS);
    parts.authority = Some("localhost".parse().unwrap());
    parts.path_and_query = Some(path.parse().unwrap());
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = method;
    *request.uri_mut() = http::Uri::from_parts(parts).unwrap();
    for (name, value) in fields {
        request
            .headers_mut()
            .append(name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap());
    }
    request
}

#[tokio::test]
async fn what_would_mean_something_else_in_http_1_never_gets_to_an_origin() {
    // I2, I3, I4, I5.
    let origin = Origin::plain().await;
    let place = Fixture::before(origin.address).await;
    let client = place.client().await;
    for fields in [
        &[("transfer-encoding", "chunked")][..],
        &[("connection", "close")],
        &[("connection", "content-length")],
        &[("upgrade", "h2c")],
        &[("keep-alive", "1")],
        &[("te", "gzip")],
        &[("content-length", "5"), ("content-length", "6")],
        &[("content-length", "+0")],
        &[("content-length", "0, 0")],
        &[("content-length", "99999999999999999999")],
        &[("content-length", "0x0")],
        &[("host", "localhost"), ("host", "localhost")],
    ] {
        let result = client.ask(request(Method::POST, "/", fields)).await;
        assert_eq!(code(result.map(|_| ())), MESSAGE_ERROR, "{fields:?}");
    }
    let result = client.ask(request(Method::GET, "*", &[])).await;
    assert_eq!(code(result.map(|_| ())), MESSAGE_ERROR);
    assert_eq!(client.status(request(Method::GET, "/\u{fc}", &[])).await, 400);
    assert_eq!(origin.seen().len(), 0, "{:?}", origin.seen());
    // The connection goes on.
    assert_eq!(client.status(get("/")).await, 200);
}

#[tokio::test]
async fn names_with_underscores_and_ports_beyond_16_bits_never_get_to_an_origin() {
    // K8: what an origin behind CGI or WSGI would take for a word of the gateway's.
    let origin = Origin::plain().await;
    let mut place = Fixture::before(origin.address).await;
    let client = place.client().await;
    let fields = [("x_real_ip", "127.0.0.1"), ("X_Forwarded_For", "127.0.0.1"), ("content_length", "5")];
    assert_eq!(client.status(request(Method::GET, "/", &fields)).await, 200);
    let head = origin.seen().remove(0);
    assert!(!head.contains('_') && head.contains("x-forwarded-for: 127.0.0.1"), "{head}");
    for port in ["65536", "99999", "99999999999"] {
        let asked = Request::get(format!("https://localhost:{port}/")).body(Bytes::new()).unwrap();
        assert_eq!(code(client.ask(asked).await.map(|_| ())), MESSAGE_ERROR, "{port}");
    }
    assert_eq!(origin.seen().len(), 1);
    place.reload(&format!("{}underscores = 'keep'\n", to(origin.address))).unwrap();
    assert_eq!(client.status(request(Method::GET, "/", &fields)).await, 200);
    assert!(origin.seen()[1].contains("x_real_ip: 127.0.0.1"));
}

#[tokio::test]
async fn methods_are_tokens_and_any_of_them_goes_on() {
    let origin = Origin::plain().await;
    let place = Fixture::before(origin.address).await;
    let client = place.client().await;
    assert_eq!(client.status(request(Method::from_bytes(b"PROPFIND").unwrap(), "/x", &[])).await, 200);
    assert!(origin.seen()[0].starts_with("propfind /x http/1.1"));
}

#[tokio::test]
async fn hosts_that_are_not_served_are_misdirected() {
    let origin = Origin::plain().await;
    let place = Fixture::before(origin.address).await;
    let client = place.client().await;
    let other = Request::get("https://other.example/").body(Bytes::new()).unwrap();
    assert_eq!(client.status(other).await, 421);
    let proxied = Request::get("http://127.0.0.1/").body(Bytes::new()).unwrap();
    assert_eq!(client.status(proxied).await, 421, "nobody goes through a gateway that is closed");
    assert_eq!(origin.seen().len(), 0);
}

#[tokio::test]
async fn a_body_that_is_shorter_or_longer_than_it_said_ends_both_sides() {
    // I6, H20: the origin must not take what comes next on its connection for the rest of this body.
    let whole = Arc::new(AtomicUsize::new(0));
    let count = whole.clone();
    let origin = Origin::new(move |mut visit| {
        let count = count.clone();
        async move {
            while let Some(head) = visit.head().await {
                let length = length(&head).unwrap_or(0);
                if visit.body(length).await.len() < length {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                visit.ok(b"").await;
            }
        }
    })
    .await;
    let place = Fixture::before(origin.address).await;
    let client = place.client().await;
    for (said, sent) in [(10, "hello"), (4, "hello"), (0, "hello"), (5, "")] {
        let mut request = post("/", sent);
        request.headers_mut().insert("content-length", said.into());
        assert_eq!(code(client.ask(request).await.map(|_| ())), MESSAGE_ERROR, "{said} {sent}");
    }
    assert_eq!(whole.load(Ordering::Relaxed), 0);
    assert_eq!(client.status(get("/next")).await, 200);
    assert_eq!(whole.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_client_that_gives_up_takes_its_connection_to_the_origin_with_it() {
    // I8: in the middle of an upload, and while the origin thinks.
    let ended = Arc::new(AtomicUsize::new(0));
    let count = ended.clone();
    let origin = Origin::new(move |mut visit| {
        let count = count.clone();
        async move {
            visit.head().await;
            // Until the connection ends.
            visit.body(usize::MAX).await;
            count.fetch_add(1, Ordering::Relaxed);
        }
    })
    .await;
    let place =
        Fixture::new(&to(origin.address).replace("700ms", "30s").replace("idle = '1s'", "idle = '30s'"))
            .await;
    let client = place.client().await;
    let start = Instant::now();
    within(async {
        let request = Request::post("https://localhost/").header("content-length", 1000).body(()).unwrap();
        let mut upload = client.requests.clone().send_request(request).await.unwrap();
        upload.send_data(Bytes::from_static(b"begin")).await.unwrap();
        let mut waiting = client.send(get("/")).await.unwrap();
        while origin.heads.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        upload.stop_stream(h3::error::Code::H3_REQUEST_CANCELLED);
        waiting.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
        while ended.load(Ordering::Relaxed) < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn requests_that_are_reset_at_once_leave_no_work_behind() {
    // H18: rapid reset.
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, top) = (open.clone(), most.clone());
    let origin = Origin::new(move |mut visit| {
        let (now, top) = (now.clone(), top.clone());
        async move {
            while visit.head().await.is_some() {
                top.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                // The gateway goes away; a request that is not reset would wait here.
                visit.body(usize::MAX).await;
                now.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })
    .await;
    let text = format!("[limits]\nrequests = 20\n{}", to(origin.address).replace("700ms", "30s"));
    let place = Fixture::new(&text).await;
    let client = place.client().await;
    within(async {
        for _ in 0..1000 {
            let mut stream = client.send(get("/")).await.unwrap();
            stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
        }
        while open.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(most.load(Ordering::Relaxed) <= 20, "{} at a time", most.load(Ordering::Relaxed));
}

#[tokio::test]
async fn headers_that_come_byte_by_byte_are_given_up() {
    // H19: slowloris.
    let origin = Origin::plain().await;
    let place = Fixture::before(origin.address).await;
    let client = place.client().await;
    within(async {
        let (mut send, mut receive) = client.connection.open_bi().await.unwrap();
        // A HEADERS frame of 100 bytes that never comes to its end.
        assert_eq!(send.write(&[1, 0x40, 100, 0, 0]).await.unwrap(), 5);
        let start = Instant::now();
        assert!(receive.read_chunk(1).await.is_err());
        assert!(start.elapsed() > Duration::from_millis(300) && start.elapsed() < Duration::from_secs(5));
    })
    .await;
    assert_eq!(client.status(get("/")).await, 200);
}

#[tokio::test]
async fn a_body_that_pauses_for_too_long_is_given_up() {
    let origin = Origin::new(|mut visit| async move {
        visit.head().await;
        visit.body(usize::MAX).await;
    })
    .await;
    let place =
        Fixture::new(&to(origin.address).replace("700ms", "30s").replace("idle = '1s'", "idle = '300ms'"))
            .await;
    let client = place.client().await;
    within(async {
        let request = Request::post("https://localhost/").header("content-length", 1000).body(()).unwrap();
        let mut stream = client.requests.clone().send_request(request).await.unwrap();
        stream.send_data(Bytes::from_static(b"begin")).await.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status().as_u16(), 408);
    })
    .await;
}

#[tokio::test]
async fn what_is_too_large_is_said_to_be() {
    // H7, I17: the limit counts names, values and 32 bytes for each field.
    let origin = Origin::plain().await;
    let text = format!("[limits]\nheader = '8KiB'\nbody = '10B'\n{}", to(origin.address));
    let place = Fixture::new(&text).await;
    let client = place.client().await;
    let large = |length| {
        let mut request = get("/");
        request.headers_mut().insert("x-large", "a".repeat(length).parse().unwrap());
        request
    };
    assert_eq!(client.status(large(7_000)).await, 200);
    // The client knows the limit from SETTINGS and keeps to it; many small fields on a stream of its own do not.
    let refused = client.ask(large(9_000)).await.unwrap_err();
    assert!(matches!(refused, h3::error::StreamError::HeaderTooBig { .. }), "{refused}");
    assert_eq!(client.status(post("/", "hello, world")).await, 413);
    let mut said = post("/", "hello, world");
    said.headers_mut().insert("content-length", 12.into());
    assert_eq!(client.status(said).await, 413);
    assert_eq!(client.status(post("/", "hello")).await, 200);
}

#[tokio::test]
async fn more_requests_than_the_limit_are_asked_to_come_back() {
    let origin = Origin::new(|mut visit| async move {
        visit.head().await;
        tokio::time::sleep(Duration::from_millis(400)).await;
        visit.ok(b"").await;
    })
    .await;
    let place = Fixture::new(&format!("[limits]\nrequests = 1\n{}", to(origin.address))).await;
    let client = place.client().await;
    let first = client.send(get("/")).await.unwrap();
    within(async {
        while origin.heads.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let (response, _) = client.ask(get("/")).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (503, &HeaderValue::from_static("1"))
    );
    let mut first = first;
    assert_eq!(within(first.recv_response()).await.unwrap().status().as_u16(), 200);
}
