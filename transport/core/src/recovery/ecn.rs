//! Explicit congestion notification: codepoints, counters and the validation of a path (RFC 9000 §13.4).

use crate::wire::frame::EcnCounts;

/// Packets marked before the path has shown that it carries marks (RFC 9000 §A.4).
const TEST_PACKETS: u64 = 10;

/// The ECN field of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, codepoint 0.
    Ect0,
    /// ECN-capable, codepoint 1.
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// From the two low bits of the traffic class.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// The two low bits of the traffic class.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }
}

/// Counts what arrived with each codepoint, per packet number space (RFC 9000 §13.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnCounter {
    ect0: u64,
    ect1: u64,
    ce: u64,
}

impl EcnCounter {
    /// A packet, not a duplicate, arrived with `ecn`.
    pub fn on_packet(&mut self, ecn: Ecn) {
        let count = match ecn {
            Ecn::NotEct => return,
            Ecn::Ect0 => &mut self.ect0,
            Ecn::Ect1 => &mut self.ect1,
            Ecn::Ce => &mut self.ce,
        };
        *count = count.saturating_add(1);
    }

    /// Returns the counts that an ACK frame shall report: nothing if no packet carried a mark.
    pub fn report(&self) -> Option<EcnCounts> {
        let counts = EcnCounts { ect0: self.ect0, ect1: self.ect1, ce: self.ce };
        (self.ect0 | self.ect1 | self.ce != 0).then_some(counts)
    }
}

/// The report of an acknowledgement about ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnReport {
    /// The comparison of the counts with those before.
    pub counted: Counted,
    /// Newly acknowledged packets that were sent with ECT(0).
    pub newly_ect0: u64,
    /// Newly acknowledged packets that were sent with ECT(1).
    pub newly_ect1: u64,
}

/// The comparison of the counts of an acknowledgement with those of the one before, in one packet number space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counted {
    /// The largest acknowledged number did not grow: the frame may be reordered and is not judged (RFC 9000 §13.4.2.1).
    #[default]
    Unjudged,
    /// The frame has no counts.
    Nothing,
    /// A count went down, or more is counted than was ever marked.
    Impossible,
    /// The counts are larger by this.
    Grown(EcnCounts),
}

/// The marked packets of one packet number space, and the peer's counts of them; both outlive a migration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnAccount {
    marked: u64,
    reported: EcnCounts,
}

impl Default for EcnAccount {
    fn default() -> Self {
        Self { marked: 0, reported: EcnCounts { ect0: 0, ect1: 0, ce: 0 } }
    }
}

impl EcnAccount {
    /// A packet left with `ecn`.
    pub fn on_sent(&mut self, ecn: Ecn) {
        self.marked += u64::from(ecn == Ecn::Ect0);
    }

    /// Compares the counts of an acknowledgement whose largest number is a new one, and remembers them.
    pub fn on_counts(&mut self, counts: Option<EcnCounts>) -> Counted {
        let Some(counts) = counts else { return Counted::Nothing };
        let before = std::mem::replace(&mut self.reported, counts);
        let grown = (
            counts.ect0.checked_sub(before.ect0),
            counts.ect1.checked_sub(before.ect1),
            counts.ce.checked_sub(before.ce),
        );
        match grown {
            // RFC 9000 §13.4.2.1: no more may be counted than was sent.
            (Some(ect0), Some(ect1), Some(ce)) if counts.ect0.saturating_add(counts.ce) <= self.marked => {
                Counted::Grown(EcnCounts { ect0, ect1, ce })
            }
            _ => Counted::Impossible,
        }
    }
}

/// Tells whether packets are marked as ECN-capable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum EcnMarking {
    /// With ECT(0), on every path that proves to carry the marks (RFC 9000 §13.4.2).
    #[default]
    Ect0,
    /// Never. Marks of the peer's packets are reported all the same (RFC 9000 §13.4.1).
    Off,
}

/// The consequence of an acknowledgement for ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnOutcome {
    /// No congestion was signalled.
    Quiet,
    /// This many packets more were marked: react once per round trip (RFC 9002 §7.1).
    Congestion {
        /// Newly marked packets.
        marked: u64,
    },
    /// The path or the peer mangles the marks: they are off from now on, nothing else follows (RFC 9000 §13.4.2).
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Testing { sent: u64, lost: u64 },
    Capable,
    Failed,
}

/// The ECN validation of one route, which decides whether packets on it are marked (RFC 9000 §13.4.2 and §A.4).
#[derive(Clone, Copy, Debug)]
pub struct EcnValidation {
    state: State,
}

impl Default for EcnValidation {
    fn default() -> Self {
        Self { state: State::Testing { sent: 0, lost: 0 } }
    }
}

impl EcnValidation {
    /// The validation of a route that has not been used; without marks there is nothing to validate.
    pub fn new(marking: EcnMarking) -> Self {
        match marking {
            EcnMarking::Ect0 => Self::default(),
            EcnMarking::Off => Self { state: State::Failed },
        }
    }

    /// The codepoint of the next packet.
    pub fn marking(&self) -> Ecn {
        match self.state {
            State::Testing { sent, .. } if sent < TEST_PACKETS => Ecn::Ect0,
            State::Capable => Ecn::Ect0,
            State::Testing { .. } | State::Failed => Ecn::NotEct,
        }
    }

    /// Returns true if an acknowledgement proved that marks arrive.
    #[cfg(test)]
    pub fn is_capable(&self) -> bool {
        self.state == State::Capable
    }

    /// A packet left with `ecn`.
    pub fn on_sent(&mut self, ecn: Ecn) {
        if let State::Testing { sent, .. } = &mut self.state
            && ecn == Ecn::Ect0
        {
            *sent += 1;
        }
    }

    /// A packet that carried `ecn` was lost: when all of the test were, the path may drop marked packets.
    pub fn on_lost(&mut self, ecn: Ecn) {
        if let State::Testing { lost, .. } = &mut self.state
            && ecn == Ecn::Ect0
        {
            *lost += 1;
            if *lost >= TEST_PACKETS {
                self.state = State::Failed;
            }
        }
    }

    /// A probe timeout fired: in case marked packets are dropped here, the rest of the test goes unmarked, so that a
    /// handshake does not pay for it ten times over. An acknowledgement of what was marked still counts.
    pub fn on_probe_timeout(&mut self) {
        if let State::Testing { sent, .. } = &mut self.state {
            *sent = TEST_PACKETS;
        }
    }

    /// Judges an acknowledgement.
    pub fn on_report(&mut self, report: &EcnReport) -> EcnOutcome {
        if self.state == State::Failed {
            return EcnOutcome::Quiet;
        }
        let grown = match report.counted {
            Counted::Unjudged => return EcnOutcome::Quiet,
            // RFC 9000 §13.4.2.1: marked packets were acknowledged without counts.
            Counted::Nothing if report.newly_ect0 + report.newly_ect1 > 0 => return self.fail(),
            Counted::Nothing => return EcnOutcome::Quiet,
            Counted::Impossible => return self.fail(),
            Counted::Grown(grown) => grown,
        };
        // RFC 9000 §13.4.2.1: every marked packet must be counted, either with its mark or as CE, and none that was
        // never sent. Nothing is ever sent with ECT(1) here.
        let uncounted = grown.ect0.saturating_add(grown.ce) < report.newly_ect0;
        if uncounted || grown.ect1 > report.newly_ect1 {
            return self.fail();
        }
        if report.newly_ect0 > 0 {
            self.state = State::Capable;
        }
        if grown.ce > 0 { EcnOutcome::Congestion { marked: grown.ce } } else { EcnOutcome::Quiet }
    }

    fn fail(&mut self) -> EcnOutcome {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.2
        //# If validation fails, then the endpoint MUST disable ECN
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.2
        //# Network routing and path elements can change mid-connection; an endpoint MUST disable ECN if
        //# validation later fails.
        self.state = State::Failed;
        EcnOutcome::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A route and its packet number space.
    #[derive(Default)]
    struct Fixture {
        ecn: EcnValidation,
        account: EcnAccount,
    }

    impl Fixture {
        fn report(&mut self, newly_ect0: u64, counts: Option<(u64, u64, u64)>) -> EcnOutcome {
            let counts = counts.map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce });
            (0..newly_ect0).for_each(|_| self.account.on_sent(Ecn::Ect0));
            let counted = self.account.on_counts(counts);
            self.ecn.on_report(&EcnReport { counted, newly_ect0, newly_ect1: 0 })
        }
    }

    #[test]
    fn codepoints_round_trip() {
        for bits in 0..4 {
            assert_eq!(Ecn::from_bits(bits).bits(), bits);
        }
        assert_eq!(Ecn::from_bits(0b10), Ecn::Ect0);
    }

    #[test]
    fn marks_go_on_only_after_an_acknowledgement_counted_them() {
        let mut route = Fixture::default();
        for _ in 0..TEST_PACKETS {
            assert_eq!(route.ecn.marking(), Ecn::Ect0);
            route.ecn.on_sent(Ecn::Ect0);
        }
        assert_eq!(route.ecn.marking(), Ecn::NotEct);
        assert_eq!(route.report(2, Some((2, 0, 0))), EcnOutcome::Quiet);
        assert_eq!(route.ecn.marking(), Ecn::Ect0);
        assert_eq!(route.report(3, Some((3, 0, 2))), EcnOutcome::Congestion { marked: 2 });
        assert_eq!(route.report(3, Some((6, 0, 2))), EcnOutcome::Quiet, "the same marks are not told twice");
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.2
    //= type=test
    //# If validation fails, then the endpoint MUST disable ECN
    //= https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.2
    //= type=test
    //# Network routing and path elements can change mid-connection; an endpoint MUST disable ECN if
    //# validation later fails.
    #[test]
    fn counts_that_shrink_fall_short_or_are_missing_turn_marks_off() {
        // attacks.md C6.
        for (newly, wrong) in [
            (1, Some((3, 0, 0))),
            (9, Some((5, 0, 0))),
            (1, None),
            (1, Some((4, 1, 0))),
            (0, Some((4, 0, 9))),
            (1, Some((u64::MAX, 0, u64::MAX))),
        ] {
            let mut route = Fixture::default();
            route.report(4, Some((4, 0, 0)));
            assert!(route.ecn.is_capable());
            assert_eq!(route.report(newly, wrong), EcnOutcome::Failed, "{wrong:?}");
            assert_eq!(route.ecn.marking(), Ecn::NotEct);
            assert_eq!(route.report(0, Some((19, 9, 9))), EcnOutcome::Quiet);
        }
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-13.4.2.1
    //= type=test
    //# An endpoint MUST NOT fail ECN validation as a result of processing an ACK frame that does not increase
    //# the largest acknowledged packet number.
    #[test]
    fn a_reordered_acknowledgement_is_not_judged() {
        let mut route = Fixture::default();
        route.report(4, Some((4, 0, 0)));
        assert_eq!(
            route.ecn.on_report(&EcnReport { newly_ect0: 3, ..EcnReport::default() }),
            EcnOutcome::Quiet
        );
        assert!(route.ecn.is_capable());
    }

    #[test]
    fn a_probe_timeout_ends_the_test_without_a_verdict() {
        let mut route = Fixture::default();
        route.ecn.on_sent(Ecn::Ect0);
        route.ecn.on_probe_timeout();
        assert_eq!(route.ecn.marking(), Ecn::NotEct);
        route.report(1, Some((1, 0, 0)));
        assert_eq!(route.ecn.marking(), Ecn::Ect0);
        route.ecn.on_probe_timeout();
        assert_eq!(route.ecn.marking(), Ecn::Ect0, "later timeouts say nothing about marks");
    }

    #[test]
    fn nothing_is_marked_where_marks_are_off() {
        assert_eq!(EcnValidation::new(EcnMarking::Off).marking(), Ecn::NotEct);
        assert_eq!(EcnValidation::new(EcnMarking::Ect0).marking(), Ecn::Ect0);
    }

    #[test]
    fn a_path_that_drops_all_marked_packets_gets_unmarked_ones() {
        let mut ecn = EcnValidation::default();
        for _ in 0..TEST_PACKETS {
            ecn.on_sent(Ecn::Ect0);
            ecn.on_lost(Ecn::Ect0);
        }
        assert_eq!(ecn.marking(), Ecn::NotEct);
        assert!(!ecn.is_capable());
    }

    #[test]
    fn ten_marked_packets_have_to_be_lost_before_marks_are_given_up() {
        // RFC 9000 §A.4: what is lost without a mark says nothing about marks.
        for (lost, ecn, is_capable) in
            [(9, Ecn::Ect0, true), (10, Ecn::Ect0, false), (100, Ecn::NotEct, true)]
        {
            let mut route = Fixture::default();
            (0..TEST_PACKETS).for_each(|_| route.ecn.on_sent(Ecn::Ect0));
            (0..lost).for_each(|_| route.ecn.on_lost(ecn));
            route.report(1, Some((1, 0, 0)));
            assert_eq!(route.ecn.is_capable(), is_capable, "{lost} of {ecn:?}");
        }
    }

    #[test]
    fn an_acknowledgement_without_counts_fails_where_it_is_of_marked_packets() {
        // RFC 9000 §13.4.2.1.
        for (newly_ect0, newly_ect1, outcome) in [
            (0, 0, EcnOutcome::Quiet),
            (1, 0, EcnOutcome::Failed),
            (0, 1, EcnOutcome::Failed),
            (1, 1, EcnOutcome::Failed),
        ] {
            let report = EcnReport { counted: Counted::Nothing, newly_ect0, newly_ect1 };
            assert_eq!(EcnValidation::default().on_report(&report), outcome, "{report:?}");
        }
    }

    #[test]
    fn no_more_packets_may_be_counted_with_the_other_mark_than_were_acknowledged_with_it() {
        for (grown, newly_ect1, outcome) in
            [(0, 1, EcnOutcome::Quiet), (1, 1, EcnOutcome::Quiet), (2, 1, EcnOutcome::Failed)]
        {
            let counted = Counted::Grown(EcnCounts { ect0: 0, ect1: grown, ce: 0 });
            let report = EcnReport { counted, newly_ect0: 0, newly_ect1 };
            assert_eq!(EcnValidation::default().on_report(&report), outcome, "{report:?}");
        }
    }

    #[test]
    fn any_mark_is_reported_beside_whichever_others() {
        for marks in 1_u64..8 {
            let mut counter = EcnCounter::default();
            let counts = [Ecn::Ect0, Ecn::Ect1, Ecn::Ce].map(|ecn| {
                let bit = match ecn {
                    Ecn::Ect0 => 1,
                    Ecn::Ect1 => 2,
                    _ => 4,
                };
                let is_seen = marks & bit != 0;
                is_seen.then(|| counter.on_packet(ecn));
                u64::from(is_seen)
            });
            let [ect0, ect1, ce] = counts;
            assert_eq!(counter.report(), Some(EcnCounts { ect0, ect1, ce }));
        }
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-13.4.1
    //= type=test
    //# Even if an endpoint does not set an ECT field in packets it sends, the endpoint MUST provide feedback
    //# about ECN markings it receives, if these are accessible
    #[test]
    fn only_marked_packets_are_reported() {
        let mut counter = EcnCounter::default();
        counter.on_packet(Ecn::NotEct);
        assert_eq!(counter.report(), None);
        counter.on_packet(Ecn::Ce);
        counter.on_packet(Ecn::Ect0);
        assert_eq!(counter.report(), Some(EcnCounts { ect0: 1, ect1: 0, ce: 1 }));
    }
}
