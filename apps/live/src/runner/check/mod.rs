//! Checks of a case that ended: files byte by byte, and the traffic.

mod addresses;
mod common;
mod handshake;
mod protection;

pub(crate) use addresses::{address_rebinding, ipv6, migration, port_rebinding};
pub(crate) use handshake::{
    amplification, handshake, handshakes, long_round_trip, resumption, retry, transfer, version_2, zero_rtt,
};
pub(crate) use protection::{chacha20, ecn, key_update, multiplexing};

use crate::trace::Trace;
use std::path::PathBuf;

/// The evidence that a case left behind.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// The trace at the client.
    pub(crate) left: Trace,
    /// The trace at the server.
    pub(crate) right: Trace,
    /// The files that the server had.
    pub(crate) offered: PathBuf,
    /// The folder in which the client put them.
    pub(crate) received: PathBuf,
    /// The names of the files that were asked for.
    pub(crate) files: Vec<String>,
}
