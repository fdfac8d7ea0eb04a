//! Other implementations that run in this process.

pub mod noq;
pub mod quiche;
pub mod quinn;
pub mod s2n;
mod tls;
