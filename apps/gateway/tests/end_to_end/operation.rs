//! Starting, watching, changing and stopping a gateway.

use crate::setup::{Fixture, Origin, body, get, post, to, within};
use hvq_gateway::Gateway;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub async fn ask_admin(address: SocketAddr, path: &str, host: &str) -> String {
    within(async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    })
    .await
}

#[tokio::test]
async fn frames_are_counted_by_channel_and_kind_and_requests_by_status() {
    let origin = Origin::plain().await;
    let place = Fixture::new(&format!("admin = '127.0.0.1:0'\n{}", to(origin.address))).await;
    let client = place.client_of_two_paths().await;
    assert_eq!(client.status(get("/")).await, 200);
    let admin = place.gateway.admin_addr().unwrap();
    assert!(ask_admin(admin, "/health", "localhost").await.starts_with("HTTP/1.1 200"));
    let text = ask_admin(admin, "/metrics", &admin.to_string()).await;
    for part in [
        "hvq_gateway_connections 1",
        "hvq_gateway_requests_total{status=\"2xx\"} 1",
        "hvq_gateway_frames_total{channel=\"embb\",kind=\"stream\",direction=\"sent\"}",
        "hvq_gateway_paths{channel=\"embb\"}",
        "hvq_gateway_origin_seconds_count 1",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    // What a connection counted stays when it is gone.
    drop(client);
    within(async {
        while !ask_admin(admin, "/metrics", "localhost").await.contains("hvq_gateway_connections 0") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let text = ask_admin(admin, "/metrics", "localhost").await;
    assert!(text.contains("kind=\"stream\",direction=\"sent\"} "), "{text}");
    // J8: none of it is about one connection or one request.
    assert!(text.lines().count() < 400, "{}", text.lines().count());
}

#[tokio::test]
async fn the_admin_address_is_not_for_pages_of_other_names() {
    // I12: DNS rebinding.
    let origin = Origin::plain().await;
    let place = Fixture::new(&format!("admin = '127.0.0.1:0'\n{}", to(origin.address))).await;
    let admin = place.gateway.admin_addr().unwrap();
    for host in ["evil.example", "evil.example:80", "localhost.evil.example", ""] {
        let answer = ask_admin(admin, "/metrics", host).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
    }
    assert!(ask_admin(admin, "/elsewhere", "[::1]").await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn a_new_configuration_counts_at_once_and_a_broken_one_not_at_all() {
    // J9.
    let (first, second) = (Origin::plain().await, Origin::plain().await);
    let mut place = Fixture::before(first.address).await;
    let client = place.client().await;
    assert_eq!(client.status(get("/one")).await, 200);
    assert_eq!(place.reload(&to(second.address)), Ok(Vec::new()));
    assert_eq!(client.status(get("/two")).await, 200);
    let wrong = place.reload("colour = 'red'").unwrap_err();
    assert!(wrong.contains("gateway.toml:3: colour"), "{wrong}");
    assert_eq!(client.status(get("/three")).await, 200);
    assert_eq!(place.client().await.status(get("/four")).await, 200);
    assert_eq!((first.seen().len(), second.seen().len()), (1, 3));
    let kept = place.reload(&format!("admin = '127.0.0.1:0'\n{}", to(second.address)));
    assert_eq!(kept, Ok(vec!["admin"]));
}

#[tokio::test]
async fn stopping_finishes_what_is_under_way_and_takes_nothing_new() {
    let origin = Origin::new(|mut visit| async move {
        visit.head().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        visit.ok(b"late but whole").await;
    })
    .await;
    let place = Fixture::new(&to(origin.address).replace("700ms", "30s")).await;
    let (client, address) = (place.client().await, place.gateway.local_addrs()[0]);
    let mut stream = client.send(get("/")).await.unwrap();
    within(async {
        while origin.heads.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let trust = place.trust();
    let Fixture { gateway, folder, .. } = place;
    let stopping = tokio::spawn(gateway.stop());
    tokio::time::sleep(Duration::from_millis(50)).await;
    // RFC 9114 §4.1.1: a request that comes all the same is not looked at, and nobody waits for a new connection.
    let (start, endpoint) = (Instant::now(), hvq::Endpoint::client(&[]).unwrap());
    let (mut late, mut answer) = client.connection.open_bi().await.unwrap();
    late.write_all(&[0x01, 0x01, 0x00]).await.unwrap();
    let rejected = within(answer.read_to_end(100)).await.unwrap_err();
    assert!(rejected.to_string().contains("0x10b"), "{rejected}");
    let refused = crate::setup::Client::of(&endpoint, address, &trust).await.err().unwrap();
    let hvq::ConnectionError::PeerTransport(refused) = refused else { panic!("{refused}") };
    assert_eq!(refused.code, hvq::ErrorCode::CONNECTION_REFUSED);
    assert!(start.elapsed() < Duration::from_millis(1_500), "at once: {:?}", start.elapsed());
    within(async {
        assert_eq!(stream.recv_response().await.unwrap().status().as_u16(), 200);
        assert_eq!(body(&mut stream).await.unwrap(), b"late but whole");
        stopping.await.unwrap();
    })
    .await;
    // Its ports are free again.
    std::net::UdpSocket::bind(address).unwrap();
    drop(folder);
}

#[tokio::test]
async fn stopping_does_not_wait_longer_than_it_was_told() {
    let origin = Origin::new(|mut visit| async move {
        visit.head().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
    .await;
    let text = format!("drain = '300ms'\n{}", to(origin.address).replace("700ms", "60s"));
    let place = Fixture::new(&text).await;
    let client = place.client().await;
    let _stream = client.send(get("/")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let start = Instant::now();
    within(place.gateway.stop()).await;
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert!(
        within(client.connection.closed()).await.to_string().contains("0x100")
            || client.connection.close_reason().is_some()
    );
}

#[tokio::test]
async fn every_request_is_a_line_of_the_access_log_which_can_be_moved_away() {
    let origin = Origin::plain().await;
    let text = format!("[log]\nfile = 'DIR/access.log'\nformat = 'json'\n{}", to(origin.address));
    let mut place = Fixture::new(&text).await;
    let client = place.client().await;
    let mut request = post("/first", "hello");
    request.headers_mut().insert("user-agent", "test \"1\"".parse().unwrap());
    assert_eq!(client.status(request).await, 200);
    within(async {
        while !fs::read_to_string(place.file("access.log")).unwrap().contains("/first") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    fs::rename(place.file("access.log"), place.file("access.log.1")).unwrap();
    place.reload(&text).unwrap();
    assert_eq!(client.status(get("/second")).await, 200);
    drop(client);
    let Fixture { gateway, folder, .. } = place;
    within(Gateway::stop(gateway)).await;
    let (old, new) = (folder.path().join("access.log.1"), folder.path().join("access.log"));
    let line: serde_json::Value = serde_json::from_str(fs::read_to_string(old).unwrap().trim()).unwrap();
    assert_eq!(
        (&line["method"], &line["path"], &line["status"]),
        (&"POST".into(), &"/first".into(), &200.into())
    );
    assert_eq!(
        (&line["received"], &line["sent"], &line["agent"]),
        (&5.into(), &6.into(), &"test \"1\"".into())
    );
    let new = fs::read_to_string(new).unwrap();
    assert!(new.contains("/second") && !new.contains("/first"), "{new}");
}

#[tokio::test]
async fn files_are_served_with_types_and_ranges() {
    let place = Fixture::new("[[host]]\nnames = ['*']\nfiles = 'DIR'\n").await;
    fs::write(place.file("page.html"), "<p>hello").unwrap();
    for folder in [".git", "sub"] {
        fs::create_dir(place.file(folder)).unwrap();
    }
    for secret in [".env", ".git/config"] {
        fs::write(place.file(secret), "secret").unwrap();
    }
    let client = place.client().await;
    let mut request = get("/page.html");
    request.headers_mut().insert("range", "bytes=3-".parse().unwrap());
    let (response, content) = client.ask(request).await.unwrap();
    assert_eq!((response.status().as_u16(), content.as_slice()), (206, &b"hello"[..]));
    assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
    assert_eq!(client.status(get("/../etc/passwd")).await, 404);
    assert_eq!((client.status(get("/.env")).await, client.status(get("/.git/config")).await), (404, 404));
    // What begins with two slashes would name another host.
    let (response, _) = client.ask(get("//sub")).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["location"]),
        (301, &"/sub/".parse().unwrap())
    );
    assert_eq!(client.status(post("/page.html", "x")).await, 405);
    assert!(place.try_client().await.is_ok());
}
