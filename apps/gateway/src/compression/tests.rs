//! Tests of what is compressed, and how.

use super::ContentCoding::{Br, Gzip, Zstd};
use super::*;
use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZstdDecoder};
use tokio::io::AsyncReadExt;

const ALL: [ContentCoding; 3] = [Zstd, Br, Gzip];

fn head(fields: &[(&str, &str)]) -> Response<()> {
    let head = fields.iter().fold(Response::builder(), |head, (name, value)| head.header(*name, *value));
    head.body(()).unwrap()
}

fn asking(accept: &str) -> Request<()> {
    Request::get("/").header("accept-encoding", accept).body(()).unwrap()
}

fn compression() -> Compression {
    Compression::new(ALL.to_vec())
}

#[test]
fn the_coding_that_the_client_likes_best_is_chosen_and_ours_of_equals() {
    // RFC 9110 §12.5.3.
    for (accept, chosen) in [
        ("gzip, deflate, br, zstd", Some(Zstd)),
        ("gzip, br", Some(Br)),
        ("gzip;q=1.0, br;q=0.5", Some(Gzip)),
        ("GZIP", Some(Gzip)),
        ("x-gzip", Some(Gzip)),
        ("*", Some(Zstd)),
        ("*;q=0.1, zstd;q=0", Some(Br)),
        ("gzip;q=0", None),
        ("gzip;q=2", None),
        ("identity, gzip;q=0.5", None),
        ("deflate", None),
        ("", None),
    ] {
        assert_eq!(choose(asking(accept).headers(), &ALL), chosen, "{accept}");
    }
    assert_eq!(choose(asking("zstd, gzip").headers(), &[Gzip]), Some(Gzip));
    assert_eq!(choose(&HeaderMap::new(), &ALL), None, "who says nothing may not know any");
}

#[test]
fn what_is_short_coded_partial_or_not_text_stays_as_it_is() {
    let worth = |fields: &[(&str, &str)]| is_worth_it(&head(fields));
    assert!(worth(&[("content-type", "text/html; charset=utf-8"), ("content-length", "1024")]));
    for (name, value) in [
        ("content-length", "1023"),
        ("content-encoding", "br"),
        ("content-range", "bytes 0-1/2"),
        ("cache-control", "public, No-Transform"),
        ("content-digest", "sha-256=:AA==:"),
        ("content-md5", "AA=="),
    ] {
        assert!(!worth(&[("content-type", "text/html"), (name, value)]), "{name}");
    }
    for (media_type, is_text) in [
        ("application/json", true),
        ("application/ld+json", true),
        ("image/svg+xml", true),
        ("Application/XML", true),
        ("text/event-stream", false),
        ("image/png", false),
        ("application/octet-stream", false),
        ("video/mp4", false),
        ("font/woff2", false),
    ] {
        assert_eq!(worth(&[("content-type", media_type)]), is_text, "{media_type}");
    }
    for (status, may) in
        [(200, true), (404, true), (201, false), (204, false), (206, false), (304, false), (500, false)]
    {
        let mut head = head(&[("content-type", "text/plain")]);
        *head.status_mut() = StatusCode::from_u16(status).unwrap();
        assert_eq!(is_worth_it(&head), may, "{status}");
    }
}

#[test]
fn a_head_says_how_its_body_is_coded_and_that_others_get_another() {
    let fields = [
        ("content-type", "text/css"),
        ("content-length", "5000"),
        ("etag", "\"a\""),
        ("accept-ranges", "bytes"),
        ("vary", "cookie"),
    ];
    let text = |head: &Response<()>, name: &str| {
        let values: Vec<_> =
            head.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
        values.join(", ")
    };
    let mut coded = head(&fields);
    assert!(compression().begin(&asking("gzip"), &mut coded).is_some());
    assert_eq!(text(&coded, "content-encoding"), "gzip");
    assert_eq!(
        (text(&coded, "etag"), text(&coded, "vary")),
        ("W/\"a\"".to_owned(), "cookie, accept-encoding".to_owned())
    );
    assert!(
        !coded.headers().contains_key("content-length") && !coded.headers().contains_key("accept-ranges")
    );
    let mut as_it_is = head(&fields);
    assert!(compression().begin(&asking("identity"), &mut as_it_is).is_none());
    assert_eq!(
        (text(&as_it_is, "etag"), text(&as_it_is, "content-length")),
        ("\"a\"".to_owned(), "5000".to_owned())
    );
    assert_eq!(text(&as_it_is, "vary"), "cookie, accept-encoding");
    let mut off = head(&fields);
    assert!(Compression::new(Vec::new()).begin(&asking("gzip"), &mut off).is_none());
    assert_eq!(text(&off, "vary"), "cookie");
    let mut to_head = head(&fields);
    let request = Request::head("/").header("accept-encoding", "gzip").body(()).unwrap();
    assert!(compression().begin(&request, &mut to_head).is_none());
    assert_eq!(text(&to_head, "content-length"), "5000");
}

#[test]
fn a_client_that_knows_the_compressed_one_is_told_that_this_did_not_change() {
    // RFC 9111 §4.3.4.
    for (known, tag) in
        [("W/\"a\"", "W/\"a\""), ("\"b\", W/\"a\"", "W/\"a\""), ("\"a\"", "\"a\""), ("W/\"b\"", "\"a\"")]
    {
        let mut unchanged = head(&[("etag", "\"a\"")]);
        *unchanged.status_mut() = StatusCode::NOT_MODIFIED;
        let request = Request::get("/").header("if-none-match", known).body(()).unwrap();
        assert!(compression().begin(&request, &mut unchanged).is_none());
        assert_eq!(unchanged.headers()["etag"], tag, "{known}");
        assert_eq!(unchanged.headers()["vary"], "accept-encoding");
    }
}

#[test]
fn no_more_responses_are_compressed_at_a_time_than_there_is_memory_for() {
    let compression = compression();
    let begin = || compression.begin(&asking("gzip"), &mut head(&[("content-type", "text/css")]));
    let mut encoders: Vec<_> = (0..MOST).map(|_| begin().unwrap()).collect();
    assert!(begin().is_none());
    encoders.pop();
    assert!(begin().is_some());
}

#[tokio::test]
async fn each_piece_can_be_read_at_once_and_all_comes_back() {
    let text: Vec<u8> =
        (0..20_000_u32).flat_map(|number| format!("line {}\n", number % 77).into_bytes()).collect();
    for coding in ALL {
        let request = asking(coding.name());
        let mut encoder = compression().begin(&request, &mut head(&[("content-type", "text/css")])).unwrap();
        let (mut coded, mut pieces) = (Vec::new(), Vec::new());
        for piece in text.chunks(30_000) {
            let out = encoder.push(piece).await.unwrap();
            assert!(!out.is_empty(), "{coding:?} kept all of a piece");
            coded.extend_from_slice(&out);
            pieces.push(coded.len());
        }
        let first = decoded(coding, &coded[..pieces[0]]).await;
        assert!(first.starts_with(&text[..30_000]), "{coding:?}: {} bytes", first.len());
        coded.extend_from_slice(&encoder.finish().await.unwrap());
        assert!(coded.len() < text.len() / 4, "{coding:?}: {} bytes", coded.len());
        assert!(decoded(coding, &coded).await == text, "{coding:?}");
    }
}

/// The part of the content that can be read of `coded`, which may end early.
async fn decoded(coding: ContentCoding, coded: &[u8]) -> Vec<u8> {
    macro_rules! read {
        ($decoder:ident) => {{
            let (mut decoder, mut content) = ($decoder::new(coded), Vec::new());
            // The end of what is there is an error in the middle of a response.
            while decoder.read_buf(&mut content).await.is_ok_and(|count| count > 0) {}
            content
        }};
    }
    match coding {
        Zstd => read!(ZstdDecoder),
        Br => read!(BrotliDecoder),
        Gzip => read!(GzipDecoder),
    }
}
