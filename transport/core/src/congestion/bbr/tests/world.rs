//! BBR in a simulation whose acknowledgements return over one of two paths, and the states that it goes through.

use super::super::{Bbr, BbrState};
use crate::PathId;
use crate::congestion::Controller;
use crate::congestion::simulation::{Bottleneck, DATAGRAM, SimulatedSender, Simulation};
use crate::time::Instant;
use std::any::Any;
use std::time::Duration;

/// A link of `mbit` Mbit/s and 25 ms each way with a queue of `queue` datagrams.
pub fn link(mbit: u64, queue: usize) -> Bottleneck {
    Bottleneck::new(mbit, Duration::from_millis(50), queue)
}

/// A function that gives the path that returns acknowledgements at a time, and its delay.
pub type Returns = fn(Instant) -> (PathId, Duration);

pub fn slow(_: Instant) -> (PathId, Duration) {
    (PathId(0), Duration::from_millis(25))
}

pub fn fast(_: Instant) -> (PathId, Duration) {
    (PathId(1), Duration::from_micros(2500))
}

/// A sender under `controller` whose acknowledgements return as `returns` says.
pub fn sender(controller: impl Controller, returns: Returns) -> SimulatedSender {
    SimulatedSender::new(Box::new(controller)).returning(move |now, _| returns(now))
}

/// A simulation with a flow under test, and perhaps others.
pub struct World {
    pub simulation: Simulation,
    /// The changes of state of the flow under test, with their times.
    pub states: Vec<(Instant, BbrState)>,
}

impl World {
    pub fn new(link: Bottleneck, returns: Returns) -> Self {
        Self::with(link, sender(Bbr::new(DATAGRAM), returns))
    }

    pub fn with(link: Bottleneck, sender: SimulatedSender) -> Self {
        Self { simulation: Simulation::over([link]).with(sender), states: Vec::new() }
    }

    /// The controller under test.
    pub fn bbr(&self) -> &Bbr {
        let controller: &dyn Any = self.simulation.controller();
        controller.downcast_ref().expect("it is BBR")
    }

    pub fn bbr_mut(&mut self) -> &mut Bbr {
        let controller: &mut dyn Any = self.simulation.sender_mut().controller_mut();
        controller.downcast_mut().expect("it is BBR")
    }

    /// Runs until `to` seconds; returns the share of the link's capacity that the flow under test got meanwhile.
    pub fn until(&mut self, to: f64) -> f64 {
        let end = Instant::ZERO + Duration::from_secs_f64(to);
        let (from, before) = (self.simulation.now(), self.simulation.sender().delivered());
        while self.simulation.now() < end {
            let now = self.simulation.now();
            self.simulation.step();
            let state = self.bbr().state;
            if self.states.last().is_none_or(|(_, last)| *last != state) {
                self.states.push((now, state));
            }
        }
        let capacity = self.simulation.bottleneck().rate().bytes_in(end.since(from));
        (self.simulation.sender().delivered() - before) as f64 / capacity as f64
    }

    /// The longest wait in the queue since this was last asked for.
    pub fn longest_wait(&mut self) -> Duration {
        self.simulation.bottleneck_mut().longest_wait()
    }

    /// Returns the times at which the flow entered `state`.
    pub fn entries(&self, state: BbrState) -> Vec<Instant> {
        self.states.iter().filter(|(_, entered)| *entered == state).map(|(at, _)| *at).collect()
    }
}
