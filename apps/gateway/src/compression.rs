//! Compression of responses that an origin sent as they are (RFC 9110 §8.4, §12.5.3), for clients that ask for it.

use async_compression::Level;
use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZstdEncoder};
use async_compression::{brotli, zstd};
use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use serde::Deserialize;
use std::io;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes below which a body is not worth it.
const LEAST: u64 = 1024;
/// Responses of a host that are compressed at a time. Each takes up to about 1 MiB; further ones are sent as they are.
const MOST: usize = 256;
/// Windows of brotli and zstd, as powers of two of bytes, which bound the memory of a response.
const WINDOW: u32 = 18;
/// Levels at which a processor compresses some 50 to 200 MB/s.
const GZIP_LEVEL: i32 = 5;
const BROTLI_LEVEL: i32 = 4;
const ZSTD_LEVEL: i32 = 3;
/// Bytes of a body that are compressed before other requests get their turn.
const PIECE: usize = 64 << 10;

/// A coding of content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentCoding {
    /// Zstandard (RFC 8878), within the window of RFC 9659.
    Zstd,
    /// Brotli (RFC 7932).
    Br,
    /// Gzip (RFC 1952).
    Gzip,
}

impl ContentCoding {
    /// The name in fields.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Br => "br",
            Self::Gzip => "gzip",
        }
    }
}

/// The compression of a host's responses.
#[derive(Debug)]
pub(crate) struct Compression {
    /// The codings that are used, the best first; none if nothing is compressed.
    codings: Vec<ContentCoding>,
    places: Arc<Semaphore>,
}

impl Compression {
    /// Compression by `codings`, the best first.
    pub(crate) fn new(codings: Vec<ContentCoding>) -> Self {
        Self { codings, places: Arc::new(Semaphore::new(MOST)) }
    }

    /// Changes `head`, that of the response to `request`, to what is sent, and returns the encoder of its body; `None` if that is sent
    /// as it is.
    pub(crate) fn begin(&self, request: &Request<()>, head: &mut Response<()>) -> Option<Encoder> {
        if self.codings.is_empty() {
            return None;
        }
        if head.status() == StatusCode::NOT_MODIFIED {
            vary(head.headers_mut());
            weaken_if_known(request.headers(), head.headers_mut());
            return None;
        }
        if !is_worth_it(head) {
            return None;
        }
        // RFC 9110 §12.5.5: whether it is compressed or not depends on the request.
        vary(head.headers_mut());
        if *request.method() == Method::HEAD {
            return None;
        }
        let coding = choose(request.headers(), &self.codings)?;
        let place = self.places.clone().try_acquire_owned().ok()?;
        let headers = head.headers_mut();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        headers.remove(CONTENT_LENGTH);
        // Ranges of what is made anew for each request cannot be had.
        headers.remove(ACCEPT_RANGES);
        weaken(headers);
        Some(Encoder { sink: Sink::new(coding), _place: place })
    }
}

/// Returns true if a response is one that may be compressed, and that gets smaller by it.
fn is_worth_it(head: &Response<()>) -> bool {
    // These cover the bytes as the origin sent them.
    const DIGESTS: [&str; 4] = ["content-digest", "repr-digest", "digest", "content-md5"];
    let headers = head.headers();
    let has_status = matches!(
        head.status(),
        StatusCode::OK
            | StatusCode::NON_AUTHORITATIVE_INFORMATION
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
    );
    let is_long = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok())
        .is_none_or(|length| length >= LEAST);
    has_status
        && is_long
        && !headers.contains_key(CONTENT_ENCODING)
        && !headers.contains_key(CONTENT_RANGE)
        && !DIGESTS.iter().any(|name| headers.contains_key(*name))
        // RFC 9110 §7.7.
        && !list(headers, &CACHE_CONTROL).any(|directive| directive.eq_ignore_ascii_case("no-transform"))
        && headers.get(CONTENT_TYPE).is_some_and(|media_type| is_compressible(media_type.as_bytes()))
}

/// Returns true if content of `media_type` is mostly text. Streams of events are left alone: each is short, and is to arrive at once.
fn is_compressible(media_type: &[u8]) -> bool {
    let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let essence = String::from_utf8_lossy(essence).to_ascii_lowercase();
    match essence.split_once('/') {
        Some(("text", kind)) => kind != "event-stream",
        Some(("application", kind)) => {
            matches!(kind, "json" | "javascript" | "ecmascript" | "x-javascript" | "xml" | "wasm" | "rtf")
                || kind.ends_with("+json")
                || kind.ends_with("+xml")
        }
        Some(("image", kind)) => matches!(kind, "svg+xml" | "bmp" | "x-icon" | "vnd.microsoft.icon"),
        Some(("font", kind)) => matches!(kind, "ttf" | "otf" | "collection"),
        _ => false,
    }
}

/// The elements of a field that is a list.
fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|element| !element.is_empty())
}

/// The coding that the client likes best, and of those that it likes as well the first of `codings` (RFC 9110 §12.5.3); `None` if it
/// takes none, or likes the content better as it is.
fn choose(headers: &HeaderMap, codings: &[ContentCoding]) -> Option<ContentCoding> {
    let asked: Vec<(&str, u32)> = list(headers, &ACCEPT_ENCODING).filter_map(weighed).collect();
    let weight = |name: &str| {
        asked.iter().find(|(coding, _)| coding.eq_ignore_ascii_case(name)).map(|(_, weight)| *weight)
    };
    let others = weight("*").unwrap_or(0);
    let of = |coding: &ContentCoding| {
        let name = coding.name();
        let early = if *coding == ContentCoding::Gzip { weight("x-gzip") } else { None };
        weight(name).or(early).unwrap_or(others)
    };
    // The first of equals.
    let best = codings.iter().rev().max_by_key(|coding| of(coding))?;
    (of(best) > 0 && of(best) >= weight("identity").unwrap_or(0)).then_some(*best)
}

/// An element of `accept-encoding` and its weight, in thousandths; `None` if the weight is none.
fn weighed(element: &str) -> Option<(&str, u32)> {
    let (coding, parameter) = match element.split_once(';') {
        None => return Some((element, 1000)),
        Some((coding, parameter)) => (coding.trim(), parameter.trim()),
    };
    let weight = parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q="))?;
    let weight: f32 = weight.parse().ok().filter(|weight| (0.0..=1.0).contains(weight))?;
    // At most 1000, and not negative.
    Some((coding, (weight * 1000.0).round() as u32))
}

/// Adds `accept-encoding` to `vary`.
fn vary(headers: &mut HeaderMap) {
    if !list(headers, &VARY).any(|name| name == "*" || name.eq_ignore_ascii_case("accept-encoding")) {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
    }
}

/// Makes the validator a weak one: the bytes are others than those that the origin has under it (RFC 9110 §8.8.3).
fn weaken(headers: &mut HeaderMap) {
    let weak = headers.get(ETAG).filter(|tag| !tag.as_bytes().starts_with(b"W/"));
    if let Some(weak) = weak.and_then(|tag| HeaderValue::from_bytes(&[b"W/", tag.as_bytes()].concat()).ok()) {
        headers.insert(ETAG, weak);
    }
}

/// Does the same in a response that says that nothing changed, if the client has it under the weak one (RFC 9111 §4.3.4).
fn weaken_if_known(asked: &HeaderMap, headers: &mut HeaderMap) {
    let Some(Ok(tag)) = headers.get(ETAG).map(HeaderValue::to_str) else { return };
    if list(asked, &IF_NONE_MATCH).any(|known| known.strip_prefix("W/") == Some(tag)) {
        weaken(headers);
    }
}

/// The encoder of a body.
pub(crate) struct Encoder {
    sink: Sink,
    _place: OwnedSemaphorePermit,
}

enum Sink {
    Zstd(ZstdEncoder<Vec<u8>>),
    /// Boxed, for it is the largest by far.
    Br(Box<BrotliEncoder<Vec<u8>>>),
    Gzip(GzipEncoder<Vec<u8>>),
}

impl Sink {
    fn new(coding: ContentCoding) -> Self {
        match coding {
            ContentCoding::Zstd => {
                let parameters = [zstd::CParameter::window_log(WINDOW)];
                Self::Zstd(ZstdEncoder::with_quality_and_params(
                    Vec::new(),
                    Level::Precise(ZSTD_LEVEL),
                    &parameters,
                ))
            }
            ContentCoding::Br => {
                let window = i32::try_from(WINDOW).unwrap_or_default();
                let parameters = brotli::EncoderParams::default()
                    .window_size(window)
                    .block_size(window)
                    .quality(Level::Precise(BROTLI_LEVEL));
                Self::Br(Box::new(BrotliEncoder::with_params(Vec::new(), parameters)))
            }
            ContentCoding::Gzip => {
                Self::Gzip(GzipEncoder::with_quality(Vec::new(), Level::Precise(GZIP_LEVEL)))
            }
        }
    }

    /// Writes `data`, and has all of it come out.
    async fn push(&mut self, data: &[u8]) -> io::Result<()> {
        match self {
            Self::Zstd(encoder) => {
                encoder.write_all(data).await?;
                encoder.flush().await
            }
            Self::Br(encoder) => {
                encoder.write_all(data).await?;
                encoder.flush().await
            }
            Self::Gzip(encoder) => {
                encoder.write_all(data).await?;
                encoder.flush().await
            }
        }
    }

    async fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Zstd(encoder) => encoder.shutdown().await,
            Self::Br(encoder) => encoder.shutdown().await,
            Self::Gzip(encoder) => encoder.shutdown().await,
        }
    }

    fn take(&mut self) -> Bytes {
        let written = match self {
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Br(encoder) => encoder.get_mut(),
            Self::Gzip(encoder) => encoder.get_mut(),
        };
        std::mem::take(written).into()
    }
}

impl Encoder {
    /// Compresses a piece of the body. All of it can be read from what is returned, so that nothing of a slow body waits here.
    ///
    /// # Errors
    /// The encoder fails, which happens only without memory.
    pub(crate) async fn push(&mut self, data: &[u8]) -> io::Result<Bytes> {
        for piece in data.chunks(PIECE) {
            self.sink.push(piece).await?;
            tokio::task::yield_now().await;
        }
        Ok(self.sink.take())
    }

    /// The end of the body.
    ///
    /// # Errors
    /// The encoder fails, which happens only without memory.
    pub(crate) async fn finish(mut self) -> io::Result<Bytes> {
        self.sink.finish().await?;
        Ok(self.sink.take())
    }
}

#[cfg(test)]
mod tests;
