//! A gateway over loopback, with clients and origins of all sorts.
#![expect(clippy::unwrap_used, reason = "whatever fails in a test fails the test")]

mod balance;
mod browsers;
#[path = "../common/mod.rs"]
mod common;

mod certificates;
mod chromium;
mod compression;
#[cfg(target_os = "linux")]
mod connect_ip;
mod early;
mod failing;
mod firefox;
mod hostile;
mod idle;
mod many;
mod misers;
mod names;
mod nginx;
mod operation;
mod origin_frame;
mod origins;
mod setup;
mod sharing;
mod tcp;
mod tcp_attacks;
mod tls;
mod tunnels;
mod websocket;
