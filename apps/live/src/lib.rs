//! Experiments in real time with real programs: what `hvq lab live` and `hvq lab chaos` run.
//!
//! ```text
//!   hvq lab live ─ starts ─▶ hvq run --packets … --report … --server 'nginx …' -- chromium | curl | iperf3 | …
//! ```
//!
//! Programs meet emulated channels in the shells of `hvq run`, one for each try, so that nothing is left of one in the next
//! and everything goes when this process does. Every try says how late the emulator was, and those of a machine that was
//! too busy are marked. Linux only.
#![cfg(target_os = "linux")]

pub mod chaos;
pub mod error;
pub mod load;
pub mod nginx;
pub mod observer;
pub mod programs;
pub mod report;
pub mod shell;
pub mod statistics;
pub mod tools;
pub mod web;
