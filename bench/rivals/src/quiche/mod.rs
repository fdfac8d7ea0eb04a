//! quiche: a single path, which moves to the link that the system prefers once there is news of links.
//!
//! A client has a socket on that link. When another is preferred it opens one there and has the way validated
//! (`Connection::probe_path`). It moves there (`Connection::migrate`) once that is done, or at once if the way that it is on is
//! gone. Without news it stays where it is. Both ends give out connection IDs for as many ways as the other end permits, and the
//! client retires that of a way that it has left.
//!
//! Windows are those that quiche's client program sets by default, and so are the bytes of a datagram. Packets leave at the times
//! that quiche gives them (`outbox.rs`). Everything else is its default.

mod client;
mod line;
mod outbox;
mod server;

use crate::tls;
use anyhow::{Context, Result};
pub use client::play;
use quiche::{Config, Connection, ConnectionId};
pub use server::serve;
use std::path::Path;

/// Bytes of a datagram at most.
const DATAGRAM: usize = 1_350;
/// Bytes of a receive buffer.
const BATCH: usize = 1 << 16;
/// Bytes of a connection ID.
const ID: usize = 16;
/// Connection IDs that a peer may give at a time, and so the ways that there may be.
const IDS: u64 = 8;
/// The silence after which a connection is given up, in milliseconds: that of quinn.
const IDLE: u64 = 30_000;
/// Datagrams that wait to be read or sent.
const WAITING: usize = 1_000;

/// The configuration of both ends.
fn config() -> Result<Config> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(&[tls::PROTOCOL])?;
    config.set_max_idle_timeout(IDLE);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(10_000_000);
    config.set_max_connection_window(25_165_824);
    config.set_initial_max_stream_data_bidi_local(1_000_000);
    config.set_initial_max_stream_data_bidi_remote(1_000_000);
    config.set_max_stream_window(16_777_216);
    config.set_initial_max_streams_bidi(100);
    config.set_active_connection_id_limit(IDS);
    config.enable_dgram(true, WAITING, WAITING);
    Ok(config)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8, which quiche wants", path.display()))
}

/// Connection IDs that are unlike each other.
#[derive(Debug, Default)]
struct Ids(u128);

impl Ids {
    /// The next one.
    fn next(&mut self) -> [u8; ID] {
        self.0 += 1;
        self.0.to_be_bytes()
    }

    /// Gives `connection` as many as its peer takes, and tells `given` of each.
    fn give(&mut self, connection: &mut Connection, mut given: impl FnMut([u8; ID])) {
        while connection.is_established() && connection.scids_left() > 0 {
            let id = self.next();
            // A token that nobody guesses is for networks that are not of our own making.
            if connection.new_scid(&ConnectionId::from_ref(&id), self.0, false).is_err() {
                return;
            }
            given(id);
        }
    }
}
