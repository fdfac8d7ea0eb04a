//! Other implementations that run in this process.

pub mod noq;
pub mod quiche;
