//! The commands of `hvq demo` and of `hvq lab` in real time: their arguments, and what they do.

#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod chaos;
pub mod demo;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod failover;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod live;
