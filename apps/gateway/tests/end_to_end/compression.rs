//! Responses that the gateway compresses, over each protocol.

use crate::setup::{Client, Fixture, Origin, get, to, within};
use crate::tls::{Http2, TlsClient};
use async_compression::tokio::write::{BrotliDecoder, GzipDecoder, ZstdDecoder};
use bytes::{Buf, Bytes};
use http::{HeaderMap, Request};
use http_body_util::Full;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn text() -> Vec<u8> {
    (0..9000_u32).flat_map(|number| format!("line {} of a page\n", number % 91).into_bytes()).collect()
}

/// An origin with a page, in one piece or chunks, a picture, and a stretch of the page.
async fn origin() -> Origin {
    Origin::new(|mut visit| async move {
        while let Some(head) = visit.head().await {
            let (page, path) = (text(), head.split(' ').nth(1).unwrap_or_default().to_owned());
            let fields = "content-type: text/html\r\netag: \"a\"\r\naccept-ranges: bytes\r\n";
            let answer = match &path[..] {
                "/page" => [
                    format!("HTTP/1.1 200 OK\r\n{fields}content-length: {}\r\n\r\n", page.len()).into_bytes(),
                    if head.starts_with("HEAD") { Vec::new() } else { page },
                ]
                .concat(),
                "/small" => {
                    let head = format!("HTTP/1.1 200 OK\r\n{fields}content-length: 2000\r\n\r\n");
                    [head.as_bytes(), &page[..2000]].concat()
                }
                "/chunks" => {
                    let mut answer =
                        format!("HTTP/1.1 200 OK\r\n{fields}trailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n")
                            .into_bytes();
                    for chunk in page.chunks(7000) {
                        answer.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                        answer.extend_from_slice(chunk);
                        answer.extend_from_slice(b"\r\n");
                    }
                    answer.extend_from_slice(b"0\r\nx-sum: 1\r\n\r\n");
                    answer
                }
                "/slow" => {
                    let begun = format!("HTTP/1.1 200 OK\r\n{fields}transfer-encoding: chunked\r\n\r\n6\r\nbegun\n\r\n");
                    visit.write(begun).await;
                    tokio::time::sleep(Duration::from_millis(600)).await;
                    b"5\r\nended\r\n0\r\n\r\n".to_vec()
                }
                "/range" => {
                    let head = format!(
                        "HTTP/1.1 206 Partial Content\r\n{fields}content-range: bytes 0-1999/{}\r\ncontent-length: 2000\r\n\r\n",
                        page.len()
                    );
                    [head.as_bytes(), &page[..2000]].concat()
                }
                "/none" => b"HTTP/1.1 204 No Content\r\netag: \"a\"\r\n\r\n".to_vec(),
                "/known" => b"HTTP/1.1 304 Not Modified\r\netag: \"a\"\r\n\r\n".to_vec(),
                _ => {
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: {}\r\n\r\n", page.len());
                    [head.into_bytes(), page].concat()
                }
            };
            visit.write(answer).await;
        }
    })
    .await
}

fn compressing(origin: &Origin) -> String {
    format!("[tcp]\nlisten = ['127.0.0.1:0']\n{}compress = ['zstd', 'br', 'gzip']\n", to(origin.address))
}

async fn decoded(coding: &str, coded: &[u8]) -> Vec<u8> {
    macro_rules! read {
        ($decoder:ident) => {{
            let mut decoder = $decoder::new(Vec::new());
            decoder.write_all(coded).await.unwrap();
            decoder.shutdown().await.unwrap();
            decoder.into_inner()
        }};
    }
    match coding {
        "zstd" => read!(ZstdDecoder),
        "br" => read!(BrotliDecoder),
        "gzip" => read!(GzipDecoder),
        other => panic!("{other}"),
    }
}

fn said<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

/// A response that was compressed by `coding`, and is `page` without it.
async fn check(headers: &HeaderMap, body: &[u8], coding: &str, page: &[u8]) {
    assert_eq!(said(headers, "content-encoding"), Some(coding));
    assert_eq!((said(headers, "etag"), said(headers, "vary")), (Some("W/\"a\""), Some("accept-encoding")));
    assert_eq!(said(headers, "accept-ranges"), None);
    if let Some(length) = said(headers, "content-length") {
        assert_eq!(length, body.len().to_string());
    }
    assert!(body.len() < page.len() / 2, "{coding}: {} of {} bytes", body.len(), page.len());
    assert!(decoded(coding, body).await == page, "{coding}");
}

async fn ask(client: &Client, path: &str, accept: &str) -> (http::Response<()>, Vec<u8>) {
    let mut request = get(path);
    request.headers_mut().insert("accept-encoding", accept.parse().unwrap());
    client.ask(request).await.unwrap()
}

#[tokio::test]
async fn text_is_compressed_on_request_over_each_protocol() {
    let origin = origin().await;
    let place = Fixture::new(&compressing(&origin)).await;
    let (client, http2, page) = (place.client().await, Http2::connect(&place).await, text());
    for (accept, coding) in [("gzip, br, zstd", "zstd"), ("gzip, br", "br"), ("gzip", "gzip")] {
        for (path, page) in [("/page", &page[..]), ("/small", &page[..2000]), ("/chunks", &page)] {
            let (head, body) = ask(&client, path, accept).await;
            check(head.headers(), &body, coding, page).await;
            let request = Request::get(format!("https://localhost{path}")).header("accept-encoding", accept);
            let response = http2.ask(request.body(Full::default()).unwrap()).await.unwrap();
            check(response.headers(), response.body(), coding, page).await;
        }
        let mut stream = TlsClient::connect(&place, b"\x08http/1.1").await.stream;
        let request = format!(
            "GET /page HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept-encoding: {accept}\r\n\r\n"
        );
        within(stream.write_all(request.as_bytes())).await.unwrap();
        let mut answer = Vec::new();
        // An end without a close of TLS is one, too.
        let _end = within(stream.read_to_end(&mut answer)).await;
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        assert!(head.contains(&format!("content-encoding: {coding}")) && head.contains("chunked"), "{head}");
        let coded = unchunked(&answer[end + 4..]);
        assert!(decoded(coding, &coded).await == page, "{coding}");
    }
}

/// The body that `chunks` are.
fn unchunked(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|bytes| bytes == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&chunks[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return body;
        }
        body.extend_from_slice(&chunks[end + 2..end + 2 + length]);
        chunks = &chunks[end + 4 + length..];
    }
}

#[tokio::test]
async fn what_must_stay_as_it_is_does() {
    let origin = origin().await;
    let place = Fixture::new(&compressing(&origin)).await;
    let (client, page) = (place.client().await, text());
    let (head, body) = ask(&client, "/page", "identity").await;
    assert!(body == page && said(head.headers(), "content-encoding").is_none());
    assert_eq!(
        (said(head.headers(), "etag"), said(head.headers(), "vary")),
        (Some("\"a\""), Some("accept-encoding"))
    );
    let (head, body) = ask(&client, "/picture", "gzip").await;
    assert!(body == page && said(head.headers(), "vary").is_none());
    let (head, body) = ask(&client, "/range", "gzip").await;
    assert_eq!((head.status().as_u16(), &body[..]), (206, &page[..2000]));
    assert_eq!(said(head.headers(), "content-encoding"), None);
    let (head, body) = ask(&client, "/none", "gzip").await;
    assert_eq!(
        (head.status().as_u16(), body.len(), said(head.headers(), "content-encoding")),
        (204, 0, None)
    );
    let mut request = Request::head("https://localhost/page").body(Bytes::new()).unwrap();
    request.headers_mut().insert("accept-encoding", "gzip".parse().unwrap());
    let (head, body) = client.ask(request).await.unwrap();
    assert_eq!((body.len(), said(head.headers(), "content-encoding")), (0, None));
    assert_eq!(said(head.headers(), "vary"), Some("accept-encoding"));
    let mut request = get("/known");
    request.headers_mut().insert("if-none-match", "W/\"a\"".parse().unwrap());
    let (head, _) = client.ask(request).await.unwrap();
    assert_eq!((head.status().as_u16(), said(head.headers(), "etag")), (304, Some("W/\"a\"")));
    // Nothing is compressed unless the configuration says so.
    let place = Fixture::before(origin.address).await;
    let (head, body) = ask(&place.client().await, "/page", "gzip").await;
    assert!(body == page && said(head.headers(), "vary").is_none());
}

#[tokio::test]
async fn a_piece_of_a_slow_response_does_not_wait_for_the_next() {
    let origin = origin().await;
    let place = Fixture::new(&compressing(&origin)).await;
    let client = place.client().await;
    let mut request = get("/slow");
    request.headers_mut().insert("accept-encoding", "gzip".parse().unwrap());
    let mut stream = within(client.send(request)).await.unwrap();
    within(stream.recv_response()).await.unwrap();
    let first = tokio::time::timeout(Duration::from_millis(400), stream.recv_data()).await;
    let mut first = first.expect("it does not wait").unwrap().unwrap();
    let length = first.remaining();
    let mut coded = first.copy_to_bytes(length).to_vec();
    coded.extend(within(crate::setup::body(&mut stream)).await.unwrap());
    assert_eq!(decoded("gzip", &coded).await, b"begun\nended");
}
