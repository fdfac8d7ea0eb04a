//! Blackouts: the intervals in which a link passes nothing at all.

use std::time::Duration;

/// A stretch of time, from its start up to but not including its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The first instant within.
    pub from: Duration,
    /// The first instant after.
    pub until: Duration,
}

impl Interval {
    pub(crate) fn contains(self, at: Duration) -> bool {
        (self.from..self.until).contains(&at)
    }
}

/// The blackouts planned in the specification, and the one set at run time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blackouts {
    planned: Vec<Interval>,
    ordered: Option<Interval>,
}

impl Blackouts {
    pub(crate) fn new(planned: Vec<Interval>) -> Self {
        Self { planned, ordered: None }
    }

    pub(crate) fn cover(&self, at: Duration) -> bool {
        self.planned.iter().chain(&self.ordered).any(|interval| interval.contains(at))
    }

    /// Lets nothing through from `now` on and until `until`.
    pub(crate) fn cut(&mut self, now: Duration, until: Duration) {
        self.ordered = Some(Interval { from: now, until });
    }

    /// Ends what [`Blackouts::cut`] began; planned blackouts stay.
    pub(crate) fn restore(&mut self, now: Duration) {
        if let Some(ordered) = &mut self.ordered {
            ordered.until = ordered.until.min(now);
        }
    }
}
