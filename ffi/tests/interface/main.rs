//! The C interface, called from Rust as C calls it.
#![expect(unsafe_code, reason = "C is called as C calls it, and allocations are counted by an allocator")]

mod callbacks;
mod choices;
mod every;
mod logs;
mod misuse;
mod overhead;
mod pair;
#[cfg(unix)]
mod panics;
mod resumption;
mod talk;
