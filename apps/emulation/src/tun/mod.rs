//! Programs in network namespaces behind emulated channels, as in Mahimahi's shells: the second driver of the channel
//! model, in real time and for programs that know nothing of it.
//!
//! ```text
//!   near namespace            this process                       far namespace
//!   COMMAND ─ tun0 ─ read ─▶ channel, or two and a steerer ─▶ write ─ tun0 ─ server, or the world outside
//! ```
//!
//! Namespaces have no name: file descriptors of this process and the processes in them hold them, and TUN devices go with
//! the descriptor that made them. Processes in a namespace are children of an init of their own ([`inside`]), which dies
//! with this process and takes all of them along. Nothing is left behind, however this process ends.
//!
//! It knows no QUIC. Linux only.

pub mod device;
pub mod emulator;
pub mod inside;
pub mod namespace;
pub mod offload;
pub mod outside;
pub mod packet;
pub mod privilege;
pub mod program;
pub mod shell;
mod signals;
pub mod steerer;
pub mod tool;
pub mod wiring;
