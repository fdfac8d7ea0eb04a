//! Streams (RFC 9000 §2–4): ordered bytes with priorities, message boundaries and flow control.
//!
//! [`Streams`] is what the connection owns. It takes frames and calls of the application, and offers data in the order
//! of RFC 9218; what goes on which path is decided elsewhere.

pub mod assembler;
pub mod blocks;
pub mod flow;
pub mod message;
pub mod outstanding;
pub mod priority;
pub mod range_map;
pub mod receive;
pub mod receive_state;
pub mod send;
pub mod send_buffer;
pub mod send_state;
pub mod short_queue;
pub mod sorted_queue;
pub mod streams;
pub mod table;

pub use crate::wire::stream_id::{Direction, StreamId};
pub use priority::SendOrder;
pub use streams::{Offer, ReadError, ReadOutcome, StreamEvent, StreamLimits, Streams, WriteError};
