//! The scheduler slot: the policy of a connection, and the guard that keeps it from stalling the connection.

use crate::connection::Role;
use crate::time::Instant;
use hvq_scheduler::{Content, Expectation, Item, Observation, PathView, Placement, Scheduler};
use std::time::Duration;

/// Rounds without any placement, though the network is idle, after which the transport overrules the policy.
const STALL_LIMIT: u32 = 3;
/// The longest that a policy may hold everything back before it is asked again.
const STALL_WAKE: Duration = Duration::from_millis(20);

/// The policy of a connection, and what keeps it from stalling the connection.
pub(in crate::connection) struct SchedulerSlot {
    policy: Box<dyn Scheduler>,
    role: Role,
    /// The instant from which the clock of the policy counts: the start of the connection.
    epoch: Instant,
    /// The time at which the policy asked to be asked again.
    wake: Option<Instant>,
    /// Rounds in a row in which everything waited though nothing was in flight.
    stalls: u32,
}

impl SchedulerSlot {
    /// A slot for `policy`, whose clock begins at `epoch`.
    pub fn new(policy: Box<dyn Scheduler>, role: Role, epoch: Instant) -> Self {
        Self { policy, role, epoch, wake: None, stalls: 0 }
    }

    /// The start of the connection, from which the clock of the policy counts.
    pub fn epoch(&self) -> Instant {
        self.epoch
    }

    /// The time at which the policy asked to be asked again.
    pub fn wake_at(&self) -> Option<Instant> {
        self.wake
    }

    /// A policy that held something back is asked again in each round.
    pub fn on_round(&mut self) {
        self.wake = None;
    }

    /// An item of `content` with default priority and no history, for which the sender has `credit` of flow control.
    #[inline]
    pub fn item(&self, content: Content, bytes: usize, credit: u64, now: Instant) -> Item {
        Item { credit, role: self.role, now: now.since(self.epoch), ..Item::new(content, bytes.max(1)) }
    }

    /// Asks the policy where `item` goes.
    pub fn place(&mut self, item: &Item, views: &[PathView]) -> Placement {
        self.policy.place(item, views)
    }

    /// The number of further items like `item` that the policy lets go unasked on the path of `view`.
    pub fn repeats(&mut self, item: &Item, view: &PathView) -> usize {
        self.policy.repeats(item, view)
    }

    /// Asks the policy if a copy of `item` is worth sending, of which the original is expected after `expected`.
    pub fn copies(&mut self, item: &Item, views: &[PathView], expected: Duration) -> bool {
        !self.is_overruled() && self.policy.copies(item, views, expected)
    }

    /// The expectation of the policy from its latest placement.
    pub fn expected(&self) -> Option<Expectation> {
        self.policy.expected()
    }

    /// Tells the policy what happened.
    #[inline]
    pub fn observe(&mut self, observation: &Observation) {
        self.policy.observe(observation);
    }

    /// The policy is asked again at `at`, or before.
    pub fn wake_by(&mut self, at: Instant) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// Returns true if the policy held everything back for so long that it is overruled.
    pub fn is_overruled(&self) -> bool {
        self.stalls >= STALL_LIMIT
    }

    /// Returns true if the policy holds nothing back.
    pub fn is_at_rest(&self) -> bool {
        self.wake.is_none() && self.stalls == 0
    }

    /// Something moved in the round, or had no reason to.
    pub fn on_progress(&mut self) {
        self.stalls = 0;
    }

    /// Everything waited in the round at `now` though nothing was in flight: the policy is asked again soon, and overruled
    /// after a few times.
    pub fn on_stall(&mut self, now: Instant) {
        self.stalls += 1;
        self.wake_by(now + STALL_WAKE);
    }
}
