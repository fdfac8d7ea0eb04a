//! The reaction of a path to what it sent, and to what became of it: estimates, congestion control and ECN.

use crate::PathId;
use crate::congestion::{LossSample, LostPacket, MarkSample, Sample, Sending, SpuriousSample};
use crate::path::careful_resume::{ResumeSample, ResumeSignal};
use crate::path::path::Path;
use crate::recovery::ecn::EcnOutcome;
use crate::recovery::persistent::Persistence;
use crate::recovery::rate::AckSample;
use crate::recovery::reordering::Lateness;
use crate::recovery::sent_packet::{Lost, SentPacket};
use crate::space::sent::Acknowledged;
use crate::time::Instant;
use crate::trace::ResumeTrigger;
use std::time::Duration;

/// The evidence that a window was not used up for want of data (RFC 9002 §7.8).
#[derive(Clone, Copy)]
pub enum Limited {
    /// No packet of those with 1-RTT keys was in flight when the window was used.
    ByRounds,
    /// There was too little to send when the packets of the handshake left, which have numbers of their own.
    BySample,
}

impl Limited {
    /// Returns true if the packets have numbers of the path.
    fn is_numbered(self) -> bool {
        matches!(self, Self::ByRounds)
    }

    fn holds(self, path: &Path, newest: &SentPacket) -> bool {
        match self {
            Self::ByRounds => !path.route.was_used_with(newest.number),
            Self::BySample => newest.delivery.app_limited,
        }
    }
}

/// The way back of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Return {
    /// The path that carried it.
    pub over: PathId,
    /// The time for which the peer says that it held it back.
    pub delay: Duration,
}

impl Path {
    /// Records a packet, and tells everything that counts what the path sends.
    #[inline]
    pub fn on_packet_sent(&mut self, mut packet: SentPacket) {
        let (now, bytes) = (packet.sent_at, packet.bytes);
        self.route.ecn.on_sent(packet.ecn);
        self.route.mtu.on_sent(bytes);
        if packet.class.in_flight() {
            packet.delivery = self.route.rate.on_sent(now, self.sent.in_flight());
            self.route.pacer.on_sent(bytes, now);
            let mut backlog = self.route.backlog;
            backlog.on_sent(now, bytes, || self.rate());
            self.route.backlog = backlog;
            let in_flight = self.sent.in_flight() + bytes;
            let app_limited = packet.delivery.app_limited;
            self.route.controller.on_sent(&Sending { now, bytes, in_flight, app_limited });
            if self.route.careful_resume().is_some() {
                let rtt = self.rtt().smoothed();
                self.route.resume_sent(&packet, rtt, in_flight);
            }
        }
        if packet.class.is_ack_eliciting() && !self.sent.has_ack_eliciting_in_flight() {
            self.liveness.on_asked();
        }
        self.sent.on_sent(packet);
    }

    /// Takes note of the packets that did not arrive between `before`, the largest number that had, and those that did now.
    pub fn on_gap(&mut self, before: Option<u64>, acknowledged: &Acknowledged, back: Return) {
        let Return { over, delay } = back;
        let rtt = acknowledged.rtt_sample.map(|rtt| rtt.saturating_sub(delay));
        let known = self.rtts.over(over).copied();
        self.interruptions.on_acknowledged(&acknowledged.packets, before, rtt, known);
    }

    /// Packets were acknowledged over path `over`: tells the controller, and all estimates of the self.
    pub fn on_ack(&mut self, acknowledged: &Acknowledged, back: Return, limited: Limited, now: Instant) {
        let Return { over, delay } = back;
        self.counters.packets_acknowledged += acknowledged.packets.len() as u64;
        self.counters.spurious_losses += acknowledged.spurious.len() as u64;
        for spurious in &acknowledged.spurious {
            self.route.controller.on_spurious(&SpuriousSample {
                now,
                bytes: spurious.bytes,
                sent_at: spurious.sent_at,
                lost_at: spurious.lost_at,
            });
            let largest = self.sent.largest_acknowledged().unwrap_or(spurious.number);
            let lateness = Lateness {
                packets: spurious.distance.max(largest.saturating_sub(spurious.number)),
                time: now.since(spurious.sent_at),
            };
            self.route.reordering.on_spurious(lateness, self.rtts.loss_delay());
        }
        let rtt = self.rtt();
        let min_rtt = self.rtts.min_for(over).or(rtt.min());
        let rtt_alone = acknowledged.rtt_sample.map(|rtt| rtt.saturating_sub(delay));
        let arrival = AckSample { now, over, rtts: &self.rtts, rtt: rtt_alone };
        let delivery = self.route.rate.on_acknowledged(arrival, &acknowledged.packets);
        let newest = acknowledged.packets.last();
        let sample = Sample {
            now,
            data_path: self.id,
            acknowledged_over: over,
            bytes: acknowledged.bytes(),
            sent_at: acknowledged.largest_sent_at().unwrap_or(now),
            rtt: acknowledged.rtt_sample,
            min_rtt: min_rtt.unwrap_or(rtt.smoothed()),
            smoothed_rtt: rtt.smoothed(),
            delivery_rate: delivery.and_then(|sample| sample.rate),
            delivery,
            in_flight: self.sent.in_flight(),
            app_limited: self.route.is_held_below_window()
                || newest.is_some_and(|packet| limited.holds(self, packet)),
        };
        self.route.controller.on_acknowledged(&sample);
        if self.route.careful_resume().is_some() {
            let largest = newest.filter(|_| limited.is_numbered()).map(|packet| packet.number);
            let (bytes, delivered) = (sample.bytes, self.route.rate.delivered());
            let arrived = ResumeSample { bytes, largest, delivered, min_rtt: rtt.min() };
            self.route.resume_acknowledged(arrived, self.sent.next_unused(), sample.in_flight, now);
        }
        self.process_ecn(acknowledged, now);
        if self.route.controller.withholds() {
            self.route.rate.on_app_limited(self.sent.in_flight());
        }
        self.on_resolved(now);
    }

    /// Processes the peer's counts of ECN marks: they signal congestion, or show that marks do not work here.
    fn process_ecn(&mut self, acknowledged: &Acknowledged, now: Instant) {
        if let EcnOutcome::Congestion { marked } = self.route.ecn.on_report(&acknowledged.ecn) {
            self.counters.marked += marked;
            // RFC 9002 §7.1: the largest newly acknowledged packet dates the signal; the controller reacts once per round trip.
            if let Some(sent_at) = acknowledged.largest_sent_at() {
                self.retreat(ResumeSignal { trigger: ResumeTrigger::EcnCe, sent_at }, now);
                self.route.controller.on_ecn_ce(&MarkSample { now, sent_at });
            }
        }
    }

    /// Packets were declared lost: tells the controller, and all estimates of the self.
    pub fn on_loss(&mut self, lost: &Lost, persistent: Persistence, now: Instant) {
        self.counters.packets_lost += lost.packets.len() as u64;
        for packet in &lost.packets {
            self.counters.bytes_lost += packet.bytes as u64;
            self.route.ecn.on_lost(packet.ecn);
        }
        let Some(largest_sent_at) = lost.largest_sent_at() else { return };
        self.route.reordering.on_lost(now, largest_sent_at);
        for packet in lost.packets.iter().filter(|packet| packet.class.in_flight()) {
            let lost = LostPacket::of(packet, &mut self.route.rate, now);
            self.route.controller.on_packet_lost(&lost);
        }
        let in_flight = self.sent.in_flight();
        let cause = self.interruptions.on_lost(lost);
        let sample = LossSample { now, bytes: lost.bytes(), largest_sent_at, persistent, cause, in_flight };
        if sample.bytes > 0 {
            let trigger = match persistent {
                Persistence::Persistent => ResumeTrigger::PersistentCongestion,
                _ => ResumeTrigger::PacketLoss,
            };
            self.retreat(ResumeSignal { trigger, sent_at: largest_sent_at }, now);
        }
        self.route.controller.on_lost(&sample);
        self.on_resolved(now);
    }

    /// Congestion shows by `signal`: what was begun with is not kept to.
    fn retreat(&mut self, signal: ResumeSignal, now: Instant) {
        if self.route.careful_resume().is_some() {
            self.route.resume_congested(signal, self.sent.next_unused(), self.sent.in_flight(), now);
        }
    }

    /// Follows a decrease of the bytes in flight: the estimate of the queue and the pacer are updated.
    fn on_resolved(&mut self, now: Instant) {
        let mut backlog = self.route.backlog;
        backlog.on_resolved(now, self.sent.in_flight(), || self.rate());
        self.route.backlog = backlog;
        self.review_rate();
        self.route.keep_flight_within(self.rtts.longest_base());
        // After an outage the smoothed round-trip time is that of the outage for long: a window must not be spread over it.
        let rtt = self.rtt();
        self.route.pace(rtt.smoothed().min(rtt.latest()), now);
    }

    /// There is a round-trip time sample.
    pub fn on_rtt_sample(&mut self, now: Instant) {
        self.persistent.on_rtt_sample(now);
    }

    /// Judges newly lost packets against the `period` of persistent congestion (RFC 9002 §7.6).
    pub fn judge_persistence(&mut self, lost: &Lost, period: Duration) -> Persistence {
        self.persistent.on_lost(lost, period)
    }

    /// Packets declared lost, without those of interruptions, which are no share of the path.
    pub fn lost_to_congestion(&self) -> u64 {
        self.counters.packets_lost.saturating_sub(self.interruptions.packets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{Congestion, Controller};
    use crate::knowledge::PathKnowledge;
    use crate::path::amplification::Amplification;
    use crate::path::mtu::DatagramSizing;
    use crate::path::route::{FourTuple, Route};
    use crate::ranges::Ranges;
    use crate::recovery::ecn::{Counted, EcnReport};
    use crate::recovery::sent_packet::PacketClass;
    use crate::space::lost::SpuriousLoss;
    use crate::space::received::AckPolicy;
    use crate::trace::ResumePhase;
    use crate::wire::frame::{Ack, AckRanges, EcnCounts};
    use hvq_scheduler::Bandwidth;
    use std::any::Any;

    const ID: PathId = PathId(1);
    const BACK: Return = Return { over: ID, delay: Duration::ZERO };
    const WINDOW: usize = 12_000;

    fn milliseconds(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn at(count: u64) -> Instant {
        Instant::ZERO + milliseconds(count)
    }

    /// A controller that keeps what it hears.
    #[derive(Default, Debug)]
    struct Witness {
        sent: Vec<Sending>,
        acknowledged: Vec<Sample>,
        marked: Vec<MarkSample>,
    }

    impl Controller for Witness {
        fn on_sent(&mut self, sending: &Sending) {
            self.sent.push(*sending);
        }

        fn on_acknowledged(&mut self, sample: &Sample) {
            self.acknowledged.push(*sample);
        }

        fn on_lost(&mut self, _sample: &LossSample) {}

        fn on_ecn_ce(&mut self, sample: &MarkSample) {
            self.marked.push(*sample);
        }

        fn on_spurious(&mut self, _sample: &SpuriousSample) {}

        fn window(&self) -> usize {
            WINDOW
        }

        fn name(&self) -> &'static str {
            "witness"
        }

        fn in_slow_start(&self) -> bool {
            false
        }

        fn set_datagram_size(&mut self, _datagram_size: usize) {}
    }

    /// A path with a round trip of 50 ms and a [`Witness`].
    fn path() -> Path {
        let address = ([192, 0, 2, 1], 443).into();
        let (tuple, sizing) = (FourTuple { local: address, remote: address }, DatagramSizing::default());
        let congestion = Congestion::custom(|_: usize| -> Box<dyn Controller> { Box::<Witness>::default() });
        let route = Route::new(tuple, congestion, Amplification::Validated, sizing, Instant::ZERO);
        let mut path = Path::new(ID, route, AckPolicy::default());
        path.rtts.sample(ID, milliseconds(50), Duration::ZERO, at(0));
        path
    }

    fn witness(path: &Path) -> &Witness {
        let controller: &dyn Any = path.route.controller.as_ref();
        controller.downcast_ref().expect("it is a witness")
    }

    fn send(path: &mut Path, number: u64, ms: u64) {
        path.on_packet_sent(SentPacket::new(number, at(ms), 1_200, PacketClass::AckEliciting));
    }

    /// The peer acknowledges packet `number`.
    fn arrive(path: &mut Path, number: u64, ms: u64, limited: Limited) {
        let numbers: Ranges = [number..=number].into_iter().collect();
        let ranges = AckRanges::from_ranges(&numbers, 100).expect("one packet");
        let ack = Ack { path: None, largest: number, delay: 0, ranges, ecn: None };
        let acknowledged = path.sent.on_ack(&ack, at(ms)).expect("it was sent");
        path.on_ack(&acknowledged, BACK, limited, at(ms));
    }

    fn lost(class: PacketClass, numbers: &[(u64, u64)]) -> Lost {
        let packet = |&(number, ms): &(u64, u64)| SentPacket::new(number, at(ms), 1_200, class);
        Lost { packets: numbers.iter().map(packet).collect(), ..Lost::default() }
    }

    #[test]
    fn what_is_in_flight_includes_the_packet_that_leaves() {
        let mut path = path();
        (0..3).for_each(|number| send(&mut path, number, 10));
        let in_flight: Vec<_> = witness(&path).sent.iter().map(|sending| sending.in_flight).collect();
        assert_eq!(in_flight, [1_200, 2_400, 3_600]);
    }

    #[test]
    fn only_a_question_where_no_answer_is_awaited_begins_to_wait_anew() {
        let filled = |path: &Path| path.liveness.was_filled_since(at(0));
        let mut path = path();
        (0..10).for_each(|_| path.on_heard(at(5)));
        path.on_packet_sent(SentPacket::new(0, at(10), 100, PacketClass::AckOnly));
        assert!(filled(&path), "nothing is asked");
        send(&mut path, 1, 11);
        assert!(!filled(&path), "that did not delay the answer");
        (0..10).for_each(|_| path.on_heard(at(12)));
        send(&mut path, 2, 13);
        assert!(filled(&path), "an answer is awaited already");
    }

    #[test]
    fn losses_that_were_none_and_marks_are_counted() {
        let mut path = path();
        let spurious = SpuriousLoss {
            number: 0,
            sent_at: at(10),
            lost_at: at(90),
            bytes: 1_200,
            distance: 3,
            tokens: Default::default(),
        };
        let counts = EcnCounts { ect0: 0, ect1: 0, ce: 3 };
        let acknowledged = Acknowledged {
            packets: vec![SentPacket::new(7, at(60), 1_200, PacketClass::AckEliciting)],
            spurious: vec![spurious; 2],
            ecn: EcnReport { counted: Counted::Grown(counts), newly_ect0: 3, newly_ect1: 0 },
            rtt_sample: None,
        };
        for times in 1..3 {
            path.on_ack(&acknowledged, BACK, Limited::ByRounds, at(100));
            assert_eq!((path.counters.spurious_losses, path.counters.marked), (2 * times, 3 * times));
        }
        assert_eq!(witness(&path).marked, [MarkSample { now: at(100), sent_at: at(60) }; 2]);
    }

    #[test]
    fn an_acknowledgement_tells_whether_the_window_was_used() {
        let limited = |limited, used_below: u64| {
            let mut path = path();
            path.route.on_pass(0, used_below);
            send(&mut path, 3, 10);
            arrive(&mut path, 3, 60, limited);
            witness(&path).acknowledged.iter().map(|sample| sample.app_limited).collect::<Vec<_>>()
        };
        assert_eq!(limited(Limited::ByRounds, 3), [true], "the window was not used with it");
        assert_eq!(limited(Limited::ByRounds, 4), [false]);
        assert_eq!(
            limited(Limited::BySample, 3),
            [false],
            "a packet of the handshake has a number of its own"
        );
    }

    #[test]
    fn what_arrives_paces_what_follows() {
        let mut path = path();
        send(&mut path, 0, 10);
        assert_eq!(path.route.pacer.rate(), None);
        arrive(&mut path, 0, 60, Limited::ByRounds);
        // RFC 9002 §7.7: 1.25 windows in a round trip of 50 ms.
        assert_eq!(path.route.pacer.rate(), Some(Bandwidth::of(WINDOW as u64 * 5 / 4, milliseconds(50))));
    }

    #[test]
    fn losses_are_held_against_the_period_once_a_round_trip_was_measured() {
        // RFC 9002 §7.6.2.
        let losses = lost(PacketClass::AckEliciting, &[(1, 10), (2, 500)]);
        let mut path = path();
        assert_eq!(path.judge_persistence(&losses, milliseconds(400)), Persistence::Passing);
        path.on_rtt_sample(at(1));
        assert_eq!(path.judge_persistence(&losses, milliseconds(400)), Persistence::Persistent);
    }

    /// A path that sent more than its controller allows, from packet 100 on, for what is remembered of it.
    fn resuming() -> Path {
        let mut path = path();
        let rtt = milliseconds(50);
        let remembered = PathKnowledge::of_window(100_000, rtt, at(0));
        assert!(path.remember(Some(remembered), Duration::from_secs(3_600), at(1)));
        send(&mut path, 80, 1);
        arrive(&mut path, 80, 51, Limited::ByRounds);
        path.route.grant(u64::MAX, path.sent.in_flight(), at(51));
        (90..110).for_each(|number| send(&mut path, number, 52));
        assert_eq!(changes(&mut path), [(ResumePhase::Unvalidated, ResumeTrigger::WindowLimited)]);
        path
    }

    fn changes(path: &mut Path) -> Vec<(ResumePhase, ResumeTrigger)> {
        path.route.take_resume_changes().0.to_vec()
    }

    #[test]
    fn the_numbers_of_the_path_show_that_more_than_the_controller_allows_arrived() {
        let mut path = resuming();
        arrive(&mut path, 105, 90, Limited::BySample);
        assert_eq!(changes(&mut path), [], "packets of the handshake have numbers of their own");
        arrive(&mut path, 106, 91, Limited::ByRounds);
        let validating = (ResumePhase::Validating, ResumeTrigger::FirstUnvalidatedAcknowledged);
        assert_eq!(changes(&mut path), [validating]);
    }

    #[test]
    fn what_is_lost_in_flight_ends_what_was_begun_with() {
        let ends = |class, persistence| {
            let mut path = resuming();
            path.on_loss(&lost(class, &[(95, 52)]), persistence, at(100));
            changes(&mut path)
        };
        let retreat = (ResumePhase::SafeRetreat, ResumeTrigger::PacketLoss);
        assert_eq!(ends(PacketClass::AckEliciting, Persistence::Passing), [retreat]);
        let collapse = (ResumePhase::Normal, ResumeTrigger::PersistentCongestion);
        assert_eq!(ends(PacketClass::AckEliciting, Persistence::Persistent), [collapse]);
        assert_eq!(ends(PacketClass::AckOnly, Persistence::Passing), [], "it says nothing about the path");
    }
}
