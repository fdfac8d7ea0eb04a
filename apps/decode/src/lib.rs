//! From a capture to frames: which frame went over which path, when and in which packet.
//!
//! A [`Capture`] gives datagrams, a [`KeyLog`] secrets, and a [`Decoder`] turns both into [`Packet`]s. It follows
//! connections over all their addresses by their connection IDs, which also name the path (RFC 10069 §3). Everything in
//! a capture may be damaged or forged: what cannot be understood is said to be so, and nothing panics.
#![deny(clippy::indexing_slicing)]

pub mod capture;
mod choice;
mod connection;
mod decoder;
mod keylog;
mod messages;
mod packet;
pub mod report;
mod summary;
mod text;
mod waiting;

pub use capture::{Capture, CaptureError, Datagram, Skipped};
pub use choice::{Choice, kind};
pub use decoder::Decoder;
pub use keylog::KeyLog;
pub use messages::Messages;
pub use packet::{Contents, Extension, Header, Kind, Packet, Problem};
pub use summary::{Summary, SummaryRow};
pub use text::{describe, json};
pub use waiting::PatientDecoder;
