//! Senders that share bottlenecks, in virtual time: controller, loss detection, timers and pacing together.
//!
//! ```text
//!  senders ──▶ [ drop-tail queue | rate ] ──▶ delay/2 ──▶ receivers
//!     ▲                                                       │
//!     └──────── delay/2, or one of several ways back ◀────────┘
//! ```
//!
//! Only the network is made up; round-trip times, losses and delivery rates come from the code that connections use. The
//! [contract](super::contract) of controllers and the tests of each controller run on it. Equal seeds give equal runs.
//!
//! ```
//! use hvq_transport::congestion::Algorithm;
//! use hvq_transport::congestion::simulation::{Bottleneck, Simulation};
//! use std::time::Duration;
//!
//! // 20 Mbit/s, a round trip of 40 ms and a queue of 60 datagrams.
//! let bottleneck = Bottleneck::new(20, Duration::from_millis(40), 60);
//! let mut simulation = Simulation::new(bottleneck, Algorithm::Cubic.build(1200));
//! simulation.until(5.0);
//! let share = simulation.until(15.0);
//! assert!(share > 0.9, "{share} of the capacity");
//! ```

mod bottleneck;
mod sender;

pub use bottleneck::Bottleneck;
pub use sender::SimulatedSender;

use super::{Controller, Flow};
use crate::time::Instant;
use rand::SeedableRng;
use rand::rngs::StdRng;
use smallvec::SmallVec;
use std::fmt;
use std::time::Duration;

/// The size of datagrams in a simulation, in bytes of UDP payload.
pub const DATAGRAM: usize = 1200;

/// Bottlenecks and the senders that share them.
pub struct Simulation {
    bottlenecks: Vec<Bottleneck>,
    senders: Vec<SimulatedSender>,
    rng: StdRng,
    now: Instant,
}

impl Simulation {
    /// One sender under `controller` over one `bottleneck`.
    pub fn new(bottleneck: Bottleneck, controller: Box<dyn Controller>) -> Self {
        Self::over([bottleneck]).with(SimulatedSender::new(controller))
    }

    /// `bottlenecks` without senders.
    pub fn over(bottlenecks: impl Into<Vec<Bottleneck>>) -> Self {
        Self {
            bottlenecks: bottlenecks.into(),
            senders: Vec::new(),
            rng: StdRng::seed_from_u64(1),
            now: Instant::ZERO,
        }
    }

    /// Returns the same simulation with another sender. It begins with the next run.
    ///
    /// # Panics
    /// There is no bottleneck with the index that the sender goes through.
    #[must_use]
    pub fn with(mut self, mut sender: SimulatedSender) -> Self {
        sender.set_return_delay(self.bottlenecks[sender.bottleneck()].delay() / 2);
        self.senders.push(sender);
        self
    }

    /// Returns the same simulation with chance drawn from `seed`. Default: 1.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.rng = StdRng::seed_from_u64(seed);
        self
    }

    /// The virtual time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The first sender.
    pub fn sender(&self) -> &SimulatedSender {
        &self.senders[0]
    }

    /// The first sender, to change its settings.
    pub fn sender_mut(&mut self) -> &mut SimulatedSender {
        &mut self.senders[0]
    }

    /// All senders, in the order in which they were added.
    pub fn senders(&self) -> &[SimulatedSender] {
        &self.senders
    }

    /// The controller of the first sender.
    pub fn controller(&self) -> &dyn Controller {
        self.senders[0].controller()
    }

    /// The first bottleneck.
    pub fn bottleneck(&self) -> &Bottleneck {
        &self.bottlenecks[0]
    }

    /// The first bottleneck, to change it while the senders run.
    pub fn bottleneck_mut(&mut self) -> &mut Bottleneck {
        &mut self.bottlenecks[0]
    }

    /// Runs until `seconds` after the start; returns the share of its bottleneck's rate that the first sender
    /// delivered meanwhile.
    ///
    /// # Panics
    /// There is no sender.
    pub fn until(&mut self, seconds: f64) -> f64 {
        let to = Instant::ZERO + Duration::from_secs_f64(seconds);
        let (from, before) = (self.now, self.sender().delivered());
        while self.now < to {
            self.step();
        }
        let capacity = self.bottlenecks[self.sender().bottleneck()].rate().bytes_in(to.since(from));
        (self.sender().delivered() - before) as f64 / capacity.max(1) as f64
    }

    /// Does what is due, and goes on to the next event.
    pub fn step(&mut self) {
        let mut next = None;
        for index in 0..self.senders.len() {
            let siblings = self.siblings(index);
            let sender = &mut self.senders[index];
            let bottleneck = &mut self.bottlenecks[sender.bottleneck()];
            sender.step(self.now, bottleneck, &siblings, &mut self.rng);
            let at = sender.next_event(self.now);
            next = Some(next.map_or(at, |next: Instant| next.min(at)));
        }
        self.now = next.unwrap_or(self.now).max(self.now);
    }

    /// The coupled controllers of the connection of sender `index`, but for its own.
    fn siblings(&self, index: usize) -> SmallVec<[Flow; 3]> {
        let connection = self.senders[index].connection();
        let others = self.senders.iter().enumerate().filter(|(other, _)| *other != index);
        let of_it = others.filter(|(_, sender)| connection.is_some() && sender.connection() == connection);
        of_it.filter_map(|(_, sender)| sender.controller().flow()).collect()
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("now", &self.now)
            .field("senders", &self.senders)
            .finish_non_exhaustive()
    }
}
