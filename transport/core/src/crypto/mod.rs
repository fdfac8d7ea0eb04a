//! TLS and packet protection (RFC 9001), with the nonce of the multipath extension (RFC 10069 §2.4).
//!
//! Nothing in here panics on network input. TLS is BoringSSL's, behind [`session`]; packets are protected by `ring` or BoringSSL,
//! behind one seam.
#![deny(clippy::indexing_slicing)]

pub mod aead;
pub mod initial;
pub mod keys;
pub mod one_rtt;
pub mod protect;
pub mod replay;
pub mod reset;
pub(crate) mod retry;
pub mod session;
pub mod token;

#[cfg(test)]
pub(crate) mod vectors;
