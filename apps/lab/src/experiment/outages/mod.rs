//! Outages: random pairs of channels that go dark, and whether two channels end what the better one alone ends.
//!
//! A cell is a load over two channels with outages. It is run over each channel alone and over both with each policy; the
//! transport, what it is told of the channels and its controllers are the same. Two channels may end later than the better
//! one alone by a tenth and [`GRACE`].

mod cell;
mod draw;
mod named;
mod outage;
mod outcome;
#[cfg(test)]
mod tests;

pub use cell::OutageCell;
pub use draw::drawn;
pub use named::{named, names};
pub use outage::{Outage, OutageKind, Pattern};
pub use outcome::{GRACE, OutageOutcome, OutageVerdict, SHARE, allowed};

use hvq_scheduler::Policy;

/// The policies that use one channel only, whatever the other could do.
const ONE_CHANNEL: [&str; 3] = ["single", "all-embb", "all-urllc"];

/// The policies that use two paths, with their default parameters, the default policy first.
pub fn policies() -> Vec<Policy> {
    let two = Policy::NAMES.into_iter().filter(|name| !ONE_CHANNEL.contains(name));
    two.map(|name| name.parse().expect("a listed name is a policy's")).collect()
}
