//! Loss recovery (RFC 9002): round-trip times, timers, pacing, ECN and what is known about the bottleneck.

pub mod backlog;
pub mod capacity;
pub mod competing_backlog;
pub mod delay;
pub mod ecn;
pub mod interruption;
pub mod pacing;
pub mod persistent;
pub mod pto;
pub mod rate;
pub mod reordering;
pub mod rtt;
pub mod sent_packet;
pub mod windowed;

pub use ecn::Ecn;
pub use interruption::Cause;
pub use persistent::Persistence;
pub use rtt::Rtt;
