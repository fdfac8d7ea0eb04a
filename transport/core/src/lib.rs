//! QUIC v1 (RFC 9000, 9001, 9002, 9221) with the multipath extension (RFC 10069), sans-IO.
//!
//! The crate reads no clock, opens no socket, spawns nothing and draws randomness only from the seed that it was
//! given: time, datagrams and commands go in through [`endpoint::Endpoint`], datagrams and events come out.

pub mod congestion;
pub mod connection;
pub mod crypto;
pub mod datagram;
pub mod endpoint;
pub mod error;
pub mod flat_map;
pub(crate) mod four_tuple;
pub(crate) mod handshake;
pub mod hashing;
pub mod inspect;
pub(crate) mod knowledge;
pub mod memory;
pub(crate) mod path;
#[cfg(test)]
mod proofs;
pub mod ranges;
pub(crate) mod recovery;
pub(crate) mod recovery_token;
mod seed;
pub mod slots;
pub(crate) mod space;
pub mod stream;
pub mod time;
pub mod trace;
pub mod wire;

pub use hvq_scheduler as scheduler;
pub use hvq_scheduler::{Bandwidth, PathId, Role};
