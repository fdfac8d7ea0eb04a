//! The content that a server has itself: the files of a folder, with media types, ranges and orderly errors.

mod answer;
mod files;
mod kept;
mod large;
mod range;

pub use answer::{Answer, Body};
pub use files::{DotFiles, Files};
pub use large::Large;

use http::{Method, Request, StatusCode};

/// Content that a server offers.
pub trait Content: std::fmt::Debug + Send + Sync + 'static {
    /// The answer to `request` for `path`, which starts with a slash and is decoded. It only reads.
    fn answer(&self, path: &str, request: &Request<()>) -> Answer;
}

impl Content for Files {
    fn answer(&self, path: &str, request: &Request<()>) -> Answer {
        Self::answer(self, path, request)
    }
}

/// The answer to `request` from what `find` has at a path, which starts with a slash and is decoded. Only reads.
pub fn answer(request: &Request<()>, find: impl FnOnce(&str) -> Answer) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Answer::not_allowed();
    }
    let answer = match decode_path(request.uri().path()) {
        Some(path) => find(&path),
        None => Answer::error(StatusCode::BAD_REQUEST),
    };
    if request.method() == Method::HEAD { answer.without_body() } else { answer }
}

/// The path of a URL without its percent-encoding; `None` if it is no text or holds what no path of ours has.
fn decode_path(path: &str) -> Option<String> {
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    let sound = decoded.starts_with('/') && !decoded.contains(['\0', '\\']);
    sound.then(|| decoded.into_owned())
}

#[cfg(test)]
mod tests;
