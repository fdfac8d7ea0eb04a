//! Experiments in real time: what `hvq demo`, `hvq lab live` and `hvq lab chaos` run, and the objects of pages that `hvq serve`
//! serves.
//!
//! ```text
//!   hvq lab live ─ starts ─▶ hvq run --packets … --report … --server 'nginx …' -- chromium | curl | iperf3 | …
//! ```
//!
//! Programs meet emulated channels in the shells of `hvq run`, one for each try, so that nothing is left of one in the next
//! and everything goes when this process does. Every try says how late the emulator was, and those of a machine that was
//! too busy are marked. That is for Linux only; the [`demo`] has server, channels and client in one process.

#[cfg(target_os = "linux")]
pub mod chaos;
pub mod command;
pub mod demo;
#[cfg(target_os = "linux")]
pub mod error;
#[cfg(target_os = "linux")]
pub mod failover;
#[cfg(target_os = "linux")]
pub mod load;
#[cfg(target_os = "linux")]
pub mod nginx;
pub mod objects;
#[cfg(target_os = "linux")]
pub mod observer;
#[cfg(target_os = "linux")]
pub mod programs;
#[cfg(target_os = "linux")]
pub mod report;
#[cfg(target_os = "linux")]
pub mod shell;
#[cfg(target_os = "linux")]
pub mod tools;
#[cfg(target_os = "linux")]
pub mod web;
