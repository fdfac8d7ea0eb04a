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

#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod chaos;
pub mod command;
pub mod demo;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod error;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod failover;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod load;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod nginx;
pub mod objects;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod observer;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod programs;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod report;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod shell;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod tools;
#[cfg(all(target_os = "linux", feature = "programs"))]
pub mod web;
