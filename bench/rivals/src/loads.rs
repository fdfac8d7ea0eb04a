//! The three loads of a client, as those of hvq's own.

use crate::record::{Load, Record, Said, say};
use anyhow::Result;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{interval, sleep};

/// From an answer to the next request, and from a datagram to the next: fifty a second.
const PACE: Duration = Duration::from_millis(20);
/// The interval at which paths are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// The interval at which a server counts what it sends.
pub const COUNT: Duration = Duration::from_millis(50);
/// Bytes of a request, of its answer and of a datagram.
pub const REQUEST: usize = 100;
/// Bytes of a read.
pub const BLOCK: usize = 64 << 10;
/// Bytes of a server's write.
pub const WRITE: usize = 16 << 10;
/// The first byte of a request for endless bytes.
pub const ENDLESS: u8 = b'e';

/// The acknowledgements of a path so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acknowledged {
    /// The path, or what the implementation has in its place.
    pub path: String,
    /// The name of the link that it goes over.
    pub link: String,
    /// A number that is another after an acknowledgement, and 0 before the first: a counter, or the smoothed round-trip time in
    /// nanoseconds.
    pub mark: u128,
}

/// A connection to the server.
pub trait Line {
    /// A download.
    type Download;

    /// Sends a request and waits for all of its answer; the bytes of the answer.
    async fn ask(&self, request: &[u8]) -> Result<usize>;
    /// Asks for endless bytes.
    async fn begin(&self) -> Result<Self::Download>;
    /// Waits for more of them; how many there were, 0 at the end.
    async fn read(download: &mut Self::Download) -> Result<usize>;
    /// Sends a datagram. One that there is no room for is lost.
    fn send(&self, datagram: &[u8]);
    /// Waits for a datagram that comes back.
    async fn receive(&self) -> Result<()>;
    /// The acknowledgements of each path.
    fn acknowledged(&self) -> Vec<Acknowledged>;
}

/// Plays all three loads, each on a connection of its own, for ever.
pub async fn play<L: Line>([asking, loading, talking]: [L; 3], record: &Record) -> Result<()> {
    let told = async {
        while !record.has_begun() {
            sleep(LOOK).await;
        }
        say(&Said::Begun)
    };
    let (.., told) = tokio::join!(
        ask(&asking, record),
        download(&loading, record),
        talk(&talking, record),
        look(&asking, record),
        told
    );
    told
}

/// Asks, each time after the answer to the one before.
async fn ask<L: Line>(line: &L, record: &Record) {
    loop {
        match line.ask(&[b'r'; REQUEST]).await {
            Ok(REQUEST) => record.arrived(Load::Requests),
            _ => record.failed(),
        }
        sleep(PACE).await;
    }
}

async fn download<L: Line>(line: &L, record: &Record) {
    let Ok(mut download) = line.begin().await else { return };
    while let Ok(bytes @ 1..) = L::read(&mut download).await {
        record.delivered(bytes);
    }
}

/// Sends a datagram every 20 ms, and notes those that come back.
async fn talk<L: Line>(line: &L, record: &Record) {
    let sending = async {
        let mut ticks = interval(PACE);
        loop {
            ticks.tick().await;
            line.send(&[b'd'; REQUEST]);
        }
    };
    let receiving = async {
        while line.receive().await.is_ok() {
            record.arrived(Load::Datagrams);
        }
    };
    tokio::join!(sending, receiving);
}

/// Notes when what went over each link is acknowledged.
async fn look<L: Line>(line: &L, record: &Record) {
    let mut known: BTreeMap<String, u128> = BTreeMap::new();
    loop {
        for Acknowledged { path, link, mark } in line.acknowledged() {
            if known.insert(path, mark).unwrap_or(0) != mark {
                record.acknowledged(&link);
            }
        }
        sleep(LOOK).await;
    }
}
