//! An orderly end of a server's connection.

use std::time::{Duration, Instant};

/// A connection on which nothing moved for so long has nothing more to say.
const STILL: Duration = Duration::from_secs(2);
/// The interval at which a connection that is to end is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// Waits until the client closes the connection, as GOAWAY tells it to when it has what it asked for, or nothing has moved
/// for a while: closing earlier would cut responses short that wait for a slow reader.
pub async fn settled(connection: &hvq::Connection) {
    let quiet = async {
        let mut last = (Instant::now(), None);
        while last.0.elapsed() < STILL {
            tokio::time::sleep(GLANCE).await;
            let paths = connection.stats().paths;
            let moved: Vec<_> = paths
                .iter()
                .map(|path| (path.in_flight, path.counters.bytes_sent, path.counters.bytes_received))
                .collect();
            if last.1.as_ref() != Some(&moved) {
                last = (Instant::now(), Some(moved));
            }
        }
    };
    tokio::select! {
        _ = connection.closed() => {}
        () = quiet => {}
    }
}
