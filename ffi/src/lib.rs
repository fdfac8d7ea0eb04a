//! The C interface of hvq.
//!
//! `include/hvq.h` is made from this crate and documents it for programs in C; what follows is for programmers of the
//! crate. Modules with functions for C are the topics of the header (`tests/header.rs` has their order). The others are what
//! these share: `guard` is what every entry goes through, `state` what an endpoint of C holds; `bridge`, `credentials`,
//! `event`, `transport` and `tuning` translate.
#![expect(unsafe_code, reason = "pointers of C cannot be followed otherwise")]
#![expect(non_camel_case_types, reason = "these are the names in C")]
#![expect(
    clippy::missing_safety_doc,
    reason = "the duties of callers are the same everywhere: the header begins with them"
)]

#[macro_use]
mod calls;

pub mod address;
pub mod admission;
mod bridge;
pub mod config;
pub mod connection;
pub mod counters;
mod credentials;
pub mod datagram;
pub mod endpoint;
pub mod error;
mod event;
mod guard;
pub mod log;
pub mod output;
pub mod path;
pub mod scheduler;
pub mod session;
mod state;
pub mod stream;
pub mod tls;
mod transport;
mod tuning;
pub mod version;

pub use state::hvq_endpoint;
