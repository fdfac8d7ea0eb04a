//! Careful Resume (RFC 9959): a path begins where an earlier connection left off, and retreats if that is too much.
//!
//! The controller of the route stays as it is. While the saved window is tried, more may be in flight than the controller
//! allows, paced over a round trip; what is acknowledged of it enlarges the controller's own window, as in any slow start. A
//! controller that grows otherwise is not asked to: what was validated may be in flight until its own window has reached that,
//! or shrinks. After congestion it is the other way round, and no more may be in flight than arrived.

use crate::Bandwidth;
use crate::congestion::{initial_window, minimum_window};
use crate::knowledge::PathKnowledge;
use crate::time::Instant;
use crate::trace::{ResumePhase, ResumeTrigger};
use smallvec::SmallVec;
use std::time::Duration;

/// The largest window to begin with (max_jump, RFC 9959 §3.3), in bytes: that of 1.6 Gbit/s over 20 ms.
const MOST: u64 = 4 << 20;
/// A saved window of fewer initial windows is not worth it (RFC 9959 §3.1).
const WORTHWHILE: u64 = 4;
/// A path whose smallest round trip is more times the saved one is another (RFC 9959 §4.2.1).
const LONGER: u32 = 10;

/// The state of a packet flow at one event.
#[derive(Clone, Copy, Debug)]
pub struct ResumeFlow {
    /// The time.
    pub now: Instant,
    /// Bytes in flight after the event.
    pub in_flight: usize,
    /// The window of the controller after the event.
    pub window: usize,
    /// The size of a datagram.
    pub datagram_size: usize,
}

/// Packets that were acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct ResumeSample {
    /// Their bytes.
    pub bytes: usize,
    /// The largest number among them; `None` for packets of the handshake, which have numbers of their own.
    pub largest: Option<u64>,
    /// Bytes delivered on the route so far.
    pub delivered: u64,
    /// The smallest round-trip time, if one was measured.
    pub min_rtt: Option<Duration>,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug)]
pub struct ResumeSignal {
    /// Its kind.
    pub trigger: ResumeTrigger,
    /// The time at which the last of the packets left that show it.
    pub sent_at: Instant,
}

/// A change of phase, for the log.
pub type ResumeChange = (ResumePhase, ResumeTrigger);

/// Careful Resume of one route, from its beginning until normal congestion control goes on alone.
#[derive(Clone, Debug)]
pub struct CarefulResume {
    saved: PathKnowledge,
    /// The time at which what was saved is too old.
    until: Instant,
    phase: Phase,
    /// Changes of the phase that nobody was told of.
    changes: SmallVec<[ResumeChange; 4]>,
    /// True if congestion showed that what was saved does not hold, and nobody was told.
    is_refuted: bool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The initial data is under way, which is all up to this byte once the first acknowledgement is there.
    Reconnaissance { initial: Option<u64> },
    /// The path is confirmed. `jump` may be in flight from the first packet on that the controller alone would not permit: as much
    /// as the endpoint's other connections leave, once it said so.
    Confirmed { jump: Option<usize> },
    /// Packets beyond the controller's window leave, the first of them number `first`.
    Unvalidated { jump: usize, first: u64, began: Instant, rtt: Duration, pipe: usize },
    /// They all left, the last of them number `last`; `window` were in flight then.
    Validating { window: usize, last: u64, pipe: usize },
    /// All arrived; the controller, whose window was `seen`, is not there yet.
    Validated { window: usize, seen: usize },
    /// Some did not, as was seen at `began`: no more than `window` may be in flight until the last of them, number `last`, is
    /// accounted for. `alone`, if packets that left since showed no congestion.
    Retreat { window: usize, last: u64, began: Instant, alone: bool },
    /// The retreat is over, the jump was all that met congestion, and the controller allows less than half of what RFC 9959 §3.5
    /// does: one that goes by delay took the queue of the jump for that of others, and would keep to that for long. It begins
    /// anew once packet number `left` arrives, the first that leaves after the retreat, which ended at `since`.
    Misled { left: Option<u64>, since: Instant },
    /// The controller is alone.
    Normal,
}

impl CarefulResume {
    /// Begins on a route of which `saved` is known, which counts until `until`, for datagrams of `datagram_size` bytes. `None` if
    /// it is not worth it.
    pub fn new(saved: PathKnowledge, until: Instant, datagram_size: usize) -> Option<Self> {
        let least = (initial_window(datagram_size) as u64).saturating_mul(WORTHWHILE);
        let phase = Phase::Reconnaissance { initial: None };
        let resume = Self { saved, until, phase, changes: SmallVec::new(), is_refuted: false };
        (saved.window >= least).then_some(resume)
    }

    /// The bytes that all connections of the endpoint together may have in flight on the path for what is remembered of it: half
    /// of the saved window, so that others find room who began since (RFC 9959 §3.3).
    pub fn allowance(&self) -> u64 {
        (self.saved.window / 2).min(MOST)
    }

    /// Returns true if the path is confirmed and nothing was tried: the endpoint says how much of the allowance is left.
    pub fn asks(&self) -> bool {
        matches!(self.phase, Phase::Confirmed { .. })
    }

    /// Bytes of the allowance that it uses, however many of them are in flight.
    pub fn claims(&self) -> usize {
        if self.asks() { 0 } else { self.granted() }
    }

    /// Bytes that may be in flight though the controller permits fewer; zero if none may.
    pub fn granted(&self) -> usize {
        match self.phase {
            Phase::Confirmed { jump: Some(jump) } | Phase::Unvalidated { jump, .. } => jump,
            Phase::Validating { window, .. } | Phase::Validated { window, .. } => window,
            _ => 0,
        }
    }

    /// Returns the window of a route whose controller allows `window` bytes.
    pub fn window(&self, window: usize) -> usize {
        match self.phase {
            Phase::Retreat { window: most, .. } => window.min(most),
            _ => window.max(self.granted()),
        }
    }

    /// The rate that spreads what may be in flight over a round trip of `rtt`; `None` if that is the controller's concern.
    pub fn pacing_rate(&self, rtt: Duration) -> Option<Bandwidth> {
        let rate = Bandwidth::of(self.granted() as u64, rtt.max(Duration::from_micros(1)));
        (rate > Bandwidth::default()).then_some(rate)
    }

    /// Returns true if the controller is alone, and everything was told.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Normal) && self.changes.is_empty() && !self.is_refuted
    }

    /// Takes the changes of the phase that nobody was told of.
    pub fn take_changes(&mut self) -> SmallVec<[ResumeChange; 4]> {
        std::mem::take(&mut self.changes)
    }

    /// Returns true once if the controller is to begin anew: nothing that the jump did to the path is left in what it will hear.
    pub fn take_restart(&mut self) -> bool {
        let is_due = matches!(self.phase, Phase::Misled { left: None, .. });
        if is_due {
            self.phase = Phase::Normal;
        }
        is_due
    }

    /// Returns true once if what was saved turned out not to hold (RFC 9959 §3.5).
    pub fn take_refutation(&mut self) -> bool {
        std::mem::take(&mut self.is_refuted)
    }

    /// `left` bytes of the allowance are not in flight on other connections.
    pub fn grant(&mut self, left: u64, flow: ResumeFlow) {
        let jump = usize::try_from(left.min(self.allowance())).unwrap_or(usize::MAX);
        if jump <= flow.window {
            return self.end(ResumeTrigger::InUse);
        }
        self.phase = Phase::Confirmed { jump: Some(jump) };
    }

    /// Packet `number` of `bytes` bytes left, while the smoothed round-trip time is `rtt`.
    pub fn on_sent(&mut self, number: u64, bytes: usize, rtt: Duration, flow: ResumeFlow) {
        match self.phase {
            Phase::Confirmed { .. } if flow.now > self.until => self.end(ResumeTrigger::Stale),
            Phase::Confirmed { jump: Some(jump) } if flow.in_flight > flow.window => {
                let (pipe, began) = (flow.in_flight.saturating_sub(bytes), flow.now);
                let phase = Phase::Unvalidated { jump, first: number, began, rtt, pipe };
                self.enter(phase, ResumePhase::Unvalidated, ResumeTrigger::WindowLimited);
            }
            Phase::Unvalidated { jump, .. } if flow.in_flight.saturating_add(flow.datagram_size) > jump => {
                self.validate(number, ResumeTrigger::LastUnvalidatedSent, flow);
            }
            Phase::Unvalidated { began, rtt, .. } if flow.now.since(began) > rtt => {
                self.validate(number, ResumeTrigger::RttExceeded, flow);
            }
            _ => {}
        }
    }

    /// Packets arrived; the next one has the number `next`.
    pub fn on_acknowledged(&mut self, arrived: ResumeSample, next: u64, flow: ResumeFlow) {
        let is_at = |number: u64| arrived.largest.is_some_and(|largest| largest >= number);
        if let Phase::Unvalidated { pipe, .. } | Phase::Validating { pipe, .. } = &mut self.phase {
            *pipe = pipe.saturating_add(arrived.bytes);
        }
        match self.phase {
            Phase::Reconnaissance { initial } => {
                let all = || arrived.delivered.saturating_add(flow.in_flight as u64);
                let initial = initial.unwrap_or_else(all);
                self.phase = Phase::Reconnaissance { initial: Some(initial) };
                if arrived.delivered >= initial {
                    self.confirm(arrived.min_rtt, flow);
                }
            }
            Phase::Confirmed { .. } if flow.window as u64 >= self.allowance() => {
                self.end(ResumeTrigger::WindowReached);
            }
            Phase::Unvalidated { first, .. } if is_at(first) => {
                self.validate(next.saturating_sub(1), ResumeTrigger::FirstUnvalidatedAcknowledged, flow);
            }
            Phase::Unvalidated { began, rtt, .. } if flow.now.since(began) > rtt => {
                self.validate(next.saturating_sub(1), ResumeTrigger::RttExceeded, flow);
            }
            Phase::Validating { window, last, .. } if is_at(last) => {
                let phase = Phase::Validated { window, seen: flow.window };
                self.enter(phase, ResumePhase::Normal, ResumeTrigger::LastUnvalidatedAcknowledged);
                self.follow(flow);
            }
            Phase::Validated { .. } => self.follow(flow),
            Phase::Retreat { window, last, alone, .. } if is_at(last) => {
                self.end(ResumeTrigger::ExitRecovery);
                if alone && flow.window < window / 2 {
                    self.phase = Phase::Misled { left: Some(next), since: flow.now };
                }
            }
            Phase::Misled { left: Some(after), since } if is_at(after) => {
                self.phase = Phase::Misled { left: None, since };
            }
            _ => {}
        }
    }

    /// Packets were lost or marked; the next one has the number `next`.
    pub fn on_congestion(&mut self, signal: ResumeSignal, next: u64, flow: ResumeFlow) {
        let trigger = signal.trigger;
        if let Phase::Retreat { began, alone, .. } = &mut self.phase {
            *alone &= signal.sent_at <= *began;
        }
        let (pipe, last) = match self.phase {
            Phase::Unvalidated { pipe, .. } => (pipe, next.saturating_sub(1)),
            Phase::Validating { pipe, last, .. } => (pipe, last),
            Phase::Retreat { .. } | Phase::Normal => return,
            Phase::Misled { since, .. } if signal.sent_at <= since => return,
            // The controller's own window is smaller than what was validated, and it reacts as ever.
            Phase::Validated { .. } | Phase::Misled { .. } => return self.phase = Phase::Normal,
            // Nothing was sent that the controller would not have permitted.
            Phase::Reconnaissance { .. } | Phase::Confirmed { .. } => return self.end(trigger),
        };
        let window = (pipe / 2).max(minimum_window(flow.datagram_size));
        self.is_refuted = true;
        let phase = Phase::Retreat { window, last, began: flow.now, alone: true };
        self.enter(phase, ResumePhase::SafeRetreat, trigger);
    }

    /// The path collapsed (RFC 9002 §7.6): normal congestion control goes on.
    pub fn on_persistent_congestion(&mut self) {
        if !matches!(self.phase, Phase::Normal) {
            self.end(ResumeTrigger::PersistentCongestion);
        }
    }

    /// The initial data arrived: compares the path with the saved one.
    fn confirm(&mut self, min_rtt: Option<Duration>, flow: ResumeFlow) {
        let Some(min_rtt) = min_rtt else { return };
        let saved = self.saved.min_rtt;
        if min_rtt <= saved / 2 || min_rtt > saved.saturating_mul(LONGER) {
            return self.end(ResumeTrigger::RttNotValidated);
        }
        if flow.window as u64 >= self.allowance() {
            return self.end(ResumeTrigger::WindowReached);
        }
        self.phase = Phase::Confirmed { jump: None };
    }

    /// All unvalidated packets were sent, up to number `last`: checks that there were any to speak of.
    fn validate(&mut self, last: u64, trigger: ResumeTrigger, flow: ResumeFlow) {
        let Phase::Unvalidated { pipe, .. } = self.phase else { return };
        if flow.in_flight < initial_window(flow.datagram_size) || flow.in_flight <= pipe {
            return self.end(ResumeTrigger::RateLimited);
        }
        let phase = Phase::Validating { window: flow.in_flight, last, pipe };
        self.enter(phase, ResumePhase::Validating, trigger);
    }

    /// The window that was validated is the controller's once its window has come so far, or it reduced that.
    fn follow(&mut self, flow: ResumeFlow) {
        let Phase::Validated { window, seen } = &mut self.phase else { return };
        if flow.window >= *window || flow.window < *seen {
            self.phase = Phase::Normal;
        } else {
            *seen = flow.window;
        }
    }

    fn end(&mut self, trigger: ResumeTrigger) {
        self.enter(Phase::Normal, ResumePhase::Normal, trigger);
    }

    fn enter(&mut self, phase: Phase, told: ResumePhase, trigger: ResumeTrigger) {
        self.phase = phase;
        self.changes.push((told, trigger));
    }
}

#[cfg(test)]
mod tests;
