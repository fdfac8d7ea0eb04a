//! Parts that the commands of `hvq` share: failures with exit codes, the console, signals, TLS from files, logs, figures of
//! paths and emulated channels, the HTTP/3 client of `hvq get`, and the server of content of `hvq serve`.
//!
//! [`arguments`] are those that several commands have; nothing else here reads a command line: commands turn their arguments
//! into the values that this crate takes.

pub mod announced;
pub mod arguments;
pub mod certificate_key;
pub mod channels;
pub mod client;
pub mod content;
#[cfg(unix)]
pub mod control;
pub mod descriptors;
pub mod duration;
pub mod failure;
pub mod files;
pub mod interruption;
pub mod listen;
mod logging;
pub mod names;
pub mod output;
pub mod path_choice;
pub mod paths;
pub mod qlog;
pub mod quota;
#[cfg(all(target_os = "linux", feature = "run"))]
pub mod run;
pub mod server;
pub mod sessions;
pub mod signals;
pub mod splice;
pub mod tls;
pub mod transport;

pub use hvq_emulation::configuration;
