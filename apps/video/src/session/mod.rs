//! Video over connections in real time: a file, a camera or a test picture is sent, and recorded, shown in a window or on a
//! page, or handed on as RTP. What `hvq video` runs.
//!
//! This is the part of the crate that has sockets, clocks, files and programs (`ffmpeg`, `ffplay`).

pub mod compare;
mod pictures;
pub mod receive;
mod screen;
pub mod send;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The application protocol: one unidirectional stream for each layer, as [`crate::message`] says.
pub const ALPN: &[u8] = b"hvq-svc/1";

/// The time after which a peer of which nothing is heard has vanished.
pub const SILENCE: Duration = Duration::from_secs(5);

/// The code with which a sender takes back a layer that is late.
const LATE: u64 = 1;

/// The time of day, which sender and receiver must have in common for latencies to be right.
fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A size of pictures in pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// The width.
    pub width: usize,
    /// The height.
    pub height: usize,
}
