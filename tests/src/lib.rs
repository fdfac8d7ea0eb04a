//! Tools that tests across crates share: a network in virtual time, and applications that use it.

pub mod interactions;
pub mod talk;
pub mod transfer;

pub use hvq_lab::workload::{bulk, pattern};
pub use hvq_lab::world as net;
