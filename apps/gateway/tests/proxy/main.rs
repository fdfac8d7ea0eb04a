//! Programs, a proxy, a gateway and an origin over loopback.
#![expect(clippy::unwrap_used, reason = "whatever fails in a test fails the test")]

#[path = "../common/mod.rs"]
mod common;

mod browser;
mod packets;
mod priorities;
mod programs;
mod setup;
mod wire;
