//! The handshake of a connection: set-up, keys, versions, 0-RTT, and the attempts that follow each other.

pub mod establish;
pub mod key_update;
pub mod setup;
pub mod succession;
pub mod versions;
pub mod zero_rtt;
