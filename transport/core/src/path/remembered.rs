//! The part of a path in its endpoint's knowledge: the measurements of earlier connections, and its own for later ones.

use crate::knowledge::{Claim, Knowledge, PathKey, PathKnowledge, WindowExtent};
use crate::path::amplification::Amplification;
use crate::path::careful_resume::{CarefulResume, ResumeSample};
use crate::path::path::Path;
use crate::time::Instant;
use hvq_scheduler::PerMille;
use std::time::Duration;

/// The relation of a path to the knowledge of its endpoint.
#[derive(Debug, Default)]
pub(crate) enum Remembered {
    /// Nobody looked it up yet.
    #[default]
    Due,
    /// It cannot be told from another path, or the connection has no memory.
    Never,
    /// It has a key, and this part in the account of bytes in flight.
    Known(Box<Claim>),
    /// It had one at other addresses, and this part in the account.
    Moved(Box<Claim>),
}

impl Path {
    /// Returns true if nobody looked it up in the endpoint's knowledge. A path that somebody may have opened in the name of another
    /// is not looked up, nor does it take memory.
    pub(crate) fn is_lookup_due(&self) -> bool {
        matches!(self.remembered, Remembered::Due) && self.route.amplification == Amplification::Validated
    }

    /// Returns true if it has a question to the endpoint's knowledge.
    pub(crate) fn asks_knowledge(&self) -> bool {
        self.is_lookup_due() || self.route.careful_resume().is_some_and(CarefulResume::asks)
    }

    /// It moved to other addresses: what is known of the former does not hold there.
    pub(in crate::path) fn on_other_addresses(&mut self) {
        self.remembered = match std::mem::take(&mut self.remembered) {
            Remembered::Known(claim) | Remembered::Moved(claim) => Remembered::Moved(claim),
            Remembered::Due | Remembered::Never => Remembered::Due,
        };
    }

    /// It has no part in the endpoint's knowledge.
    pub(crate) fn forgo_memory(&mut self) {
        self.remembered = Remembered::Never;
    }

    /// It is the path `key`, of which `before` is known for `lifetime` from `now` on. Returns true if it resumes that.
    pub(crate) fn remember(
        &mut self,
        key: PathKey,
        before: Option<PathKnowledge>,
        lifetime: Duration,
        now: Instant,
    ) -> bool {
        let before = before.filter(|_| self.lost_to_congestion() == 0);
        let until = now + lifetime;
        let resume = before.and_then(|before| CarefulResume::new(before, until, self.route.datagram_size));
        let resumes = resume.is_some();
        self.route.resume(resume);
        self.remembered = Remembered::Known(Box::new(Claim { key, bytes: 0 }));
        if let Some((_, rtt)) = self.rtts.best().filter(|_| resumes) {
            // The acknowledgement that proved the peer's address is one of initial data.
            let (delivered, in_flight) = (self.route.rate.delivered(), self.sent.in_flight());
            let sample = ResumeSample { bytes: 0, largest: None, delivered, min_rtt: rtt.min() };
            self.route.resume_acknowledged(sample, self.sent.next_unused(), in_flight, now);
        }
        resumes
    }

    /// Gives Careful Resume the part of what is remembered that other connections have not in flight, until it uses it.
    pub(crate) fn claim_window(&mut self, knowledge: &mut Knowledge, now: Instant) {
        let Some(resume) = self.route.careful_resume().filter(|resume| resume.asks()) else { return };
        let allowance = resume.allowance();
        let Remembered::Known(claim) = &mut self.remembered else { return };
        let left = allowance.saturating_sub(knowledge.in_flight_beside(claim));
        let Some((_, rtt)) = self.rtts.best() else { return };
        // More than the first bursts show the bottleneck to carry only queues there (RFC 9959 leaves out such evidence).
        let shown = self.route.rate.capacity().zip(rtt.min());
        let carried = shown.map_or(u64::MAX, |(rate, base)| rate.bytes_in(base));
        self.route.grant(left.min(carried), self.sent.in_flight(), now);
        self.route.pace(rtt.smoothed(), now);
    }

    /// Returns true if the account of bytes in flight says that it has some, though it has none; or does not know yet of those
    /// that it may have for what is remembered.
    pub(crate) fn is_account_wrong(&self) -> bool {
        match &self.remembered {
            Remembered::Known(claim) if claim.bytes > 0 => self.claimed() == 0,
            Remembered::Known(_) => self.route.careful_resume().is_some_and(|resume| resume.claims() > 0),
            Remembered::Moved(_) => true,
            Remembered::Due | Remembered::Never => false,
        }
    }

    /// Enters the bytes that it has in flight, or may at once.
    fn enter_flight(&mut self, knowledge: &mut Knowledge) {
        let claimed = self.claimed();
        if let Remembered::Known(claim) = &mut self.remembered {
            knowledge.enter(claim, claimed);
        }
    }

    fn claimed(&self) -> u64 {
        let granted = self.route.careful_resume().map_or(0, CarefulResume::claims);
        self.sent.in_flight().max(granted) as u64
    }

    /// Leaves its measurements to later connections, which count for `lifetime`; `dated` is the time of the knowledge.
    pub(crate) fn leave_knowledge(&mut self, knowledge: &mut Knowledge, lifetime: Duration, dated: Instant) {
        if let Remembered::Moved(claim) = &mut self.remembered {
            knowledge.enter(claim, 0);
            self.remembered = Remembered::Due;
        }
        self.enter_flight(knowledge);
        let Remembered::Known(claim) = &self.remembered else { return };
        if let Some(measured) = self.measured(dated) {
            knowledge.learn(&claim.key, measured, lifetime);
        }
    }

    /// The path is over: it has nothing in flight.
    pub(crate) fn release_claim(&mut self, knowledge: &mut Knowledge) {
        if let Remembered::Known(claim) | Remembered::Moved(claim) = &mut self.remembered {
            knowledge.enter(claim, 0);
        }
        self.remembered = Remembered::Never;
    }

    /// The measurements of earlier connections do not hold.
    pub(crate) fn refute_knowledge(&mut self, knowledge: &mut Knowledge) {
        if let Remembered::Known(claim) = &self.remembered {
            knowledge.forget(&claim.key);
        }
    }

    /// Its measurements, at the time `dated`; `None` while there are none.
    fn measured(&self, dated: Instant) -> Option<PathKnowledge> {
        let rtt = self.rtts.best().map(|(_, rtt)| rtt)?;
        let (min_rtt, delivered) = (rtt.min()?, self.route.rate.estimate()?);
        // What arrives in an empty round trip, queues of the path's own not counted.
        let window = delivered.bytes_in(min_rtt).min(self.route.controller.window() as u64);
        let (counters, lost) = (self.counters(), self.lost_to_congestion());
        let slow_start = self.route.controller.in_slow_start();
        Some(PathKnowledge {
            rate: self.route.rate.capacity().map(|burst| burst.max(delivered)),
            bursts: self.route.rate.bursts(),
            min_rtt,
            smoothed_rtt: rtt.smoothed().max(min_rtt),
            window,
            loss: PerMille::of(lost, counters.packets_acknowledged + lost),
            extent: if slow_start { WindowExtent::AtLeast } else { WindowExtent::Whole },
            measured_at: dated,
        })
    }
}
