//! Packet number spaces: what arrived and what was sent under one sequence of packet numbers.
//!
//! Initial and Handshake have one space each (RFC 9000 §12.3), and so has each path (RFC 10069 §2.4).

pub(crate) mod lost;
pub(crate) mod received;
pub(crate) mod sent;

use received::Received;
use sent::Sent;

/// Both halves of a packet number space.
#[derive(Debug, Default)]
pub struct Space {
    /// The packets that arrived, and those that are to be acknowledged.
    pub received: Received,
    /// The packets that were sent, and their fates.
    pub sent: Sent,
}
