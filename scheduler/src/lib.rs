//! The scheduler contract of hvq: which path carries each frame, and the policies that answer.
//!
//! Order and place are separate questions. The transport decides what goes next (control, acknowledgements,
//! then streams by RFC 9218 urgency); a [`Scheduler`] decides on which path. It sees snapshots only: it reads no
//! clock, holds no socket and owns no path.

mod blest;
pub mod contract;
mod ecf;
mod expectation;
mod flights;
mod hvc;
mod item;
mod min_rtt;
mod observation;
pub mod paper;
mod path;
mod policy;
mod redundant;
mod role;
mod roles;
mod round_robin;
mod set;
mod single;
mod sttf;
mod units;
mod usable;
mod weighted;
mod xlink;

pub use blest::Blest;
pub use ecf::Ecf;
pub use expectation::{Arrival, Expectation};
pub use flights::Flights;
pub use hvc::{Amendment, Amendments, Duplicating, Hvc, NoPrice, NoVariant, Price, Variant};
pub use item::{Content, History, Item, Message, Priority, StreamPriority};
pub use min_rtt::MinRtt;
pub use observation::Observation;
pub use path::{Hints, Metering, PathState, PathView, Rtt, Sharing};
pub use policy::{Policy, UnknownPolicy};
pub use redundant::Redundant;
pub use role::Role;
pub use round_robin::RoundRobin;
pub use set::PathSet;
pub use single::Single;
pub use sttf::Sttf;
pub use units::{Bandwidth, PathId, PerMille};
pub use usable::{proven, usable};
pub use weighted::Weighted;
pub use xlink::Xlink;

use std::fmt;
use std::time::Duration;

/// A policy that says which path carries each frame.
///
/// The contract, which [`contract::check`] tests on every policy:
///
/// - `paths` is never empty and holds at most [`PathSet::CAPACITY`] paths, each id once.
/// - `send_allowance` is what a path may send now (congestion window and pacer); 0 means none now, and `next_send` says when
///   room is expected again. Naming a path without room counts as [`Placement::Wait`], with one exception:
///   acknowledgements are not congestion controlled (RFC 9002 §7), so they may be placed on it.
/// - If paths are [usable](usable()) the answer names only those; copies beside may go on silent ones and backups ([`Placement::OnEach`]).
/// - While every usable path has room and nothing is queued on any, the answer is not to wait.
/// - Equal histories give equal answers: a policy draws no random numbers and reads no clock but [`Item::now`].
pub trait Scheduler: Send + fmt::Debug {
    /// The name by which [`Policy`] finds this policy.
    fn name(&self) -> &'static str;

    /// Chooses the path that carries `item`, given the paths as they stand now.
    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement;

    /// Returns the index of the one of `paths`, none of which is open, over which a connection had better begin. Delays
    /// and queues are what other connections saw and hints say. By default the first, which the application named
    /// first.
    fn first(&mut self, _flights: &Flights, _paths: &[PathView]) -> usize {
        0
    }

    /// Returns the number of further pieces of the stream, each of the size of `item`, which was just placed whole on `path`,
    /// that may follow it there without a question for each. The transport keeps to the path's send allowance, to the end of
    /// the message and to the order of streams all the same. Bulk data has its answer less often so; a policy that weighs
    /// every frame says 0.
    fn repeats(&mut self, _item: &Item, _path: &PathView) -> usize {
        0
    }

    /// Returns true if a copy of `item`, which is in flight on a path whose delivery has collapsed, is worth sending on another
    /// one: the original is expected to pass the bottleneck after `expected`. The copy is then offered to
    /// [`Scheduler::place`]. By default no: a copy is made of what a path holds that does not answer at all.
    fn copies(&mut self, _item: &Item, _paths: &[PathView], _expected: Duration) -> bool {
        false
    }

    /// Returns the arrivals that the latest answer of [`Scheduler::place`] expected of the two paths between which it
    /// chose; `None` if it did not choose between two that could both send. By default nothing is expected.
    fn expected(&self) -> Option<Expectation> {
        None
    }

    /// Takes note of the outcome of earlier placements. Most policies need not listen.
    fn observe(&mut self, _observation: &Observation) {}
}

/// The placement of a frame: on a path, on several, or later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// The first `bytes` of the item, at least 1 and at most [`Item::bytes`], go on `path`; the rest is offered again.
    ///
    /// The transport sends fewer if the path's send allowance or its open packet holds fewer. Items that cannot be divided (all
    /// but stream data) are always placed whole.
    On {
        /// The path.
        path: PathId,
        /// The number of bytes of the item.
        bytes: usize,
    },
    /// A copy of the whole item goes on each path of the set. At least one is [usable](usable()); others may be silent or backups,
    /// but validated: a copy asks whether a silent path answers.
    OnEach(PathSet),
    /// Nothing until some path changes (an acknowledgement arrives, room appears, a path comes or goes).
    Wait,
    /// The item waits as with [`Placement::Wait`], but is offered again after this long at the latest.
    WaitAtMost(Duration),
}

/// The snippet of the README, compiled by `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
