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

    /// What an ACK frame shall report: nothing if no packet carried a mark.
    pub fn report(&self) -> Option<EcnCounts> {
        let counts = EcnCounts { ect0: self.ect0, ect1: self.ect1, ce: self.ce };
        (self.ect0 | self.ect1 | self.ce != 0).then_some(counts)
    }
}

/// What an acknowledgement said about ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EcnReport {
    /// The counts in the frame.
    pub counts: Option<EcnCounts>,
    /// Newly acknowledged packets that were sent with ECT(0).
    pub newly_ect0: u64,
    /// Newly acknowledged packets that were sent with ECT(1).
    pub newly_ect1: u64,
    /// Whether the largest acknowledged number grew; other frames may be reordered and are not judged.
    pub advanced: bool,
}

/// What follows from an acknowledgement.
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

/// Whether packets on one route are marked (RFC 9000 §13.4.2 and §A.4).
#[derive(Clone, Copy, Debug)]
pub struct EcnValidation {
    state: State,
    seen: EcnCounts,
}

impl Default for EcnValidation {
    fn default() -> Self {
        Self { state: State::Testing { sent: 0, lost: 0 }, seen: EcnCounts { ect0: 0, ect1: 0, ce: 0 } }
    }
}

impl EcnValidation {
    /// Validation of a route on which marks are never sent.
    pub fn disabled() -> Self {
        Self { state: State::Failed, ..Self::default() }
    }

    /// The codepoint of the next packet.
    pub fn marking(&self) -> Ecn {
        match self.state {
            State::Testing { sent, .. } if sent < TEST_PACKETS => Ecn::Ect0,
            State::Capable => Ecn::Ect0,
            State::Testing { .. } | State::Failed => Ecn::NotEct,
        }
    }

    /// Whether an acknowledgement proved that marks arrive.
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

    /// Judges an acknowledgement.
    pub fn on_report(&mut self, report: &EcnReport) -> EcnOutcome {
        if self.state == State::Failed || !report.advanced {
            return EcnOutcome::Quiet;
        }
        let Some(counts) = report.counts else {
            // RFC 9000 §13.4.2.1: marked packets were acknowledged without counts.
            let unreported = report.newly_ect0 + report.newly_ect1 > 0;
            return if unreported { self.fail() } else { EcnOutcome::Quiet };
        };
        let grown = (
            counts.ect0.checked_sub(self.seen.ect0),
            counts.ect1.checked_sub(self.seen.ect1),
            counts.ce.checked_sub(self.seen.ce),
        );
        let (Some(ect0), Some(ect1), Some(ce)) = grown else { return self.fail() };
        // RFC 9000 §13.4.2.1: every marked packet must be counted, either with its mark or as CE, and none that was
        // never sent. Nothing is ever sent with ECT(1) here.
        let uncounted = ect0.saturating_add(ce) < report.newly_ect0;
        if uncounted || ect1 > report.newly_ect1 {
            return self.fail();
        }
        self.seen = counts;
        if report.newly_ect0 > 0 {
            self.state = State::Capable;
        }
        if ce > 0 { EcnOutcome::Congestion { marked: ce } } else { EcnOutcome::Quiet }
    }

    fn fail(&mut self) -> EcnOutcome {
        self.state = State::Failed;
        EcnOutcome::Failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(newly_ect0: u64, counts: Option<(u64, u64, u64)>) -> EcnReport {
        let counts = counts.map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce });
        EcnReport { counts, newly_ect0, newly_ect1: 0, advanced: true }
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
        let mut ecn = EcnValidation::default();
        for _ in 0..TEST_PACKETS {
            assert_eq!(ecn.marking(), Ecn::Ect0);
            ecn.on_sent(Ecn::Ect0);
        }
        assert_eq!(ecn.marking(), Ecn::NotEct);
        assert_eq!(ecn.on_report(&report(2, Some((2, 0, 0)))), EcnOutcome::Quiet);
        assert_eq!(ecn.marking(), Ecn::Ect0);
        assert_eq!(ecn.on_report(&report(3, Some((3, 0, 2)))), EcnOutcome::Congestion { marked: 2 });
    }

    #[test]
    fn counts_that_shrink_fall_short_or_are_missing_turn_marks_off() {
        // attacks.md C6.
        for wrong in [
            report(1, Some((3, 0, 0))),
            report(9, Some((5, 0, 0))),
            report(1, None),
            report(1, Some((9, 1, 0))),
        ] {
            let mut ecn = EcnValidation::default();
            ecn.on_report(&report(4, Some((4, 0, 0))));
            assert!(ecn.is_capable());
            assert_eq!(ecn.on_report(&wrong), EcnOutcome::Failed, "{wrong:?}");
            assert_eq!(ecn.marking(), Ecn::NotEct);
            assert_eq!(ecn.on_report(&report(0, Some((9, 9, 9)))), EcnOutcome::Quiet);
        }
    }

    #[test]
    fn a_reordered_acknowledgement_is_not_judged() {
        let mut ecn = EcnValidation::default();
        ecn.on_report(&report(4, Some((4, 0, 0))));
        let old = EcnReport { advanced: false, ..report(0, Some((1, 0, 0))) };
        assert_eq!(ecn.on_report(&old), EcnOutcome::Quiet);
        assert!(ecn.is_capable());
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
    fn only_marked_packets_are_reported() {
        let mut counter = EcnCounter::default();
        counter.on_packet(Ecn::NotEct);
        assert_eq!(counter.report(), None);
        counter.on_packet(Ecn::Ce);
        counter.on_packet(Ecn::Ect0);
        assert_eq!(counter.report(), Some(EcnCounts { ect0: 1, ect1: 0, ce: 1 }));
    }
}
