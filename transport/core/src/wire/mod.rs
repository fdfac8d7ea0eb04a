//! Bytes on the wire: packets, frames and transport parameters, decoded into types that cannot be wrong.
//!
//! Nothing in here panics on network input, indexes a slice, or allocates or loops beyond the bytes that are present.
#![deny(clippy::indexing_slicing)]

pub mod client_hello;
pub mod connection_id;
pub(crate) mod cursor;
pub mod frame;
pub mod grease;
pub mod header;
pub(crate) mod level;
pub mod overhead;
pub(crate) mod packet_number;
pub(crate) mod stream_id;
pub mod transport_parameters;
pub mod varint;
pub mod version;
pub mod version_information;

pub use connection_id::{ConnectionId, ResetToken};
pub use cursor::{Reader, Truncated};
pub use frame::{Frame, FrameReader};
pub use header::{
    HeaderLayout, Incoming, KeyPhase, LongHeader, LongKind, PacketKind, ProtectedPacket, ShortHeader,
};
pub use transport_parameters::{PreferredAddress, TransportParameters};
pub use version::Version;
