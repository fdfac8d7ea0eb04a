//! Delivery rate samples (draft-ietf-ccwg-bbr, section "Delivery Rate Samples").
//!
//! The acknowledging phase of a sample lasts from one acknowledgement to another. If the two came back over different
//! paths, the difference of the return delays is part of that time although nothing was delivered faster or slower. It
//! is the difference of the smallest round-trip times, and it is taken out.

use crate::recovery::capacity::{Burst, Capacity, Passage};
use crate::recovery::delay::PathRtts;
use crate::recovery::recent::{Mark, RecentDelivery};
use crate::recovery::sent_packet::SentPacket;
use crate::recovery::windowed::WindowedMax;
use crate::time::Instant;
use crate::{Bandwidth, PathId};
use std::time::Duration;

/// The estimate is the largest sample of this many round trips.
const WINDOW_ROUNDS: u64 = 10;

/// The state of the flow that a packet remembers from the moment it left (draft, "Per-packet (P) state").
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeliveryState {
    /// Bytes delivered until then.
    pub delivered: u64,
    /// The time at which the last of them was acknowledged.
    pub delivered_at: Instant,
    /// The path over which that was; `None` if nothing was in flight and the clock started with this packet.
    pub delivered_over: Option<PathId>,
    /// The time at which the first packet of the flight left.
    pub first_sent_at: Instant,
    /// Bytes lost until then.
    pub lost: u64,
    /// Bytes in flight just before it left, its own not among them.
    pub in_flight: u64,
    /// True if the sender had too little to send to fill the path.
    pub app_limited: bool,
    /// The burst that it left in.
    pub burst: Burst,
}

/// An acknowledgement of packets that were in flight.
#[derive(Clone, Copy, Debug)]
pub struct AckSample<'a> {
    /// The time at which it arrived.
    pub now: Instant,
    /// The path that carried it.
    pub over: PathId,
    /// The round-trip times of the path that carried the packets.
    pub rtts: &'a PathRtts,
    /// The round-trip time of the newest packet without the receiver's delay, if the acknowledgement is a sample of it.
    pub rtt: Option<Duration>,
}

/// The rate sample of one acknowledgement (draft, "Rate Sample (rs) Output"). "Since" means since the newest
/// acknowledged packet left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// Bytes delivered per time; `None` if the interval is too short to be a measurement.
    pub rate: Option<Bandwidth>,
    /// Bytes delivered since.
    pub delivered: u64,
    /// The interval: the longer of the sending and the acknowledging phase.
    pub interval: Duration,
    /// Bytes that had been delivered when the newest packet left.
    pub prior_delivered: u64,
    /// Bytes delivered since the route exists.
    pub total_delivered: u64,
    /// Bytes that this acknowledgement delivered.
    pub newly_acknowledged: u64,
    /// Bytes in flight just after the newest packet left, its own included.
    pub tx_in_flight: u64,
    /// Bytes lost since.
    pub lost: u64,
    /// True if the sender had too little to send: then the path may be faster than the sample.
    pub app_limited: bool,
}

/// The rate of a route of late.
#[derive(Clone, Copy, Debug)]
pub struct RecentRate {
    /// The greatest that it can be: the oldest packet in flight may be about to arrive.
    pub at_most: Bandwidth,
    /// True if something arrived.
    pub moves: bool,
}

/// Measures the delivery rate of one route.
#[derive(Clone, Debug)]
pub struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    delivered_over: Option<PathId>,
    first_sent_at: Instant,
    lost: u64,
    /// The flow is limited by the application until this many bytes are delivered.
    app_limited_until: Option<u64>,
    round: u64,
    round_ends: u64,
    largest: WindowedMax<Bandwidth>,
    capacity: Capacity,
    /// A route that has delivered nothing yet has none, and is to take little memory.
    recent: Option<Box<RecentDelivery>>,
}

impl Default for RateSampler {
    fn default() -> Self {
        Self {
            delivered: 0,
            delivered_at: Instant::ZERO,
            delivered_over: None,
            first_sent_at: Instant::ZERO,
            lost: 0,
            app_limited_until: None,
            round: 0,
            round_ends: 0,
            largest: WindowedMax::new(WINDOW_ROUNDS),
            capacity: Capacity::default(),
            recent: None,
        }
    }
}

impl RateSampler {
    /// A packet leaves at `now` while `in_flight` bytes, its own not among them, are in flight (draft,
    /// "Transmitting a data packet").
    pub fn on_sent(&mut self, now: Instant, in_flight: usize) -> DeliveryState {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
            self.delivered_over = None;
        }
        let sent = self.delivered.saturating_add(self.lost).saturating_add(in_flight as u64);
        DeliveryState {
            burst: self.capacity.on_sent(now, sent, in_flight),
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            delivered_over: self.delivered_over,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight: in_flight as u64,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// A packet of the handshake leaves at `now` while `in_flight` bytes, its own not among them, are in flight. Of these the burst
    /// alone counts: a server's certificates spread out at the bottleneck before any data does.
    pub fn on_handshake_sent(&mut self, now: Instant, in_flight: usize) -> DeliveryState {
        let sent = self.delivered.saturating_add(self.lost).saturating_add(in_flight as u64);
        let burst = self.capacity.on_sent(now, sent, in_flight).of_handshake();
        DeliveryState { burst, ..DeliveryState::default() }
    }

    /// `packet`, which was in flight, is lost. Returns the bytes lost since it left, its own included.
    pub fn on_lost(&mut self, packet: &SentPacket) -> u64 {
        self.lost = self.lost.saturating_add(packet.bytes as u64);
        self.lost.saturating_sub(packet.delivery.lost)
    }

    /// The application has nothing to send although `in_flight` bytes do not fill the window (draft, "Detecting
    /// application-limited phases").
    pub fn on_app_limited(&mut self, in_flight: usize) {
        self.app_limited_until = Some(self.delivered.saturating_add(in_flight as u64).max(1));
    }

    /// `packets` were acknowledged (draft, "Upon receiving an ACK"); `None` if none of them was in flight.
    pub fn on_acknowledged(&mut self, arrival: AckSample<'_>, packets: &[SentPacket]) -> Option<RateSample> {
        let (mut newest, mut newly): (Option<&SentPacket>, u64) = (None, 0);
        for packet in packets.iter().filter(|packet| packet.class.in_flight()) {
            newly = newly.saturating_add(packet.bytes as u64);
            if newest.is_none_or(|newest| is_newer(packet, newest)) {
                newest = Some(packet);
            }
        }
        let newest = newest?;
        self.delivered = self.delivered.saturating_add(newly);
        self.delivered_at = self.delivered_at.max(arrival.now);
        self.delivered_over = Some(arrival.over);
        self.recent
            .get_or_insert_default()
            .on_delivered(Mark { at: arrival.now, delivered: self.delivered }, arrival.rtts.longest_base());
        self.first_sent_at = newest.sent_at;
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        if newest.delivery.delivered >= self.round_ends {
            self.round += 1;
            self.round_ends = self.delivered;
        }
        if let Some(rtt) = arrival.rtt {
            self.capacity.on_passage(&Passage::of(newest, arrival.over, rtt));
        }
        let sample = self.sample(newest, newly, arrival);
        // A sample of an idle flow tells only when it is larger than all others.
        if let Some(rate) = sample.rate
            && (!sample.app_limited || self.largest.get().is_none_or(|largest| rate >= largest))
        {
            self.largest.offer(self.round, rate);
        }
        Some(sample)
    }

    /// Forgets what was delivered of late: nothing is in flight.
    pub fn hibernate(&mut self) {
        self.recent = None;
    }

    /// The largest sample of the last ten round trips, not counting those that the application limited.
    #[inline]
    pub fn estimate(&self) -> Option<Bandwidth> {
        self.largest.get()
    }

    /// The rate of late, since `oldest` left at most, as if that arrived now.
    pub fn recent(&self, oldest: &SentPacket, now: Instant) -> RecentRate {
        let left = Mark { at: oldest.sent_at, delivered: oldest.delivery.delivered };
        let since = self
            .recent
            .as_ref()
            .and_then(|recent| recent.mark(now))
            .filter(|mark| mark.at > left.at)
            .unwrap_or(left);
        let delivered = self.delivered.saturating_sub(since.delivered);
        let at_most = Bandwidth::of(delivered.saturating_add(oldest.bytes as u64), now.since(since.at));
        RecentRate { at_most, moves: delivered > 0 }
    }

    /// The rate of the bottleneck, as bursts that spread out there show it; `None` if none did yet.
    #[inline]
    pub fn capacity(&self) -> Option<Bandwidth> {
        self.capacity.estimate()
    }

    /// The longest of the latest bursts, in bytes, if longer ones may show the bottleneck to be wider.
    pub fn undecided(&self) -> Option<u64> {
        self.capacity.undecided()
    }

    /// The rate of the bottleneck that the packets of the handshake showed, until data shows one.
    pub fn shown_by_handshake(&self) -> Option<Bandwidth> {
        self.capacity.shown_by_handshake()
    }

    /// The number of bursts that show it.
    pub fn bursts(&self) -> u8 {
        self.capacity.bursts()
    }

    /// The rate of the bottleneck, if bursts show it to be less than `promised`.
    pub fn refutation(&self, promised: Bandwidth) -> Option<Bandwidth> {
        self.capacity.refutation(promised)
    }

    /// Bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    fn sample(&self, newest: &SentPacket, newly: u64, arrival: AckSample<'_>) -> RateSample {
        let state = newest.delivery;
        let sending = newest.sent_at.since(state.first_sent_at);
        let before = state.delivered_over.unwrap_or(arrival.over);
        let (earlier, later) = (arrival.rtts.min_for(before), arrival.rtts.min_for(arrival.over));
        let acknowledging = self.delivered_at.since(state.delivered_at);
        let interval = sending.max(without_return_delays(acknowledging, earlier, later));
        let delivered = self.delivered.saturating_sub(state.delivered);
        // Less than a round trip is no reliable measurement; after a change of the return path, than the shorter one.
        let least = earlier.into_iter().chain(later).min();
        let reliable = !interval.is_zero() && least.is_none_or(|least| interval >= least);
        RateSample {
            rate: reliable.then(|| Bandwidth::of(delivered, interval)),
            delivered,
            interval,
            prior_delivered: state.delivered,
            total_delivered: self.delivered,
            newly_acknowledged: newly,
            tx_in_flight: state.in_flight.saturating_add(newest.bytes as u64),
            lost: self.lost.saturating_sub(state.lost),
            app_limited: state.app_limited,
        }
    }
}

/// The time between two acknowledgements as it were if both had returned over the same path, from the smallest
/// round-trip times over the return path of the `earlier` and of the `later` one.
fn without_return_delays(time: Duration, earlier: Option<Duration>, later: Option<Duration>) -> Duration {
    let (Some(earlier), Some(later)) = (earlier, later) else { return time };
    time.saturating_add(earlier).saturating_sub(later)
}

fn is_newer(packet: &SentPacket, than: &SentPacket) -> bool {
    (packet.delivery.delivered, packet.sent_at, packet.number)
        > (than.delivery.delivered, than.sent_at, than.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::sent_packet::PacketClass;
    use std::collections::VecDeque;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn packet(sampler: &mut RateSampler, number: u64, now: Instant, in_flight: usize) -> SentPacket {
        let mut packet = SentPacket::new(number, now, 1000, PacketClass::AckEliciting);
        packet.delivery = sampler.on_sent(now, in_flight);
        packet
    }

    /// An acknowledgement over path 0 without a known round-trip time.
    fn acknowledge(sampler: &mut RateSampler, now: Instant, packets: &[SentPacket]) -> Option<RateSample> {
        let rtts = PathRtts::default();
        sampler.on_acknowledged(AckSample { now, over: PathId::ZERO, rtts: &rtts, rtt: None }, packets)
    }

    /// One packet per `gap` ms, acknowledged 20 ms after it left.
    fn steady(sampler: &mut RateSampler, from: u64, count: u64, gap: u64) -> Option<RateSample> {
        let (mut flight, mut last) = (VecDeque::new(), None);
        for number in 0..count {
            let now = at(from + number * gap);
            while flight
                .front()
                .is_some_and(|first: &SentPacket| first.sent_at + Duration::from_millis(20) <= now)
            {
                let first = flight.pop_front().expect("there is a front");
                let now = first.sent_at + Duration::from_millis(20);
                last = acknowledge(sampler, now, std::slice::from_ref(&first));
            }
            let sent = packet(sampler, number, now, flight.len() * 1000);
            flight.push_back(sent);
        }
        last
    }

    #[test]
    fn a_steady_flow_is_measured_exactly() {
        let mut sampler = RateSampler::default();
        let sample = steady(&mut sampler, 0, 200, 2).expect("there are samples");
        // 1000 bytes per 2 ms.
        assert_eq!(sample.rate, Some(Bandwidth::from_bits_per_second(4_000_000)));
        assert_eq!(sampler.estimate(), sample.rate);
    }

    #[test]
    fn a_burst_of_acknowledgements_does_not_look_like_a_fast_path() {
        // Sent over 40 ms, acknowledged all at once: the sending phase bounds the rate.
        let mut sampler = RateSampler::default();
        let packets: Vec<_> =
            (0..20).map(|n| packet(&mut sampler, n, at(n * 2), n as usize * 1000)).collect();
        let first = acknowledge(&mut sampler, at(50), &packets[..1]).expect("a sample");
        assert_eq!(first.interval, Duration::from_millis(50));
        let sample = acknowledge(&mut sampler, at(50), &packets[1..]).expect("a sample");
        assert!(sample.rate <= Some(Bandwidth::from_bits_per_second(4_300_000)), "{sample:?}");
    }

    #[test]
    fn an_interval_below_the_minimum_round_trip_is_no_sample() {
        let mut sampler = RateSampler::default();
        let sent = packet(&mut sampler, 0, at(0), 0);
        let mut rtts = PathRtts::default();
        rtts.sample(PathId::ZERO, Duration::from_millis(20), Duration::ZERO, at(0));
        let arrival = AckSample { now: at(5), over: PathId::ZERO, rtts: &rtts, rtt: None };
        let sample = sampler.on_acknowledged(arrival, &[sent]).expect("it was in flight");
        assert_eq!((sample.rate, sampler.estimate()), (None, None));
    }

    #[test]
    fn a_flow_with_little_to_send_does_not_lower_the_estimate() {
        let mut sampler = RateSampler::default();
        steady(&mut sampler, 0, 200, 2);
        let fast = sampler.estimate();
        for number in 0..30 {
            sampler.on_app_limited(0);
            let sent = packet(&mut sampler, 1000 + number, at(1000 + number * 100), 0);
            assert!(sent.delivery.app_limited);
            acknowledge(&mut sampler, at(1020 + number * 100), &[sent]);
        }
        assert_eq!(sampler.estimate(), fast);
    }

    #[test]
    fn a_flow_counts_as_limited_until_more_is_delivered_than_was_in_flight() {
        let mut sampler = RateSampler::default();
        let packets: Vec<_> = (0..3).map(|n| packet(&mut sampler, n, at(n), n as usize * 1000)).collect();
        sampler.on_app_limited(2000);
        let limited = packets.into_iter().map(|one| {
            acknowledge(&mut sampler, at(20), &[one]);
            sampler.on_sent(at(21), 1).app_limited
        });
        assert_eq!(limited.collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(sampler.delivered(), 3000);
    }

    #[test]
    fn the_newest_packet_of_an_acknowledgement_makes_the_sample_in_whatever_order() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut sampler = RateSampler::default();
            let packets: Vec<_> =
                (0..3).map(|n| packet(&mut sampler, n, at(n * 5), n as usize * 1000)).collect();
            let packets: Vec<_> = order.iter().map(|n| packets[*n].clone()).collect();
            let sample = acknowledge(&mut sampler, at(30), &packets).expect("a sample");
            assert_eq!((sample.tx_in_flight, sample.newly_acknowledged), (3000, 3000), "{order:?}");
        }
    }

    #[test]
    fn an_old_estimate_is_forgotten_after_ten_round_trips() {
        let mut sampler = RateSampler::default();
        steady(&mut sampler, 0, 200, 2);
        steady(&mut sampler, 1000, 600, 4);
        assert_eq!(sampler.estimate(), Some(Bandwidth::from_bits_per_second(2_000_000)));
    }

    /// One packet per 2 ms for `count` packets, 25 ms to the receiver, and back over path 0 in 25 ms or over path 1 in
    /// 2 ms as `over` says for the time at which a packet arrives. Every acknowledgement covers all that arrived.
    fn steady_over(count: u64, over: impl Fn(u64) -> u32) -> Vec<RateSample> {
        let (mut sampler, mut rtts, mut samples) = (RateSampler::default(), PathRtts::default(), Vec::new());
        for (path, rtt) in [(0, 50), (1, 27)] {
            rtts.sample(PathId(path), Duration::from_millis(rtt), Duration::ZERO, at(0));
        }
        let mut acks: Vec<(u64, u32, u64)> = (0..count)
            .map(|number| (number * 2 + 25, over(number * 2 + 25), number))
            .map(|(arrival, over, number)| (arrival + if over == 0 { 25 } else { 2 }, over, number))
            .collect();
        acks.sort_unstable();
        let (mut acks, mut flight) = (VecDeque::from(acks), VecDeque::new());
        for number in 0..count {
            while let Some((now, over, up_to)) = acks.pop_front_if(|(at, ..)| *at <= number * 2) {
                let covered = flight.iter().filter(|packet: &&SentPacket| packet.number <= up_to).count();
                let packets: Vec<_> = flight.drain(..covered).collect();
                let arrival = AckSample { now: at(now), over: PathId(over), rtts: &rtts, rtt: None };
                samples.extend(sampler.on_acknowledged(arrival, &packets));
            }
            flight.push_back(packet(&mut sampler, number, at(number * 2), flight.len() * 1000));
        }
        samples
    }

    #[test]
    fn a_change_of_the_return_path_is_neither_a_faster_nor_a_slower_path() {
        // 1000 bytes per 2 ms; the acknowledgements change their path every 100 ms.
        let samples = steady_over(1000, |arrival| (arrival / 100 % 2) as u32);
        assert!(samples.len() > 500);
        for sample in &samples[40..] {
            let rate = sample.rate.expect("more than a round trip").bits_per_second() as f64;
            assert!((rate / 4e6 - 1.0).abs() < 0.06, "{sample:?}");
        }
    }

    #[test]
    fn what_was_lost_and_in_flight_is_counted_since_the_packet_left() {
        let mut sampler = RateSampler::default();
        let packets: Vec<_> = (0..4).map(|n| packet(&mut sampler, n, at(n * 2), n as usize * 1000)).collect();
        assert_eq!(sampler.on_lost(&packets[0]), 1000);
        assert_eq!(sampler.on_lost(&packets[1]), 2000);
        let later = packet(&mut sampler, 4, at(10), 2000);
        let sample = acknowledge(&mut sampler, at(20), &packets[2..3]).expect("a sample");
        assert_eq!((sample.lost, sample.tx_in_flight, sample.newly_acknowledged), (2000, 3000, 1000));
        let sample = acknowledge(&mut sampler, at(30), &[later]).expect("a sample");
        assert_eq!((sample.lost, sample.tx_in_flight, sample.total_delivered), (0, 3000, 2000));
    }

    #[test]
    fn the_rate_of_late_counts_from_the_latest_mark_or_from_the_oldest_packet_in_flight() {
        let mut sampler = RateSampler::default();
        let packets =
            [(0, 0, 0), (1, 50, 1000)].map(|(n, ms, flight)| packet(&mut sampler, n, at(ms), flight));
        let first = sampler.recent(&packets[0], at(10));
        assert_eq!((first.at_most, first.moves), (Bandwidth::of(1000, Duration::from_millis(10)), false));
        acknowledge(&mut sampler, at(100), &packets[..1]);
        // It left when the first one arrived, which was not known yet.
        let at_once = SentPacket { sent_at: at(100), ..packets[1].clone() };
        let recent = |sampler: &RateSampler, oldest| {
            let RecentRate { at_most, moves } = sampler.recent(oldest, at(160));
            (at_most, moves)
        };
        let since_mark = (Bandwidth::of(1000, Duration::from_millis(60)), false);
        assert_eq!(recent(&sampler, &packets[1]), since_mark, "the mark is younger");
        let since_sent = (Bandwidth::of(2000, Duration::from_millis(60)), true);
        assert_eq!(recent(&sampler, &at_once), since_sent, "the mark is as old");
        sampler.hibernate();
        let unmarked = (Bandwidth::of(2000, Duration::from_millis(110)), true);
        assert_eq!(recent(&sampler, &packets[1]), unmarked, "the mark is forgotten");
    }

    /// Packets at once over a path of 2 Mbit/s, whose empty round trip is 5 ms.
    fn burst(sampler: &mut RateSampler, ms: u64, count: u64, of_handshake: bool) {
        let packets = (0..count).map(|number| {
            let mut packet = packet(sampler, number, at(ms), number as usize * 1000);
            if of_handshake {
                packet.delivery = sampler.on_handshake_sent(at(ms), number as usize * 1000);
            }
            packet
        });
        let packets: Vec<_> = packets.collect();
        let rtts = PathRtts::default();
        for (packet, place) in packets.iter().zip(1..) {
            let rtt = Duration::from_millis(5 + 4 * place);
            let arrival = AckSample { now: at(ms) + rtt, over: PathId::ZERO, rtts: &rtts, rtt: Some(rtt) };
            sampler.on_acknowledged(arrival, std::slice::from_ref(packet));
        }
    }

    #[test]
    fn bursts_show_the_bottleneck_those_of_the_handshake_first() {
        let mut sampler = RateSampler::default();
        let is_right = |rate: Bandwidth| (1_900_000..=2_000_000).contains(&rate.bits_per_second());
        burst(&mut sampler, 0, 1, true);
        burst(&mut sampler, 100, 3, true);
        assert!(sampler.shown_by_handshake().is_some_and(is_right));
        assert_eq!((sampler.capacity(), sampler.bursts(), sampler.undecided()), (None, 0, None));
        burst(&mut sampler, 200, 1, false);
        burst(&mut sampler, 300, 2, false);
        assert_eq!((sampler.shown_by_handshake(), sampler.bursts()), (None, 1));
        assert_eq!(sampler.undecided(), Some(1000), "a packet behind the first");
        burst(&mut sampler, 400, 3, false);
        assert_eq!((sampler.bursts(), sampler.undecided()), (2, None));
        assert!(sampler.capacity().is_some_and(is_right));
        assert_eq!(sampler.refutation(Bandwidth::from_mbit(10)), sampler.capacity());
        assert_eq!(sampler.refutation(Bandwidth::from_mbit(2)), None);
    }

    #[test]
    fn extremes_do_not_overflow() {
        // attacks.md C14.
        let mut sampler = RateSampler::default();
        let mut sent = packet(&mut sampler, 0, at(0), usize::MAX);
        sent.bytes = usize::MAX;
        sampler.on_app_limited(usize::MAX);
        acknowledge(&mut sampler, Instant::from_nanos(1), &[sent.clone()]);
        sampler.on_lost(&sent);
        acknowledge(&mut sampler, Instant::FAR_FUTURE, &[sent.clone()]);
        assert_eq!(sampler.on_lost(&sent), u64::MAX);
        assert!(sampler.estimate().is_some());
    }
}
