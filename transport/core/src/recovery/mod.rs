//! Loss recovery (RFC 9002): round-trip times, timers, pacing, ECN and what is known about the bottleneck.

pub(crate) mod backlog;
pub(crate) mod capacity;
pub(crate) mod competing_backlog;
pub(crate) mod delay;
pub(crate) mod ecn;
pub(crate) mod interruption;
pub(crate) mod pacing;
pub(crate) mod persistent;
pub(crate) mod pto;
pub(crate) mod rate;
pub(crate) mod recent;
pub(crate) mod reordering;
pub(crate) mod rtt;
pub(crate) mod sent_packet;
pub(crate) mod windowed;

pub use ecn::Ecn;
