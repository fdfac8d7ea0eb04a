//! The C interface of hvq.
//!
//! `include/hvq.h` is made from this crate and documents it for programs in C; what follows is for programmers of the
//! crate. Modules with functions for C come in the order of the header, each a topic of it: `error`, `address`, `config`,
//! `log`, `tls`, `endpoint`, `output`, `connection`, `stream`, `datagram`, `path`, `scheduler`. The others are what these share:
//! `guard` is what every entry goes through, `state` what an endpoint of C holds, `bridge`, `credentials`, `event` and
//! `transport` translate.
#![expect(unsafe_code, reason = "pointers of C cannot be followed otherwise")]
#![expect(non_camel_case_types, reason = "these are the names in C")]
#![expect(
    clippy::missing_safety_doc,
    reason = "the duties of callers are the same everywhere: the header begins with them"
)]

#[macro_use]
mod calls;

pub mod address;
mod bridge;
pub mod config;
pub mod connection;
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
mod state;
pub mod stream;
pub mod tls;
mod transport;
pub mod version;

pub use state::hvq_endpoint;
