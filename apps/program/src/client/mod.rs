//! The HTTP/3 client of `hvq get`: URLs over one or several paths.
//!
//! A [`Session`] is a connection to the server of a [`Target`]; [`fetch`](fetch::fetch) sends a request on it and writes the
//! response to a [`Sink`]; [`Statistics`] say what it took.

pub mod fetch;
mod others;
mod session;
mod sink;
mod statistics;
mod target;
#[cfg(test)]
mod tests;

pub use fetch::{ErrorStatus, Fetched, RequestOptions, fetch};
pub use session::Session;
pub use sink::Sink;
pub use statistics::Statistics;
pub use target::Target;

use crate::names::Names;
use crate::path_choice::PathChoice;
use crate::sessions::FileSessions;
use hvq::ClientConfig;
use hvq::tls::Replay;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a client's connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// TLS and transport.
    pub config: ClientConfig,
    /// The way from names to addresses.
    pub names: Names,
    /// The paths.
    pub paths: PathChoice,
    /// Tells whether a request may go in 0-RTT, in which others can have it delivered again (RFC 8470).
    pub replay: Replay,
    /// The time after which the first path moves to another port; `None` lets it stay.
    pub migrate_after: Option<Duration>,
    /// The session tickets, beside whose file another keeps what was measured of paths.
    pub sessions: Option<Arc<FileSessions>>,
}
