//! The channel model: trace-driven delay, rate, queue and loss, sans-IO and seeded, and a UDP relay that drives it.
//!
//! A [`Channel`] is two [`Link`]s, one for each [`Direction`]. A link takes packets of any type with
//! [`Link::enqueue`], says when the next one leaves with [`Link::next_deadline`], and hands it out with
//! [`Link::dequeue`]. Time is an argument everywhere: a `Duration` since the start of the channel. The same model
//! runs in virtual time (experiments and tests) and behind real sockets (the [`relay`] module).
//!
//! # What a packet meets, in this order
//!
//! 1. A **blackout** drops it, on entry and again where it would come out: a cut channel loses what it carries.
//! 2. **Random loss**, then **bursty loss** (Gilbert–Elliott), drop it before it costs any capacity.
//! 3. The **queue** is FIFO and drop-tail, in packets or bytes; the packet being sent counts as queued. Above a
//!    threshold it asks for the mark of congestion, which ECN-capable datagrams get.
//! 4. A device asleep (**RRC/DRX**) holds it until the next wake-up.
//! 5. The **rate**, constant or from a trace, sends one packet after the other; during a **collapse** little of it is left.
//! 6. The **delay** (constant, drawn, or from a trace read at the moment the packet left the queue) is added, and that of a
//!    **detour** after a hand-over. A later packet never leaves before an earlier one: packets that were held leave
//!    together.
//! 7. **Reordering** and **duplication**, for tests, are the two deliberate exceptions.
//!
//! # Sizes
//!
//! A size is what the caller hands in; for a UDP datagram that is its payload. [`LinkSpec::overhead`] adds a constant
//! per packet wherever capacity and queue space are counted (28 for IPv4 and UDP headers); statistics count sizes as
//! handed in.
//!
//! # The text form of a channel
//!
//! [`ChannelSpec`] implements `FromStr`, `Display` and serde (as a string). Items are separated by commas or newlines;
//! `#` starts a comment; a later item overrides an earlier one. An item sets both directions unless its key is
//! prefixed `up.` or `down.`.
//!
//! | item | meaning |
//! | --- | --- |
//! | `urllc`, `embb`, `MM-S` … `LB-D` | a preset: sets delay, rate and DRX |
//! | `trace=MM-D` | the same as the preset `MM-D` |
//! | `rtt=5ms`, `delay=2.5ms` | constant delay; `rtt` is halved for each direction |
//! | `rtt=normal:10ms:0.5` | normal with mean and coefficient of variation, negative draws count as zero |
//! | `rtt=uniform:5ms:10ms` | uniform |
//! | `rtt=trace:MM-D`, `rtt=file:PATH` | a CSV of `time_ms,rtt_ms`, interpolated linearly |
//! | `rate=2mbit`, `rate=unlimited` | constant rate (`bit`, `kbit`, `mbit`, `gbit`) |
//! | `rate=trace:MM-D`, `rate=file:PATH` | a CSV of `time_ms,down_mbps,up_mbps`; a value holds until the next row |
//! | `up.rate=mahimahi:PATH` | a link trace of Mahimahi: a line for each 1500 bytes, the millisecond in which they pass |
//! | `offset=30s`, `end=loop` or `end=hold` | where in the traces to start, and what follows their last row |
//! | `queue=800p`, `queue=64kb`, `queue=unlimited` | drop-tail queue; 800 packets unless said |
//! | `ecn=50p`, `ecn=64kb`, `ecn=off` | packets that find more than this queued leave with congestion experienced |
//! | `loss=0.1%` | random loss |
//! | `burst=0.1%/25%` or `burst=0.1%/25%/50%` | Gilbert–Elliott: chance to enter and to leave the bad state, loss in it |
//! | `reorder=1%/5ms`, `duplicate=1%` | hold a packet back by up to 5 ms; deliver it twice |
//! | `blackout=10s..12s+20s..21s` | intervals in which nothing passes |
//! | `collapse=2s..4s/5%+8s../50%` | intervals in which that share of the rate is left |
//! | `detour=2s..3s/30ms` | intervals in which packets are under way for longer, one way |
//! | `extra=2mbit`, `extra=none` | a rate beside the other one, which no trace and no collapse touches |
//! | `drx=30ms/40ms`, `drx=mmwave`, `drx=lowband`, `drx=off` | idle timer and wake-up cycle, downlink only |
//! | `overhead=28` | bytes added to each packet |
//!
//! # Two channels behind one address
//!
//! [`steer::Steered`] puts two channels below a transport that sees one path, as DChannel does: a policy chooses for
//! each packet, and a reordering buffer hides that it did.
//!
//! # A program that emulates a channel
//!
//! With the default feature `relay`, [`relay::Relay::start`] runs a channel between UDP sockets without privileges.
//! [`relay::RelayOptions`] documents every knob a command line needs. With the default feature `tun`, `tun` runs channels between
//! network namespaces, for programs that know nothing of them (Linux).

mod blackout;
mod channel;
pub mod configuration;
mod delay;
mod drx;
mod link;
mod loss;
mod mobility;
mod quantity;
mod queue;
mod rate;
#[cfg(all(feature = "relay", unix))]
pub mod relay;
pub mod samples;
mod series;
mod spec;
mod statistics;
pub mod steer;
mod trace;
#[cfg(all(feature = "tun", target_os = "linux"))]
pub mod tun;

pub use blackout::Interval;
pub use channel::{Channel, Direction};
pub use delay::{Delay, Reading};
pub use drx::Drx;
pub use link::{Admission, Departure, DropReason, Link};
pub use loss::Burst;
pub use mobility::{Collapse, Detour};
pub use quantity::{Bandwidth, Probability, QuantityError};
pub use queue::QueueLimit;
pub use rate::Rate;
pub use series::{Bucket, Series};
pub use spec::{ChannelSpec, LinkSpec, Reorder, Replay, SpecError, Typical};
pub use statistics::{Count, LinkStatistics, Summary, Times};
pub use trace::{DelayTrace, RateTrace, TraceEnd, TraceError, TraceName, TraceProblem, TraceSource};
