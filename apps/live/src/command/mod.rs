//! The commands of `hvq demo` and of `hvq lab` in real time: their arguments, and what they do.

#[cfg(target_os = "linux")]
pub mod chaos;
pub mod demo;
#[cfg(target_os = "linux")]
pub mod failover;
#[cfg(target_os = "linux")]
pub mod live;
