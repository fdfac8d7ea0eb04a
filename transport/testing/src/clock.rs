//! The clock of a simulation, and its timers.

use crate::world::{Key, World};
use hvq::runtime::AsyncTimer;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The clock of a simulation. Clones show the same time.
#[derive(Clone)]
pub struct Clock {
    world: Arc<World>,
}

impl Clock {
    pub(crate) fn new(world: Arc<World>) -> Self {
        Self { world }
    }

    /// The time since the simulation began.
    pub fn now(&self) -> Duration {
        self.world.now()
    }

    /// Waits for so long.
    pub async fn sleep(&self, time: Duration) {
        let deadline = self.world.instant() + time;
        let mut timer = VirtualTimer::new(self.world.clone());
        poll_fn(|context| timer.poll(deadline, context)).await;
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("now", &self.now()).finish()
    }
}

/// A timer that rings at its deadline exactly.
#[derive(Debug)]
pub(crate) struct VirtualTimer {
    world: Arc<World>,
    key: Option<Key>,
}

impl VirtualTimer {
    pub(crate) fn new(world: Arc<World>) -> Self {
        Self { world, key: None }
    }
}

impl AsyncTimer for VirtualTimer {
    fn poll(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        let at = self.world.time_of(deadline);
        let mut state = self.world.lock();
        if at <= state.now {
            state.clear_timer(self.key.take());
            return Poll::Ready(());
        }
        self.key = Some(state.set_timer(self.key, at, context.waker()));
        Poll::Pending
    }
}

impl Drop for VirtualTimer {
    fn drop(&mut self) {
        self.world.lock().clear_timer(self.key);
    }
}
