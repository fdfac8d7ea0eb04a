//! HTTP/1.1 and HTTP/2 over TCP: the same hosts, files, origins and limits as over HTTP/3.

use crate::operation::ask_admin;
use crate::setup::{Fixture, Origin, bytes, get, length, to, within};
use crate::tls::{Http2, TlsClient, exchange};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A gateway in front of `origin` that listens over TCP, too, with and without TLS.
fn both(origin: &Origin) -> String {
    format!("[tcp]\nlisten = ['127.0.0.1:0']\nhttp = ['127.0.0.1:0']\n{}", to(origin.address))
}

#[tokio::test]
async fn a_request_is_the_same_over_each_protocol_and_http3_is_announced() {
    let origin = Origin::plain().await;
    let text = format!("admin = '127.0.0.1:0'\n[log]\nfile = 'DIR/access.log'\n{}", both(&origin));
    let place = Fixture::new(&text).await;
    let announced = format!("h3=\":{}\"; ma=86400", place.gateway.local_addrs()[0].port());
    let first =
        exchange(&place, "GET /first HTTP/1.1\r\nhost: localhost\r\nx-real-ip: 1.2.3.4\r\n\r\n").await;
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n") && first.ends_with("\r\n\r\n/first"), "{first}");
    assert!(first.contains(&format!("alt-svc: {announced}\r\n")), "{first}");
    let client = Http2::connect(&place).await;
    let response =
        client.ask(Request::get("https://localhost/second").body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers()["alt-svc"].to_str().unwrap()),
        (200, &announced[..])
    );
    assert_eq!(response.into_body(), "/second");
    let (third, _) = place.client().await.ask(get("/third")).await.unwrap();
    assert!(!third.headers().contains_key("alt-svc"), "who is here already needs no way here");
    let told = origin
        .seen()
        .iter()
        .map(|head| head.lines().find(|line| line.starts_with("via")).unwrap().to_owned())
        .collect::<Vec<_>>();
    assert_eq!(told, ["via: 1.1 hvq-gateway", "via: 2 hvq-gateway", "via: 3 hvq-gateway"]);
    for head in origin.seen() {
        assert!(
            head.contains("x-forwarded-proto: https\r\n") && head.contains("host: localhost\r\n"),
            "{head}"
        );
        assert!(!head.contains("1.2.3.4") && head.contains("x-forwarded-for: 127.0.0.1\r\n"), "{head}");
    }
    let metrics = ask_admin(place.gateway.admin_addr().unwrap(), "/metrics", "localhost").await;
    for part in [
        "hvq_gateway_requests_by_protocol_total{protocol=\"http/1.1\"} 1",
        "hvq_gateway_requests_by_protocol_total{protocol=\"h2\"} 1",
        "hvq_gateway_requests_by_protocol_total{protocol=\"h3\"} 1",
        "hvq_gateway_tcp_connections_total{protocol=\"h2\"} 1",
    ] {
        assert!(metrics.contains(part), "{part} is not in\n{metrics}");
    }
    let log = place.file("access.log");
    within(async {
        for line in
            ["\"GET /first HTTP/1.1\" 200", "\"GET /second HTTP/2.0\" 200", "\"GET /third HTTP/3.0\" 200"]
        {
            while !std::fs::read_to_string(&log).unwrap().contains(line) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn bodies_stream_both_ways_and_a_connection_is_used_again() {
    let origin = Origin::new(|mut visit| async move {
        while let Some(head) = visit.head().await {
            let body = visit.body(length(&head).unwrap()).await;
            visit.ok(&body).await;
        }
    })
    .await;
    let place = Fixture::new(&both(&origin)).await;
    let content = bytes(3 << 20);
    let client = Http2::connect(&place).await;
    for _ in 0..2 {
        let request = Request::post("https://localhost/").header("content-length", content.len());
        let response = client.ask(request.body(Full::new(content.clone())).unwrap()).await.unwrap();
        assert!(*response.body() == content);
    }
    let mut stream = TlsClient::connect(&place, b"\x08http/1.1").await.stream;
    for _ in 0..2 {
        let head = format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
            content.len()
        );
        within(stream.write_all(head.as_bytes())).await.unwrap();
        let go_on = "HTTP/1.1 100 Continue\r\n\r\n";
        let mut begun = vec![0; go_on.len()];
        within(stream.read_exact(&mut begun)).await.unwrap();
        assert_eq!(String::from_utf8(begun).unwrap(), go_on);
        within(stream.write_all(&content)).await.unwrap();
        let mut seen = Vec::new();
        let end = loop {
            within(stream.read_buf(&mut seen)).await.unwrap();
            if let Some(at) = seen.windows(4).position(|part| part == b"\r\n\r\n") {
                break at + 4;
            }
        };
        seen.drain(..end);
        seen.reserve(content.len());
        while seen.len() < content.len() {
            assert_ne!(within(stream.read_buf(&mut seen)).await.unwrap(), 0);
        }
        assert!(seen == content);
    }
}

#[tokio::test]
async fn a_response_that_breaks_off_does_not_look_whole() {
    let origin = Origin::new(|mut visit| async move {
        visit.head().await;
        visit.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    })
    .await;
    let place = Fixture::new(&both(&origin)).await;
    let answer = exchange(&place, "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(answer.ends_with("5\r\nfirst\r\n"), "no last chunk: {answer}");
    let client = Http2::connect(&place).await;
    let request = Request::get("https://localhost/").body(Full::default()).unwrap();
    assert!(client.ask(request).await.is_err(), "the stream is reset");
}

#[tokio::test]
async fn a_client_that_goes_ends_its_request_at_the_origin() {
    let (ended, mut end) = tokio::sync::mpsc::channel(2);
    let origin = Origin::new(move |mut visit| {
        let ended = ended.clone();
        async move {
            visit.head().await;
            // Nothing more comes: it is the end.
            let _next = visit.head().await;
            ended.send(()).await.unwrap();
        }
    })
    .await;
    let text = both(&origin).replace("700ms", "60s");
    let place = Fixture::new(&text).await;
    let mut stream = TlsClient::connect(&place, b"\x08http/1.1").await.stream;
    within(stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(stream);
    within(end.recv()).await.unwrap();
    let client = Http2::connect(&place).await;
    let asked = client.ask(Request::get("https://localhost/").body(Full::default()).unwrap());
    assert!(tokio::time::timeout(Duration::from_millis(200), asked).await.is_err(), "it waits");
    within(end.recv()).await.unwrap();
}

#[tokio::test]
async fn tunnels_and_hosts_that_are_not_served_are_refused_in_words() {
    let origin = Origin::plain().await;
    let place = Fixture::new(&both(&origin)).await;
    for (request, status) in [
        ("CONNECT a.example:443 HTTP/1.1\r\nhost: a.example:443\r\n\r\n", 501),
        ("GET / HTTP/1.1\r\nhost: other.example\r\n\r\n", 421),
        ("GET http://localhost/ HTTP/1.1\r\nhost: localhost\r\n\r\n", 421),
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\n\r\n", 400),
    ] {
        let answer = exchange(&place, request).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    let client = Http2::connect(&place).await;
    let request =
        Request::builder().method(Method::GET).uri("https://other.example/").body(Full::default()).unwrap();
    assert_eq!(client.ask(request).await.unwrap().status().as_u16(), 421);
    assert_eq!(origin.seen().len(), 0);
}

#[tokio::test]
async fn without_tls_browsers_are_sent_to_https_and_authorities_get_their_answers() {
    let origin = Origin::plain().await;
    let text = both(&origin).replace("[tcp]", "[tcp]\nchallenges = 'DIR'");
    let place = Fixture::new(&text).await;
    let folder = place.file(".well-known/acme-challenge");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("to-ken_1"), "to-ken_1.thumbprint").unwrap();
    let (tls, plain) = (place.gateway.tcp_addrs()[0], place.gateway.tcp_addrs()[1]);
    let ask = async |request: String| {
        within(async {
            let mut stream = TcpStream::connect(plain).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        })
        .await
    };
    let page = ask("GET /a?b HTTP/1.1\r\nhost: localhost:80\r\n\r\n".to_owned()).await;
    assert!(page.starts_with("HTTP/1.1 301 "), "{page}");
    assert!(page.contains(&format!("location: https://localhost:{}/a?b\r\n", tls.port())), "{page}");
    assert!(ask("POST / HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned()).await.starts_with("HTTP/1.1 308 "));
    assert!(
        ask("GET / HTTP/1.1\r\nhost: other.example\r\n\r\n".to_owned()).await.starts_with("HTTP/1.1 421 ")
    );
    let challenge = async |token: &str| {
        ask(format!("GET /.well-known/acme-challenge/{token} HTTP/1.1\r\nhost: any.example\r\n\r\n")).await
    };
    assert!(challenge("to-ken_1").await.ends_with("\r\n\r\nto-ken_1.thumbprint"));
    for token in ["other", "..%2f..%2fgateway.toml", "../../gateway.toml", "../../tokens", ""] {
        assert!(challenge(token).await.starts_with("HTTP/1.1 404 "), "{token}");
    }
}

#[tokio::test]
async fn stopping_finishes_requests_over_tcp_and_frees_the_port() {
    let origin = Origin::new(|mut visit| async move {
        visit.head().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        visit.ok(b"late but whole").await;
    })
    .await;
    let place = Fixture::new(&both(&origin).replace("700ms", "30s")).await;
    let address = place.gateway.tcp_addrs()[0];
    let client = Http2::connect(&place).await;
    let mut plain = TlsClient::connect(&place, b"\x08http/1.1").await.stream;
    let request = Request::get("https://localhost/").body(Full::<Bytes>::default()).unwrap();
    let asked = tokio::spawn(async move { client.ask(request).await });
    within(plain.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")).await.unwrap();
    within(async {
        while origin.seen().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let (Fixture { gateway, folder, .. }, start) = (place, Instant::now());
    let stopping = tokio::spawn(gateway.stop());
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    assert_eq!(within(asked).await.unwrap().unwrap().into_body(), "late but whole");
    let mut answer = String::new();
    within(plain.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.ends_with("late but whole"), "{answer}");
    within(stopping).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    std::net::TcpListener::bind(address).unwrap();
    drop(folder);
}

#[tokio::test]
async fn a_port_that_somebody_has_is_named() {
    let origin = Origin::plain().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let text = both(&origin).replace("listen = ['127.0.0.1:0']", &format!("listen = ['{address}']"));
    let error = Fixture::try_new(&text).await.err().unwrap().to_string();
    assert!(error.contains(&format!("cannot listen on {address} (TCP): ")), "{error}");
}

#[tokio::test]
async fn protocols_that_are_not_spoken_and_old_tls_are_refused_in_the_handshake() {
    let origin = Origin::plain().await;
    let mut place = Fixture::new(&both(&origin)).await;
    assert!(TlsClient::try_connect(&place, b"\x03foo", None).await.is_err(), "no_application_protocol");
    let old = Some(boring::ssl::SslVersion::TLS1_2);
    assert!(TlsClient::try_connect(&place, b"\x02h2", old).await.is_ok());
    place.reload(&both(&origin).replace("[tcp]", "[tcp]\ntls = '1.3'")).unwrap();
    assert!(TlsClient::try_connect(&place, b"\x02h2", old).await.is_err(), "a reload counts for what comes");
    assert!(TlsClient::try_connect(&place, b"\x02h2", None).await.is_ok());
}

#[tokio::test]
async fn files_have_lengths_and_ranges_over_http1() {
    let place =
        Fixture::new("[tcp]\nlisten = ['127.0.0.1:0']\n[[host]]\nnames = ['*']\nfiles = 'DIR'\n").await;
    std::fs::write(place.file("large"), bytes(1 << 20)).unwrap();
    let head = exchange(&place, "HEAD /large HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(head.contains("content-length: 1048576\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let client = Http2::connect(&place).await;
    let request = Request::get("https://localhost/large").header("range", "bytes=1000000-");
    let response = client.ask(request.body(Full::default()).unwrap()).await.unwrap();
    assert_eq!((response.status().as_u16(), response.into_body()), (206, bytes(1 << 20).slice(1_000_000..)));
    let whole =
        client.ask(Request::get("https://localhost/large").body(Full::default()).unwrap()).await.unwrap();
    assert!(whole.into_body() == bytes(1 << 20));
}

#[tokio::test]
async fn a_new_certificate_counts_for_new_connections_and_ends_no_old_one() {
    let origin = Origin::plain().await;
    let text = format!("admin = '127.0.0.1:0'\n{}", both(&origin));
    let mut place = Fixture::new(&text).await;
    let admin = place.gateway.admin_addr().unwrap();
    let expiry = async |seconds: u64| {
        let metrics = ask_admin(admin, "/metrics", "localhost").await;
        let line =
            format!("hvq_gateway_certificate_expiry_timestamp_seconds{{name=\"localhost\"}} {seconds}\n");
        assert!(metrics.contains(&line), "{line} is not in\n{metrics}");
    };
    // The first second of 4096, as rcgen has it.
    expiry(67_090_118_400).await;
    let (old, old_http3) = (Http2::connect(&place).await, place.client().await);
    place.replace_certificate(2098);
    place.reload(&text).unwrap();
    // The first second of 2098.
    expiry(4_039_372_800).await;
    let request =
        |path: &str| Request::get(format!("https://localhost{path}")).body(Full::default()).unwrap();
    assert_eq!(old.ask(request("/old")).await.unwrap().into_body(), "/old");
    assert_eq!(old_http3.status(get("/old")).await, 200);
    // Only the new one is trusted now.
    assert_eq!(Http2::connect(&place).await.ask(request("/new")).await.unwrap().into_body(), "/new");
    assert_eq!(place.client().await.status(get("/new")).await, 200);
}
