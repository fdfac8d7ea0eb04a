//! The hvq command as people run it: its output, its exit codes, and what arrives.
#![expect(clippy::unwrap_used, reason = "whatever fails in a test fails the test")]

mod arguments;
mod captures;
mod channels;
#[cfg(target_os = "linux")]
mod chaos;
#[cfg(target_os = "linux")]
mod failover;
mod files;
mod gateway;
#[cfg(target_os = "linux")]
mod guides;
mod hostile_serve;
#[cfg(feature = "video")]
mod hostile_video;
mod lab;
mod links;
mod manual;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod mounted;
mod names;
#[cfg(target_os = "linux")]
mod networks;
mod origins;
mod restart;
mod support;
mod transfers;
#[cfg(target_os = "linux")]
mod up;
#[cfg(feature = "video")]
mod video;
