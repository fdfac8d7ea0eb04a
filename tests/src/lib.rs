//! Tools that tests across crates share: a network in virtual time, applications that use it, and fuzz targets.

pub mod fuzz;
pub mod interactions;
pub mod talk;
pub mod transfer;

pub use hvq_lab::workload::{bulk, pattern};
pub use hvq_lab::world as net;
