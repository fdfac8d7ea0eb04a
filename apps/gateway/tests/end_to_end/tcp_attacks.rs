//! Clients over TCP that want more than their share, or mean something else than they say.

use crate::setup::{Fixture, Origin, bytes, to, within};
use crate::tls::{Http2, TlsClient, exchange};
use http::Request;
use http_body_util::Full;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
/// The code of GOAWAY for who does too much (RFC 9113 §7).
const ENHANCE_YOUR_CALM: u8 = 11;
/// A GET for https://localhost/ (RFC 7541: fields of the static table, and a literal).
const REQUEST: &[u8] = b"\x82\x84\x87\x41\x09localhost";

fn text(origin: &Origin) -> String {
    format!("[transport]\nidle = '1s'\n[tcp]\nlisten = ['127.0.0.1:0']\n{}", to(origin.address))
}

/// A gateway that lets connections be silent for long.
fn patient(origin: &Origin) -> String {
    text(origin).replacen("idle = '1s'", "idle = '60s'", 1)
}

/// A frame of HTTP/2 (RFC 9113 §4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A client of HTTP/2 that writes frames, with the preface written.
async fn raw(place: &Fixture) -> TlsClient {
    let mut client = TlsClient::connect(place, b"\x02h2").await;
    let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(4, 0, 0, &[])[..]].concat();
    within(client.stream.write_all(&preface)).await.unwrap();
    client
}

/// Reads until the connection ends; returns the code of the GOAWAY that came before, if one did.
async fn end(client: &mut TlsClient) -> Option<u8> {
    let mut seen = Vec::new();
    let _cut = within(client.stream.read_to_end(&mut seen)).await;
    let (mut rest, mut code) = (&seen[..], None);
    while rest.len() >= 9 {
        let length = usize::from(rest[1]) << 8 | usize::from(rest[2]);
        if rest[3] == GOAWAY {
            code = rest.get(9 + 7).copied();
        }
        rest = rest.get(9 + length..).unwrap_or_default();
    }
    code
}

/// The gateway serves others as before.
async fn serves(place: &Fixture) {
    let request = Request::get("https://localhost/well").body(Full::default()).unwrap();
    assert_eq!(Http2::connect(place).await.ask(request).await.unwrap().status().as_u16(), 200);
}

#[tokio::test]
async fn headers_that_come_byte_by_byte_end_the_connection() {
    // H19 over TCP, in the handshake, in HTTP/1.1 and in HTTP/2.
    let origin = Origin::plain().await;
    let (place, patient) = (Fixture::new(&text(&origin)).await, Fixture::new(&patient(&origin)).await);
    let start = Instant::now();
    let mut silent = TcpStream::connect(place.gateway.tcp_addrs()[0]).await.unwrap();
    silent.write_all(&[0x16, 0x03, 0x01]).await.unwrap();
    // Its silence would end it elsewhere.
    let mut slow = TlsClient::connect(&patient, b"\x08http/1.1").await.stream;
    let dribble = async {
        for byte in b"GET / HTTP/1.1\r\nhost: localhost\r\nx-long-and-slow: aaaaaaaaaaaaaaaaaa".iter() {
            if slow.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it is still read after {:?}", start.elapsed());
    };
    let mut half = raw(&place).await;
    half.stream.write_all(&frame(HEADERS, 0, 1, &REQUEST[..3])).await.unwrap();
    let mut nothing = Vec::new();
    let ((), _, code) =
        tokio::join!(within(dribble), within(silent.read_to_end(&mut nothing)), end(&mut half));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(code.is_none_or(|code| code == 0), "an orderly end: {code:?}");
    assert_eq!(origin.seen().len(), 0);
    serves(&place).await;
}

#[tokio::test]
async fn a_flood_of_resets_ends_the_connection() {
    // CVE-2023-44487.
    let origin = Origin::plain().await;
    let place = Fixture::new(&text(&origin)).await;
    let mut client = raw(&place).await;
    let flood = async {
        for stream in (1..20_000).step_by(2) {
            let both =
                [frame(HEADERS, 0x5, stream, REQUEST), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat();
            if client.stream.write_all(&both).await.is_err() {
                break;
            }
        }
        end(&mut client).await
    };
    // What the gateway says may be lost with the connection, on which more comes than it reads.
    let code = within(flood).await;
    assert!(code.is_none_or(|code| code == ENHANCE_YOUR_CALM), "{code:?}");
    assert!(origin.seen().len() < 500, "{} of 10,000 requests reached the origin", origin.seen().len());
    serves(&place).await;
}

#[tokio::test]
async fn a_flood_of_continuations_ends_the_connection() {
    // CVE-2024-27316: a header section without an end.
    let origin = Origin::plain().await;
    let place = Fixture::new(&text(&origin)).await;
    let mut client = raw(&place).await;
    client.stream.write_all(&frame(HEADERS, 0x1, 1, REQUEST)).await.unwrap();
    let field = [&b"\x00\x01a\x7f\x81\x7f"[..], &[b'x'; 256][..]].concat();
    let (part, mut written) = (field.repeat(60), 0);
    while written < 64 << 20 {
        if within(client.stream.write_all(&frame(CONTINUATION, 0, 1, &part))).await.is_err() {
            break;
        }
        written += part.len();
    }
    assert!(written < 32 << 20, "{written} bytes of one header section were taken");
    assert_eq!(origin.seen().len(), 0);
    serves(&place).await;
}

#[tokio::test]
async fn one_address_has_all_connections_until_another_needs_one() {
    let origin = Origin::plain().await;
    let text =
        format!("{}\n[limits]\nconnections = 3\n", text(&origin).replace("idle = '1s'", "idle = '60s'"));
    let place = Fixture::new(&text.replace("header = '500ms'", "header = '60s'")).await;
    let alpn = b"\x08http/1.1";
    let mut greedy = Vec::new();
    for _ in 0..3 {
        greedy.push(TlsClient::connect(&place, alpn).await);
    }
    assert!(TlsClient::try_connect(&place, alpn, None).await.is_err(), "it has the most itself");
    let mut other = TlsClient::from(&place, [127, 9, 0, 1].into(), alpn).await.unwrap();
    let request = b"GET /other HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    within(other.stream.write_all(request)).await.unwrap();
    let mut answer = String::new();
    within(other.stream.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.ends_with("/other"), "{answer}");
    // One of the others made room.
    let mut last = greedy.pop().unwrap();
    assert!(!matches!(within(last.stream.read(&mut [0])).await, Ok(1..)));
}

#[tokio::test]
async fn a_request_hidden_in_another_is_not_seen_by_the_origin() {
    let origin = Origin::new(|mut visit| async move {
        while let Some(head) = visit.head().await {
            if head.to_lowercase().contains("transfer-encoding: chunked") {
                // Five bytes in a chunk, and the end.
                visit.body(b"5\r\nhello\r\n0\r\n\r\n".len()).await;
            }
            visit.ok(b"answer").await;
        }
    })
    .await;
    let place = Fixture::new(&text(&origin)).await;
    let hidden = "GET /hidden HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let chunked = "5\r\nhello\r\n0\r\n\r\n";
    for (fields, status) in [
        // RFC 9112 §6.3: chunks go before a length, and the connection ends after the response.
        ("content-length: 5\r\ntransfer-encoding: chunked\r\n", 200),
        ("transfer-encoding: chunked\r\ncontent-length: 5\r\n", 200),
        ("transfer-encoding: chunked, identity\r\n", 400),
        ("transfer-encoding: gzip, chunked\r\n", 501),
        ("transfer-encoding : chunked\r\n", 400),
        ("content-length: 5\r\ncontent-length: 6\r\n", 400),
        ("content-length: +5\r\n", 400),
    ] {
        origin.heads.lock().unwrap().clear();
        let mut stream = TlsClient::connect(&place, b"\x08http/1.1").await.stream;
        let request = format!("POST /seen HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n{chunked}{hidden}");
        within(stream.write_all(request.as_bytes())).await.unwrap();
        let mut answer = String::new();
        let _cut = within(stream.read_to_string(&mut answer)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{fields}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{fields}: {answer}");
        let seen = origin.seen();
        assert!(
            seen.iter().all(|head| !head.contains("hidden") && !head.contains("content-length")),
            "{fields}: {seen:?}"
        );
        assert_eq!(seen.len(), usize::from(status == 200), "{fields}");
    }
}

#[tokio::test]
async fn a_client_that_takes_nothing_loses_its_connection() {
    let origin = Origin::plain().await;
    let text = patient(&origin).replace(&format!("origin = 'http://{}'", origin.address), "files = 'DIR'");
    let place = Fixture::new(&text).await;
    std::fs::write(place.file("large"), bytes(64 << 20)).unwrap();
    let mut idle = TlsClient::connect(&place, b"\x08http/1.1").await.stream;
    within(idle.write_all(b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n")).await.unwrap();
    // Twice as long as it may.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut seen = Vec::new();
    let ended = within(idle.read_to_end(&mut seen)).await;
    assert!(ended.is_err() || seen.len() < 64 << 20, "{} bytes", seen.len());
    let mut miser = raw(&place).await;
    // SETTINGS_INITIAL_WINDOW_SIZE of 0 (RFC 9113 §6.5.2).
    within(miser.stream.write_all(&frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]))).await.unwrap();
    let large = b"\x82\x87\x41\x09localhost\x04\x06/large";
    for stream in (1..100).step_by(2) {
        within(miser.stream.write_all(&frame(HEADERS, 0x5, stream, large))).await.unwrap();
    }
    let start = Instant::now();
    end(&mut miser).await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_header_section_larger_than_the_limit_is_refused() {
    let origin = Origin::plain().await;
    let place = Fixture::new(&format!("{}\n[limits]\nheader = '4KiB'\n", text(&origin))).await;
    let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(5000));
    assert!(exchange(&place, &long).await.starts_with("HTTP/1.1 431 "));
    let request =
        Request::get("https://localhost/").header("x", "y".repeat(5000)).body(Full::default()).unwrap();
    assert_eq!(Http2::connect(&place).await.ask(request).await.unwrap().status().as_u16(), 431);
    assert_eq!(origin.seen().len(), 0);
}
