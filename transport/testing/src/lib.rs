//! Tests of programs on [`hvq`] in virtual time: a runtime, a clock and a network in memory, on one thread.
//!
//! A [`Simulation`] has [`Host`]s with addresses, each of which has a channel of its own to all others: the model of
//! [`hvq_emulation`]. A host is a [`Runtime`](hvq::runtime::Runtime): its [endpoints](Host::endpoint) bind their sockets in the network,
//! those of further paths included, and wait by the clock. Time stands still while anybody has something to do, and then goes on to
//! the next event at once.
//!
//! Everything that a test does is to be driven by the simulation: [`Clock::sleep`] in place of a sleep of tokio, and
//! [`Simulation::spawn`] in place of its tasks. Two runs of a program that itself does the same are equal in every datagram if their
//! seeds are, as long as the certificate's signatures have one size, as those of [`identity`] have (RSA; ECDSA's vary by a byte or two).

#![forbid(unsafe_code)]

mod clock;
mod host;
mod identity;
mod network;
mod world;

pub use clock::Clock;
pub use host::{Host, HostError};
pub use identity::{SERVER_NAME, identity, trust};
pub use network::{Passage, TraceEvent};

use async_executor::Executor;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use world::World;

/// Steps without a moment's progress of time after which tasks count as stuck.
const STEPS: u32 = 4_000_000;

/// A network in virtual time, and the tasks that run in it.
#[derive(Debug)]
pub struct Simulation {
    world: Arc<World>,
    executor: Arc<Executor<'static>>,
}

/// The reason for which a run ended before its future was ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stalled {
    /// Nothing will ever happen: nobody waits for a time, and no datagram is under way.
    #[error("nothing will ever happen: no deadline and no datagram is left to wait for")]
    Idle,
    /// Tasks wake themselves or each other for ever, and time stands still.
    #[error("tasks run for ever and time stands still")]
    Busy,
}

/// A waker of the future that a run is for.
#[derive(Debug)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Simulation {
    /// An empty network. The seed decides on all that is random: losses, connection IDs, keys of endpoints.
    pub fn new(seed: u64) -> Self {
        Self { world: Arc::new(World::new(seed)), executor: Arc::default() }
    }

    /// A host with these addresses. Beside each is its channel to the rest of the network, in the text form of
    /// [`hvq_emulation::ChannelSpec`]: `rtt=20ms,rate=50mbit,loss=1%`, a preset, or nothing for a perfect one. A datagram takes the
    /// channel of its sender up and that of its receiver down.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn host(&self, addresses: &[(&str, &str)]) -> Result<Host, HostError> {
        Host::new(self.world.clone(), Arc::downgrade(&self.executor), addresses)
    }

    /// The clock, for tasks.
    pub fn clock(&self) -> Clock {
        Clock::new(self.world.clone())
    }

    /// Runs `task` in the background, during runs.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.executor.spawn(task).detach();
    }

    /// Runs `future` and all tasks until it is ready.
    ///
    /// # Errors
    /// See [`Stalled`].
    pub fn run<F: Future>(&self, future: F) -> Result<F::Output, Stalled> {
        let mut future = pin!(future);
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(flag.clone());
        let mut steps = 0;
        loop {
            if flag.0.swap(false, Ordering::Relaxed)
                && let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                return Ok(output);
            }
            let now = self.world.now();
            let is_busy = self.executor.try_tick() || flag.0.load(Ordering::Relaxed);
            if !is_busy && !self.world.advance() {
                return Err(Stalled::Idle);
            }
            steps = if self.world.now() == now { steps + 1 } else { 0 };
            if steps > STEPS {
                return Err(Stalled::Busy);
            }
        }
    }

    /// Records what datagrams do from now on.
    pub fn record(&self) {
        self.world.lock().network.record();
    }

    /// Returns the events of datagrams since [`record`](Self::record).
    pub fn trace(&self) -> Vec<TraceEvent> {
        self.world.lock().network.trace().to_vec()
    }
}

/// The snippet of the README, compiled and run by `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
