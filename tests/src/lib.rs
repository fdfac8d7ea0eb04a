//! What tests across crates share: a network in virtual time, and applications that use it.

pub mod bulk;
pub mod net;
pub mod pattern;
pub mod transfer;
