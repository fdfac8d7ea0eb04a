//! A response before it is sent: status, headers, and where the body comes from.

use super::large::Large;
use super::range::{self, Wanted};
use bytes::Bytes;
use http::header::{ACCEPT_RANGES, ALLOW, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION, RANGE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that are made up at a time.
const MADE_UP: usize = 64 * 1024;

/// A response, what its body is, and how long to wait before it.
#[derive(Debug)]
pub struct Answer {
    /// Status and headers.
    pub head: Response<()>,
    /// The body.
    pub body: Body,
    /// The time for which the server pretends to think.
    pub wait: Duration,
}

/// The source of the bytes of a body.
#[derive(Debug)]
pub enum Body {
    /// There are none.
    Empty,
    /// Bytes in memory.
    Text(Bytes),
    /// A stretch of a file that is open.
    File(Arc<Large>, Range<u64>),
    /// A stretch of bytes that are made up, the same each time.
    Pattern(u64, Range<u64>),
}

impl Answer {
    /// A response of `status` with `body` of `length` bytes.
    pub fn new(status: StatusCode, body: Body, length: u64) -> Self {
        let mut head = Response::new(());
        *head.status_mut() = status;
        head.headers_mut().insert(CONTENT_LENGTH, length.into());
        Self { head, body, wait: Duration::ZERO }
    }

    /// An error, said in words too.
    pub fn error(status: StatusCode) -> Self {
        let text = Bytes::from(format!("{status}\n"));
        let length = text.len() as u64;
        Self::new(status, Body::Text(text), length)
            .with(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))
    }

    /// The method is not one of ours (RFC 9110 §15.5.6).
    pub fn not_allowed() -> Self {
        Self::error(StatusCode::METHOD_NOT_ALLOWED).with(ALLOW, HeaderValue::from_static("GET, HEAD"))
    }

    /// It is at `path` of this host instead. Slashes at the beginning are one: two would name another host (RFC 3986 §4.2).
    pub fn moved(path: &str) -> Self {
        match HeaderValue::from_str(&format!("/{}", path.trim_start_matches('/'))) {
            Ok(path) => Self::error(StatusCode::MOVED_PERMANENTLY).with(LOCATION, path),
            Err(_) => Self::error(StatusCode::NOT_FOUND),
        }
    }

    /// Makes an answer of a stretch of `length` bytes, which `body` makes: all of them, or those that `request` asks
    /// for (RFC 9110 §14.2: ranges are defined for GET only).
    pub fn stretch(
        request: &Request<()>,
        media_type: HeaderValue,
        length: u64,
        body: impl FnOnce(Range<u64>) -> Body,
    ) -> Self {
        let asked = request.headers().get(RANGE).filter(|_| request.method() == Method::GET);
        let answer = match asked.map_or(Wanted::Everything, |asked| range::read(asked.as_bytes(), length)) {
            Wanted::Everything => Self::new(StatusCode::OK, body(0..length), length),
            Wanted::Stretch(range) => {
                let text = format!("bytes {}-{}/{length}", range.start, range.end - 1);
                let bytes = range.end - range.start;
                Self::new(StatusCode::PARTIAL_CONTENT, body(range), bytes).with(CONTENT_RANGE, ascii(&text))
            }
            Wanted::Nothing => {
                let text = format!("bytes */{length}");
                return Self::error(StatusCode::RANGE_NOT_SATISFIABLE).with(CONTENT_RANGE, ascii(&text));
            }
        };
        answer.with(CONTENT_TYPE, media_type).with(ACCEPT_RANGES, HeaderValue::from_static("bytes"))
    }

    /// Returns the same answer with one more header.
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.head.headers_mut().insert(name, value);
        self
    }

    /// Returns the same answer, sent after `wait`.
    pub fn after(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// The answer to a HEAD request (RFC 9110 §9.3.2).
    pub fn without_body(self) -> Self {
        Self { body: Body::Empty, ..self }
    }
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digits and punctuation are a header value")
}

impl Body {
    /// Returns true if [`next_within`](Self::next_within) has nothing more to give.
    pub fn is_at_end(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Text(text) => text.is_empty(),
            Self::File(_, range) | Self::Pattern(_, range) => range.is_empty(),
        }
    }

    /// The next bytes, `None` after the last; fails if a file became shorter.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        self.next_within(usize::MAX).await
    }

    /// The next bytes, at most `most` of them unless they are in memory already; `None` after the last.
    ///
    /// # Errors
    /// A file became shorter, or cannot be read.
    pub async fn next_within(&mut self, most: usize) -> io::Result<Option<Bytes>> {
        match self {
            Self::Empty => Ok(None),
            Self::Text(text) => {
                let text = std::mem::take(text);
                Ok(Some(text).filter(|text| !text.is_empty()))
            }
            Self::File(file, range) => {
                let left = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
                if left == 0 {
                    return Ok(None);
                }
                let chunk = file.chunk(range.start, left.min(most)).await?;
                range.start += chunk.len() as u64;
                Ok(Some(chunk))
            }
            Self::Pattern(seed, range) => {
                let length =
                    usize::try_from(range.end - range.start).unwrap_or(MADE_UP).min(MADE_UP).min(most);
                if length == 0 {
                    return Ok(None);
                }
                let chunk: Vec<u8> = (range.start..).take(length).map(|at| pattern(*seed, at)).collect();
                range.start += length as u64;
                Ok(Some(chunk.into()))
            }
        }
    }
}

/// The byte at position `at` of the pattern `seed`: it does not compress, and stretches of it can be told apart.
fn pattern(seed: u64, at: u64) -> u8 {
    let mixed = (seed ^ (at / 8)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed.to_le_bytes()[(at % 8) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    async fn all(mut body: Body) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(chunk) = body.next().await.unwrap() {
            bytes.extend_from_slice(&chunk);
        }
        bytes
    }

    #[tokio::test]
    async fn a_stretch_of_a_pattern_is_what_is_there_in_the_whole() {
        let whole = all(Body::Pattern(7, 0..200_000)).await;
        assert_eq!(whole.len(), 200_000);
        let part = all(Body::Pattern(7, 65_000..131_111)).await;
        assert_eq!(part, whole[65_000..131_111]);
        assert_ne!(all(Body::Pattern(8, 0..100)).await, whole[..100]);
    }

    #[tokio::test]
    async fn a_stretch_of_a_file_is_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let whole: Vec<u8> = (0..200_000).map(|at| pattern(3, at)).collect();
        std::fs::write(&path, &whole).unwrap();
        let file = Large::new(File::open(&path).unwrap(), Arc::default());
        assert_eq!(all(Body::File(file.clone(), 0..200_000)).await, whole);
        assert_eq!(all(Body::File(file.clone(), 65_000..131_111)).await, whole[65_000..131_111]);
        assert!(all(Body::File(file, 9..9)).await.is_empty());
    }

    #[tokio::test]
    async fn a_file_that_became_shorter_is_an_error_and_not_a_short_body() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, [1; 100]).unwrap();
        let mut body = Body::File(Large::new(File::open(&path).unwrap(), Arc::default()), 0..101);
        // What is there may come first.
        while body.next().await.is_ok_and(|chunk| chunk.is_some()) {}
        assert_eq!(body.next().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
