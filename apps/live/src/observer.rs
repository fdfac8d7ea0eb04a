//! The observer of experiments while they run.

use hvq_lab::experiment::campaign::Stop;
use std::fmt;

/// Is told what is done, and says when to end.
#[derive(Clone, Copy)]
pub struct Observer<'a> {
    /// Is told of each step, in a line.
    pub say: &'a dyn Fn(&str),
    /// The order to begin no more.
    pub stop: &'a Stop,
}

impl Observer<'_> {
    /// Returns true if the experiments are to go on.
    pub(crate) fn goes_on(&self) -> bool {
        !self.stop.is_ordered()
    }
}

impl fmt::Debug for Observer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Observer").field("stop", self.stop).finish_non_exhaustive()
    }
}
