//! Failures of origins, and the answers that clients get.

use http::StatusCode;
use std::error::Error;
use std::fmt;
use std::io;

/// The reason for which an origin gave no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It cannot be connected to.
    Unreachable(String),
    /// Connecting took too long.
    ConnectTimeout,
    /// Its address may not be reached.
    Forbidden,
    /// It closed the connection before it answered.
    Closed,
    /// Its answer is none.
    Unintelligible(String),
    /// Its answer took too long.
    Late,
    /// It speaks HTTP/2 alone, where the connection has no other protocol.
    NoUpgrade,
}

impl Failure {
    /// The status of the answer to the client, and a sentence for people that tells nothing about the network behind.
    pub(crate) fn answer(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Unreachable(_) => (StatusCode::BAD_GATEWAY, "the origin cannot be reached"),
            Self::ConnectTimeout => (StatusCode::GATEWAY_TIMEOUT, "the origin cannot be reached in time"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "this address may not be reached"),
            Self::Closed => (StatusCode::BAD_GATEWAY, "the origin closed the connection without an answer"),
            Self::Unintelligible(_) => (StatusCode::BAD_GATEWAY, "the origin's answer is no HTTP"),
            Self::NoUpgrade => (StatusCode::NOT_IMPLEMENTED, "there are no WebSockets at this host"),
            Self::Late => (StatusCode::GATEWAY_TIMEOUT, "the origin did not answer in time"),
        }
    }

    /// Returns the label of the failure in metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::ConnectTimeout => "connect_timeout",
            Self::Forbidden => "forbidden",
            Self::Closed => "closed",
            Self::Unintelligible(_) => "unintelligible",
            Self::Late => "late",
            Self::NoUpgrade => "no_upgrade",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, text) = self.answer();
        match self {
            Self::Unreachable(cause) | Self::Unintelligible(cause) => write!(f, "{text}: {cause}"),
            _ => f.write_str(text),
        }
    }
}

impl Failure {
    /// Converts the error of an attempt to connect.
    pub(super) fn of_connecting(error: &(dyn Error + 'static)) -> Self {
        let kind = causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
        match kind {
            Some(io::ErrorKind::TimedOut) => Self::ConnectTimeout,
            Some(io::ErrorKind::PermissionDenied) => Self::Forbidden,
            _ => Self::Unreachable(last(error)),
        }
    }

    /// Converts the error of a request or a response.
    pub(super) fn of_exchange(error: &(dyn Error + 'static)) -> Self {
        match causes(error).find_map(|cause| cause.downcast_ref::<hyper::Error>()) {
            Some(found) if found.is_parse() => Self::Unintelligible(last(error)),
            _ => Self::Closed,
        }
    }
}

impl From<hyper_util::client::legacy::Error> for Failure {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        if error.is_connect() { Self::of_connecting(&error) } else { Self::of_exchange(&error) }
    }
}

/// The error and what led to it.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// Returns the last cause of the error, in words.
fn last(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}
