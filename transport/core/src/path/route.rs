//! A route: one 4-tuple of a path, and everything that a migration resets (RFC 9000 §9.4).

use crate::Bandwidth;
use crate::congestion::{Congestion, Controller};
pub use crate::four_tuple::FourTuple;
use crate::path::amplification::Amplification;
use crate::path::careful_resume::{CarefulResume, ResumeChange, ResumeFlow, ResumeSample, ResumeSignal};
use crate::path::mtu::{DatagramSizing, Discovery};
use crate::path::validation::Validation;
use crate::recovery::backlog::Backlog;
use crate::recovery::competing_backlog::CompetingBacklog;
use crate::recovery::ecn::EcnValidation;
use crate::recovery::pacing::Pacer;
use crate::recovery::rate::RateSampler;
use crate::recovery::reordering::Reordering;
use crate::recovery::sent_packet::SentPacket;
use crate::time::Instant;
use crate::trace::ResumeTrigger;
use smallvec::SmallVec;
use std::time::Duration;

/// The queue that a path of known rate may build at most, beside a few datagrams.
const QUEUE_ALLOWANCE: Duration = Duration::from_millis(4);
/// Datagrams that may be in flight beside: a peer acknowledges every second one (RFC 9000 §13.2.2).
const UNACKNOWLEDGED: usize = 2;
/// The part of a promised rate that is counted on while no burst has shown any.
const UNSHOWN: u64 = 5;
/// Datagrams that may be in flight beside that: as many as show the rate.
const SHOWING: usize = 4;

//= https://www.rfc-editor.org/rfc/rfc9000#section-14
//# QUIC MUST NOT be used if the network path cannot support a maximum datagram size of at least 1200 bytes.
/// The smallest datagram size that every path must carry (RFC 9000 §14).
pub const MINIMUM_DATAGRAM: usize = 1200;

/// The state that belongs to one 4-tuple of a path.
#[derive(Debug)]
pub struct Route {
    /// The addresses.
    pub tuple: FourTuple,
    /// The congestion controller, which sets the bytes that may be in flight.
    pub controller: Box<dyn Controller>,
    /// The congestion control that made it.
    congestion: Congestion,
    /// The pacer, which sets the times at which they may be sent.
    pub pacer: Pacer,
    /// The sampler of the delivery rate.
    pub rate: RateSampler,
    /// The estimate of the bytes that wait at the bottleneck.
    pub backlog: Backlog,
    /// The estimate of the bytes that others have queued there.
    pub competing: CompetingBacklog,
    /// The limit on the bytes that may be sent before the peer's address is validated (RFC 9000 §8.1).
    pub amplification: Amplification,
    /// The validation of the address (RFC 9000 §8.2).
    pub validation: Validation,
    /// The ECN validation, which decides whether packets are marked (RFC 9000 §13.4.2).
    pub ecn: EcnValidation,
    /// The reordering of the route, which sets the patience with which packets are declared lost.
    pub reordering: Reordering,
    /// The largest datagram to send, in bytes of UDP payload.
    pub datagram_size: usize,
    /// The search for that size.
    pub mtu: Discovery,
    /// The number of the first packet that was sent with these measurements: those before it say nothing about the
    /// route (RFC 9000 §9.4).
    pub since: u64,
    /// The guard of the channel's rate, if that is known.
    guard: Option<RateGuard>,
    /// Packets below this number were in flight when the window was last used.
    used_below: u64,
    /// Careful Resume, while it has anything to add to the controller.
    resume: Option<Box<CarefulResume>>,
}

/// Keeps a path of known rate from building a queue, whatever its controller believes.
#[derive(Clone, Copy, Debug)]
struct RateGuard {
    rate: Bandwidth,
    /// The empty round trip, once one was measured.
    base: Option<Duration>,
}

impl RateGuard {
    /// Bytes that may be in flight in datagrams of `datagram_size` bytes; `None` before a round trip was measured. It is computed
    /// when it is asked for: datagrams grow, and a window in which not one fits would never let another leave. Less may be in
    /// flight while the promise `is_shown` by no burst: it may be wrong, and other connections may count on it too.
    fn flight(&self, datagram_size: usize, is_shown: bool) -> Option<usize> {
        let carried = self.rate.bytes_in(self.base?.saturating_add(QUEUE_ALLOWANCE));
        let of = |bytes, datagrams| {
            let beside = datagram_size.saturating_mul(datagrams);
            usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(beside)
        };
        let shown = of(carried, UNACKNOWLEDGED);
        Some(if is_shown { shown } else { shown.min(of(carried / UNSHOWN, SHOWING)) })
    }
}

impl Route {
    /// A new route over `tuple` under `congestion`, with datagrams as `sizing` says.
    pub fn new(
        tuple: FourTuple,
        congestion: Congestion,
        amplification: Amplification,
        sizing: DatagramSizing,
        now: Instant,
    ) -> Self {
        let datagram_size = sizing.first();
        Self {
            tuple,
            controller: congestion.build(datagram_size),
            congestion,
            pacer: Pacer::new(datagram_size, now),
            rate: RateSampler::default(),
            backlog: Backlog::new(now),
            competing: CompetingBacklog::default(),
            amplification,
            validation: Validation::default(),
            ecn: EcnValidation::default(),
            reordering: Reordering::default(),
            datagram_size,
            mtu: Discovery::new(sizing),
            since: 0,
            guard: None,
            used_below: 0,
            resume: None,
        }
    }

    /// Measurements begin with packet number `since`.
    pub fn measure_from(&mut self, since: u64) {
        self.since = since;
    }

    /// A pass over what wants to be sent is over, `room` bytes are left, and the next packet will be number `next`: takes
    /// note of it if the window was used, so that no full datagram fits any more (RFC 9002 §7.8).
    pub fn on_pass(&mut self, room: usize, next: u64) {
        if room < self.datagram_size {
            self.used_below = self.used_below.max(next);
        }
    }

    /// Returns true if the window was used while packet `number` was in flight.
    pub fn was_used_with(&self, number: u64) -> bool {
        number < self.used_below
    }

    /// Packets are marked as `ecn` decides.
    pub fn set_ecn(&mut self, ecn: EcnValidation) {
        self.ecn = ecn;
    }

    /// Another controller takes over, in its initial state.
    pub fn set_congestion(&mut self, congestion: Congestion) {
        self.controller = congestion.build(self.datagram_size);
        self.resume = None;
        self.congestion = congestion;
    }

    /// The congestion control that made the controller.
    pub fn congestion(&self) -> &Congestion {
        &self.congestion
    }

    /// The channel lets `rate` through, no more: the path is paced to it and keeps its queue short.
    pub fn guard_rate(&mut self, rate: Option<Bandwidth>) {
        self.pacer.set_ceiling(rate);
        self.guard = rate.map(|rate| RateGuard { rate, base: None });
    }

    /// The rate that the path is paced to, if the channel's is known.
    pub fn guarded_rate(&self) -> Option<Bandwidth> {
        self.guard.map(|guard| guard.rate)
    }

    /// Returns true if the channel's rate was promised to this path ([`Self::guard_rate`]), so that no other shares its
    /// bottleneck.
    pub fn has_own_rate(&self) -> bool {
        self.guard.is_some()
    }

    /// On a path of known rate no more may be in flight than it carries in an empty round trip, `base`, and a few
    /// milliseconds.
    pub fn keep_flight_within(&mut self, base: Option<Duration>) {
        if let Some(guard) = &mut self.guard {
            guard.base = base;
        }
    }

    /// Bytes that may be in flight: what the controller and Careful Resume allow and, on a path of known rate, what that carries.
    #[inline]
    pub fn window(&self) -> usize {
        let window = self.controller.window();
        let window = self.resume.as_ref().map_or(window, |resume| resume.window(window));
        let is_shown = || self.rate.capacity().is_some();
        let flight = self.guard.and_then(|guard| guard.flight(self.datagram_size, is_shown()));
        flight.map_or(window, |flight| flight.min(window))
    }

    /// Returns true if less may be in flight than the controller allows: then it must not take silence for success (RFC
    /// 9002 §7.8).
    pub fn is_held_below_window(&self) -> bool {
        self.window() < self.controller.window()
    }

    /// Sends no datagrams larger than the peer accepts, in bytes.
    pub fn limit_datagram_size(&mut self, limit: usize) {
        self.mtu.limit(limit);
        self.datagram_size = self.mtu.size();
        self.controller.set_datagram_size(self.datagram_size);
    }

    /// Sends datagrams of the size that the search has come to: window and pacer count in it (RFC 9002 §7.2).
    pub fn follow_mtu(&mut self, now: Instant) {
        self.datagram_size = self.mtu.size();
        self.controller.set_datagram_size(self.datagram_size);
        self.pacer.set_datagram_size(self.datagram_size, now);
    }

    /// Bytes that the congestion window, the pacer and the anti-amplification limit let go at `now`.
    #[inline]
    pub fn room(&self, in_flight: usize, now: Instant) -> usize {
        let window = self.window().saturating_sub(in_flight);
        //= https://www.rfc-editor.org/rfc/rfc9002#section-7.7
        //# Senders MUST either use pacing or limit such bursts
        window.min(self.pacer.available(now)).min(self.amplification.allowance())
    }

    /// Returns the time at which the pacer lets `bytes` go, at most a burst, if it is the pacer that holds them back.
    pub fn paced_until(&self, bytes: usize, in_flight: usize, now: Instant) -> Option<Instant> {
        let window = self.window().saturating_sub(in_flight);
        if window < bytes.min(self.window()) {
            return None;
        }
        let ready = self.pacer.ready_at(bytes, now);
        (ready > now).then_some(ready)
    }

    /// Lets the pacer follow the controller: its own rate, or 1.25 windows a round trip of `rtt` (RFC 9002 §7.7); and Careful
    /// Resume, if that is faster.
    pub fn pace(&mut self, rtt: Duration, now: Instant) {
        let window = self.controller.window();
        self.pacer.set_rate(self.controller.pacing_rate(), window, rtt, now);
        let resumed = self.resume.as_ref().and_then(|resume| resume.pacing_rate(rtt));
        if resumed > self.pacer.rate() {
            self.pacer.set_rate(resumed, window, rtt, now);
        }
    }

    /// Begins to resume what is known of the route.
    pub fn resume(&mut self, resume: Option<CarefulResume>) {
        self.resume = resume.map(Box::new);
    }

    /// Careful Resume, while it has anything to add.
    pub fn careful_resume(&self) -> Option<&CarefulResume> {
        self.resume.as_deref()
    }

    /// `left` bytes of what is remembered are not in flight on other connections.
    pub fn grant(&mut self, left: u64, in_flight: usize, now: Instant) {
        let flow = self.flow(in_flight, now);
        if let Some(resume) = &mut self.resume {
            resume.grant(left, flow);
        }
    }

    /// `packet` left while the smoothed round-trip time is `rtt`, with which `in_flight` bytes are under way.
    pub fn resume_sent(&mut self, packet: &SentPacket, rtt: Duration, in_flight: usize) {
        let flow = self.flow(in_flight, packet.sent_at);
        let number = packet.number;
        let Some(resume) = &mut self.resume else { return };
        if resume.granted() > 0 && flow.in_flight.saturating_add(flow.datagram_size) > flow.window {
            // The controller's window is used up, however much more may be in flight (RFC 9002 §7.8).
            self.used_below = self.used_below.max(number + 1);
        }
        resume.on_sent(number, packet.bytes, rtt, flow);
    }

    /// Packets arrived, after which `in_flight` bytes are; the next packet has the number `next`.
    pub fn resume_acknowledged(&mut self, arrived: ResumeSample, next: u64, in_flight: usize, now: Instant) {
        let flow = self.flow(in_flight, now);
        let Some(resume) = &mut self.resume else { return };
        resume.on_acknowledged(arrived, next, flow);
        if resume.take_restart() {
            self.controller = self.congestion.build(self.datagram_size);
        }
    }

    /// The network shows congestion by `signal`; the next packet has the number `next`.
    pub fn resume_congested(&mut self, signal: ResumeSignal, next: u64, in_flight: usize, now: Instant) {
        let flow = self.flow(in_flight, now);
        let Some(resume) = &mut self.resume else { return };
        match signal.trigger {
            ResumeTrigger::PersistentCongestion => resume.on_persistent_congestion(),
            _ => resume.on_congestion(signal, next, flow),
        }
    }

    /// Takes the changes of Careful Resume that nobody was told of, and returns whether what was remembered does not hold.
    pub fn take_resume_changes(&mut self) -> (SmallVec<[ResumeChange; 4]>, bool) {
        let Some(resume) = &mut self.resume else { return (SmallVec::new(), false) };
        let taken = (resume.take_changes(), resume.take_refutation());
        if resume.is_over() {
            self.resume = None;
        }
        taken
    }

    fn flow(&self, in_flight: usize, now: Instant) -> ResumeFlow {
        ResumeFlow { now, in_flight, window: self.controller.window(), datagram_size: self.datagram_size }
    }
}

#[cfg(test)]
mod tests;
