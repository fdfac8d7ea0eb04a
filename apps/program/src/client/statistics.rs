//! The statistics of a fetch, for programs and for people.

use super::fetch::Fetched;
use super::others::Unused;
use super::session::Session;
use super::target::Target;
use crate::output::Console;
use crate::paths::{self, PathFigures};
use hvq::Connection;
use hvq_scheduler::Policy;
use serde::Serialize;
use std::time::Duration;

/// The figures of one fetch.
#[derive(Debug, Serialize)]
pub struct Statistics {
    /// The URL that was fetched.
    url: String,
    /// The HTTP status.
    status: u16,
    /// Bytes of the body.
    bytes: u64,
    /// Times in milliseconds.
    times_ms: Times,
    /// The policy that placed what was sent.
    scheduler: String,
    /// True if both sides speak multipath.
    multipath: bool,
    /// The paths, since the start of the connection.
    paths: Vec<PathFigures>,
    /// The paths that nothing came over, and why.
    unused: Vec<Unused>,
    #[serde(skip)]
    resumption: Resumed,
}

/// The use of a session ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resumed {
    No,
    Yes,
    /// The request was taken in 0-RTT.
    WithEarlyData,
}

impl Resumed {
    fn of(connection: &Connection) -> Self {
        match (connection.is_resumed(), connection.early_data_accepted()) {
            (false, _) => Self::No,
            (true, Some(true)) => Self::WithEarlyData,
            (true, _) => Self::Yes,
        }
    }
}

#[derive(Debug, Serialize)]
struct Times {
    /// From the start to the end of the handshake, of the connection that was used.
    connect: f64,
    /// From the request to the headers of the response.
    first_byte: f64,
    /// From the request to the end of the response.
    total: f64,
}

impl Statistics {
    /// The figures of `fetched`, which came over `session`.
    pub fn new(session: &Session, target: &Target, fetched: &Fetched, scheduler: Policy) -> Self {
        let milliseconds = |duration: Duration| (duration.as_secs_f64() * 1e6).round() / 1e3;
        Self {
            url: target.url.to_string(),
            status: fetched.status.as_u16(),
            bytes: fetched.bytes,
            times_ms: Times {
                connect: milliseconds(session.connect_time),
                first_byte: milliseconds(fetched.first_byte),
                total: milliseconds(fetched.total),
            },
            scheduler: scheduler.to_string(),
            multipath: session.connection.is_multipath(),
            paths: paths::figures(&session.connection),
            unused: session.others.unused(),
            resumption: Resumed::of(&session.connection),
        }
    }

    /// One object in one line.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts are JSON")
    }

    /// Says with `-v` what it took, and whether the session was resumed.
    pub fn tell(&self, console: Console) {
        console.detail(|| self.text());
        let said = match self.resumption {
            Resumed::No => return,
            Resumed::WithEarlyData => "accepted",
            Resumed::Yes => "not used",
        };
        console.detail(|| format!("* the session was resumed, 0-RTT {said}"));
    }

    /// A few lines for a person.
    fn text(&self) -> String {
        let mut text = format!(
            "* {} bytes, connect {:.1} ms, first byte {:.1} ms, total {:.1} ms, scheduler {}",
            self.bytes, self.times_ms.connect, self.times_ms.first_byte, self.times_ms.total, self.scheduler
        );
        for path in &self.paths {
            text.push_str("\n* ");
            text.push_str(&paths::line(path));
        }
        for unused in &self.unused {
            text.push_str("\n* ");
            text.push_str(&unused.line());
        }
        text
    }
}
