//! An HTTP/3 server: what it answers ([`Site`]) and how connections are served ([`serving`]).

mod answer;
mod files;
mod pages;
mod range;
pub(crate) mod serving;

pub(crate) use answer::{Answer, Body};
pub(crate) use files::Files;
pub(crate) use pages::{Pages, chosen, object_path};

use http::{Method, Request, StatusCode};

/// What a server has to offer.
#[derive(Debug)]
pub(crate) enum Site {
    /// The files of a folder.
    Files(Files),
    /// The objects of page descriptions, made up to size.
    Pages(Pages),
}

impl Site {
    /// The answer to `request`; only reads files.
    pub(crate) fn answer(&self, request: &Request<()>) -> Answer {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Answer::not_allowed();
        }
        let answer = match decode_path(request.uri().path()) {
            Some(path) => match self {
                Self::Files(files) => files.answer(&path, request),
                Self::Pages(pages) => pages.answer(&path, request),
            },
            None => Answer::error(StatusCode::BAD_REQUEST),
        };
        if request.method() == Method::HEAD { answer.without_body() } else { answer }
    }
}

/// The path of a URL without its percent-encoding; `None` if it is no text or holds what no path of ours has.
fn decode_path(path: &str) -> Option<String> {
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    let sound = decoded.starts_with('/') && !decoded.contains(['\0', '\\']);
    sound.then(|| decoded.into_owned())
}

#[cfg(test)]
mod tests;
