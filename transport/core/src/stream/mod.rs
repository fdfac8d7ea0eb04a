//! Streams (RFC 9000 §2–4): ordered bytes with priorities, message boundaries and flow control.
//!
//! [`Streams`] is what the connection owns. It takes frames and calls of the application, and offers data in the order
//! of RFC 9218; what goes on which path is decided elsewhere.

pub(crate) mod assembler;
pub(crate) mod blocks;
pub(crate) mod flow;
pub(crate) mod message;
pub(crate) mod meter;
pub(crate) mod outstanding;
pub(crate) mod priority;
pub(crate) mod range_map;
pub(crate) mod receive;
pub(crate) mod receive_state;
pub(crate) mod send;
pub(crate) mod send_buffer;
pub(crate) mod send_state;
pub(crate) mod short_queue;
pub(crate) mod sorted_queue;
pub(crate) mod streams;
pub(crate) mod table;

pub use crate::wire::stream_id::{Direction, StreamId};
pub use meter::{MeteredHalf, StreamMeter};
pub use priority::SendOrder;
pub use short_queue::ShortQueue;
pub use streams::{Accounts, Offer, ReadError, ReadOutcome, StreamEvent, StreamLimits, Streams, WriteError};
