//! The C interface, called from Rust as C calls it.
#![expect(unsafe_code, reason = "C is called as C calls it, and allocations are counted by an allocator")]

mod callbacks;
mod misuse;
mod overhead;
mod pair;
mod talk;
