//! Path liveness: whether a path answers, when it is asked again, and what was offered to other paths meanwhile.
//!
//! Two timers ask a path that does not answer. The probe timeout (RFC 9002 §6.2) belongs to loss recovery and doubles each
//! time. The liveness probe is one small packet and keeps its pace, so that a path is found again soon after an outage of
//! any length; it is sent only while the connection has something to carry.

use crate::time::Instant;
use std::time::Duration;

/// One over the share of a silence that a path may go unasked while another path answers.
const SHARE_OF_SILENCE: u32 = 64;
/// The longest interval between two liveness probes.
const SLOWEST_PACE: Duration = Duration::from_secs(5);
/// The longest interval between two liveness probes while no path answers.
const SLOWEST_PACE_ALONE: Duration = Duration::from_secs(1);
/// Acknowledgements of other paths that a path carries at most before it is asked whether they arrive.
const STEERED_UNPROBED: u32 = 4;
/// Evidence of this age says little about where acknowledgements of other paths go.
const STALE: Duration = Duration::from_secs(1);

/// Packets that make a queue: fewer are sent on a whim, or are probes (an initial window, RFC 9002 §7.2).
const FILLING: u32 = 10;

/// Evidence about a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// It answers, or nothing was asked.
    #[default]
    Answering,
    /// It has not answered for a probe timeout, and nothing arrived on it since it was asked last.
    Silent { since: Instant },
    /// It has not answered, but a packet arrived on it: the peer's direction works.
    Heard { since: Instant },
}

/// Evidence of the liveness of a path.
#[derive(Clone, Copy, Debug)]
enum Evidence {
    /// It did not answer in time.
    Unanswered,
    /// A packet arrived on it.
    Arrival,
    /// The peer acknowledged a packet of it or answered a challenge, or the path moved to another address.
    Answer,
}

impl State {
    fn after(self, evidence: Evidence, now: Instant) -> Self {
        match (self, evidence) {
            (_, Evidence::Answer) => Self::Answering,
            (Self::Answering, Evidence::Unanswered) => Self::Silent { since: now },
            (Self::Silent { since } | Self::Heard { since }, Evidence::Unanswered) => Self::Silent { since },
            (Self::Silent { since } | Self::Heard { since }, Evidence::Arrival) => Self::Heard { since },
            (Self::Answering, Evidence::Arrival) => Self::Answering,
        }
    }
}

/// Contact with the peer over all paths of a connection together: over any of them the peer learns which connection IDs are
/// given back, and issues others (RFC 10069 §3.2).
#[derive(Clone, Copy, Debug)]
pub struct Contact {
    acknowledged_at: Instant,
    is_lost: bool,
}

impl Contact {
    /// The contact over the paths with these livenesses.
    pub fn over<'a>(paths: impl IntoIterator<Item = &'a Liveness>) -> Self {
        let none = Self { acknowledged_at: Instant::ZERO, is_lost: true };
        paths.into_iter().fold(none, |contact, path| Self {
            acknowledged_at: contact.acknowledged_at.max(path.acknowledged_at),
            is_lost: contact.is_lost && path.is_silent(),
        })
    }

    /// Returns the time at which a packet of any path was last acknowledged.
    pub fn acknowledged_at(self) -> Instant {
        self.acknowledged_at
    }

    /// Returns true if no path answers.
    pub fn is_lost(self) -> bool {
        self.is_lost
    }
}

/// Packets that a path owes to find out whether it answers. Each kind includes the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum ProbesDue {
    /// None.
    #[default]
    None,
    /// One, as small as it may be.
    One,
    /// The probes of a probe timeout (RFC 9002 §6.2.4).
    Timeout,
}

/// Tells whether another path of the connection answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Company {
    /// No path answers.
    Alone,
    /// Another path does.
    Beside,
}

/// The liveness of one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Liveness {
    state: State,
    /// The time at which a packet of the path was last acknowledged.
    acknowledged_at: Instant,
    /// The time at which a probe last became due.
    asked_at: Instant,
    /// The time at which a packet last arrived on the path.
    heard_at: Instant,
    /// Packets that arrived on the path since it answered last or, if it had answered everything by then, since it was asked again.
    arrivals: u32,
    due: ProbesDue,
    /// Acknowledgements of other paths that it carried since it answered last.
    steered: u32,
    /// Packets below this number were offered to other paths since the path stopped answering.
    offered_below: u64,
}

impl Liveness {
    /// The peer acknowledged something new of the path. Returns whether the path was silent before.
    pub fn on_acknowledged(&mut self, now: Instant) -> bool {
        self.acknowledged_at = now;
        self.on_answered(now)
    }

    /// The peer answered on the path. Returns whether the path was silent before.
    pub fn on_answered(&mut self, now: Instant) -> bool {
        let was_silent = self.is_silent();
        self.state = self.state.after(Evidence::Answer, now);
        (self.steered, self.arrivals) = (0, 0);
        self.due = ProbesDue::None;
        was_silent
    }

    /// The path moved to another address, of which nothing is known.
    pub fn on_moved(&mut self, now: Instant) {
        self.on_answered(now);
    }

    /// The probe timeout fired: probes are due. Returns whether the path answered before.
    pub fn on_probe_timeout(&mut self, now: Instant) -> bool {
        self.on_late(now);
        self.on_unanswered(now)
    }

    /// The probe timeout of a path fired that the peer fills: probes are due, and the path still counts as answering if it did.
    pub fn on_late(&mut self, now: Instant) {
        self.due = ProbesDue::Timeout;
        self.asked_at = now;
    }

    /// The path did not answer in time. Returns whether it answered before.
    pub fn on_unanswered(&mut self, now: Instant) -> bool {
        let answered = !self.is_silent();
        self.state = self.state.after(Evidence::Unanswered, now);
        if answered {
            self.offered_below = 0;
        }
        answered
    }

    /// An authentic packet arrived on the path. If the path is silent it is asked at once, unless that was done within
    /// the last `interval`.
    pub fn on_heard(&mut self, interval: Duration, now: Instant) {
        self.state = self.state.after(Evidence::Arrival, now);
        self.heard_at = now;
        self.arrivals = self.arrivals.saturating_add(1);
        if self.is_silent() && self.asked_at + interval <= now {
            self.ask(now);
        }
    }

    /// The path carries a packet that asks for an answer, while none is awaited: what arrived so far does not delay it.
    pub fn on_asked(&mut self) {
        self.arrivals = 0;
    }

    /// The path carries an acknowledgement of another path. Returns whether it should be asked if that arrives: such
    /// packets are not acknowledged, and a path that carries nothing else would not be missed.
    pub fn on_steered(&mut self, now: Instant) -> bool {
        self.steered = self.steered.saturating_add(1);
        let evidence = self.acknowledged_at.max(self.heard_at);
        self.steered.is_multiple_of(STEERED_UNPROBED) || self.steered == 1 && now.since(evidence) > STALE
    }

    /// Returns true if it carried acknowledgements of other paths since it answered last.
    pub fn has_steered(&self) -> bool {
        self.steered > 0
    }

    /// The liveness probe is due. A packet that arrived before the last one is no evidence any more.
    pub fn on_pace(&mut self, now: Instant) {
        if self.heard_at < self.asked_at {
            self.on_unanswered(now);
        }
        self.ask(now);
    }

    /// Has a probe sent whether or not the path answers.
    pub fn ask(&mut self, now: Instant) {
        self.due = self.due.max(ProbesDue::One);
        self.asked_at = now;
    }

    /// Returns true if probes are due.
    pub fn is_due(&self) -> bool {
        self.due != ProbesDue::None
    }

    /// The probes that are due, which count as sent.
    pub fn take_due(&mut self) -> ProbesDue {
        std::mem::take(&mut self.due)
    }

    /// Packets below `number` have been offered to other paths.
    pub fn on_offered(&mut self, number: u64) {
        self.offered_below = self.offered_below.max(number);
    }

    /// The first number of the packets that were not offered to other paths in this silence.
    pub fn offered_below(&self) -> u64 {
        self.offered_below
    }

    /// Returns the time at which a packet of the path was last acknowledged.
    pub fn acknowledged_at(&self) -> Instant {
        self.acknowledged_at
    }

    /// Returns true if the path has not answered for a probe timeout, and did not since.
    pub fn is_silent(&self) -> bool {
        self.state != State::Answering
    }

    /// Returns true if a silent path was heard since it was asked last.
    pub fn is_heard(&self) -> bool {
        matches!(self.state, State::Heard { .. })
    }

    /// Returns the time since which the path has not answered, if it is silent, and was not heard since it was asked last.
    pub fn silent_since(&self) -> Option<Instant> {
        match self.state {
            State::Silent { since } => Some(since),
            State::Answering | State::Heard { .. } => None,
        }
    }

    /// Returns the time at which a probe last became due.
    pub fn asked_at(&self) -> Instant {
        self.asked_at
    }

    /// Returns true if a packet arrived on the path after `instant`.
    pub fn was_heard_since(&self, instant: Instant) -> bool {
        self.heard_at > instant
    }

    /// Returns true if packets arrived on the path after `instant`, and so many since its answer is awaited that this may wait behind
    /// them.
    pub fn was_filled_since(&self, instant: Instant) -> bool {
        self.was_heard_since(instant) && self.arrivals >= FILLING
    }

    /// The time between two liveness probes of a path whose probe timeout without backoff is `base`.
    ///
    /// While no path answers, or after an arrival, it is `base`, at most a second. Beside another path it grows with the
    /// silence, for a path that is gone for good shall cost little.
    pub fn pace(&self, base: Duration, company: Company) -> Duration {
        let base = base.min(SLOWEST_PACE_ALONE);
        match (self.state, company) {
            (State::Silent { since }, Company::Beside) => {
                (self.asked_at.since(since) / SHARE_OF_SILENCE).clamp(base, SLOWEST_PACE)
            }
            _ => base,
        }
    }

    /// Returns the time at which the liveness probe is due on a path that sent its last ack-eliciting packet at
    /// `sent_at`, if the path is silent.
    pub fn ask_at(&self, sent_at: Option<Instant>, pace: Duration) -> Option<Instant> {
        self.is_silent().then(|| sent_at.unwrap_or_default().max(self.asked_at) + pace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(80);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn silent() -> Liveness {
        let mut liveness = Liveness::default();
        assert!(liveness.on_probe_timeout(at(100)), "it answered before");
        assert_eq!(liveness.take_due(), ProbesDue::Timeout);
        liveness
    }

    #[test]
    fn a_path_that_answers_is_not_asked_however_much_arrives() {
        let mut liveness = Liveness::default();
        liveness.on_heard(PTO, at(1_000));
        assert_eq!((liveness.take_due(), liveness.ask_at(None, PTO)), (ProbesDue::None, None));
        assert!(!liveness.is_silent() && !liveness.is_heard());
    }

    #[test]
    fn an_arrival_asks_a_silent_path_at_once_and_no_more_often_than_its_pace() {
        let mut liveness = silent();
        liveness.on_heard(PTO, at(110));
        assert!(liveness.is_silent() && liveness.is_heard());
        assert_eq!(liveness.take_due(), ProbesDue::None, "it was asked ten milliseconds ago");
        liveness.on_heard(PTO, at(180));
        liveness.on_heard(PTO, at(181));
        assert_eq!(liveness.take_due(), ProbesDue::One);
        liveness.on_heard(PTO, at(182));
        assert_eq!(liveness.take_due(), ProbesDue::None);
    }

    #[test]
    fn what_was_heard_before_the_path_was_asked_in_vain_is_no_evidence() {
        let mut liveness = silent();
        liveness.on_heard(PTO, at(110));
        liveness.on_pace(at(180));
        assert!(liveness.is_heard(), "the answer to this probe is still to come");
        liveness.on_pace(at(260));
        assert!(liveness.is_silent() && !liveness.is_heard());
        assert!(liveness.on_acknowledged(at(190)), "it was silent before");
        assert_eq!(liveness.take_due(), ProbesDue::None);
        assert!(!liveness.on_acknowledged(at(191)));
    }

    #[test]
    fn what_is_heard_when_the_path_is_asked_is_heard_since() {
        let mut liveness = silent();
        assert_eq!(liveness.asked_at(), at(100));
        liveness.on_heard(PTO, at(180));
        assert_eq!(liveness.asked_at(), at(180));
        liveness.on_pace(at(260));
        assert!(liveness.is_heard());
        assert_eq!(liveness.asked_at(), at(260));
    }

    #[test]
    fn probes_keep_their_pace_while_no_path_answers_and_slow_down_beside_one_that_does() {
        let mut liveness = silent();
        for number in 1..=100 {
            let due = liveness.ask_at(None, liveness.pace(PTO, Company::Alone)).expect("it is silent");
            assert_eq!(due, at(100 + 80 * number));
            liveness.on_pace(due);
            assert_eq!(liveness.take_due(), ProbesDue::One);
        }
        // Eight seconds of silence.
        assert_eq!(liveness.pace(PTO, Company::Beside), Duration::from_millis(125));
        liveness.on_pace(at(3_600_000));
        assert_eq!(liveness.pace(PTO, Company::Beside), SLOWEST_PACE);
        assert_eq!(liveness.pace(Duration::from_secs(30), Company::Alone), SLOWEST_PACE_ALONE);
    }

    #[test]
    fn a_path_that_carries_acknowledgements_of_others_is_asked_now_and_then_if_they_arrive() {
        let mut liveness = Liveness::default();
        liveness.on_acknowledged(at(0));
        let asked: Vec<u64> = (1..=12).filter(|_| liveness.on_steered(at(10))).collect();
        assert_eq!(asked, [4, 8, 12]);
        liveness.on_acknowledged(at(20));
        assert!(!liveness.has_steered() && liveness.on_steered(at(1_021)), "nobody knows what became of it");
        liveness.on_acknowledged(at(1_030));
        assert!(!liveness.on_steered(at(1_040)));
    }

    #[test]
    fn a_path_that_moved_is_as_if_it_had_answered() {
        let mut liveness = silent();
        assert!(!liveness.on_steered(at(110)) && liveness.has_steered());
        liveness.on_moved(at(120));
        assert!(!liveness.is_silent() && !liveness.has_steered());
    }

    #[test]
    fn contact_is_lost_when_no_path_answers_and_dates_from_the_latest_answer_of_any() {
        let (mut late, mut answering) = (silent(), Liveness::default());
        late.on_acknowledged(at(700));
        late.on_unanswered(at(800));
        answering.on_acknowledged(at(500));
        let summary = |contact: Contact| (contact.acknowledged_at(), contact.is_lost());
        assert_eq!(summary(Contact::over([&late, &answering])), (at(700), false));
        assert_eq!(summary(Contact::over([&late, &silent()])), (at(700), true));
        assert_eq!(summary(Contact::over([])), (Instant::ZERO, true));
    }

    #[test]
    fn only_what_arrived_after_an_instant_was_heard_since() {
        let mut liveness = Liveness::default();
        liveness.on_heard(PTO, at(100));
        let since = [99, 100, 101].map(|millis| liveness.was_heard_since(at(millis)));
        assert_eq!(since, [true, false, false]);
    }

    #[test]
    fn evidence_of_a_second_ago_is_not_stale_yet() {
        for (millis, is_asked) in [(999, false), (1_000, false), (1_001, true)] {
            let mut liveness = Liveness::default();
            liveness.on_acknowledged(at(10));
            assert_eq!(liveness.on_steered(at(10 + millis)), is_asked, "{millis} ms");
        }
    }

    #[test]
    fn packets_are_offered_once_in_each_silence() {
        let mut liveness = silent();
        liveness.on_offered(7);
        liveness.on_probe_timeout(at(200));
        assert_eq!(liveness.offered_below(), 7);
        liveness.on_acknowledged(at(210));
        liveness.on_unanswered(at(300));
        assert_eq!(liveness.offered_below(), 0);
    }
}
