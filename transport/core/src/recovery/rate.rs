//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation).

use crate::Bandwidth;
use crate::recovery::windowed::WindowedMax;
use crate::space::packet::SentPacket;
use crate::time::Instant;
use std::time::Duration;

/// The estimate is the largest sample of this many round trips.
const WINDOW_ROUNDS: u64 = 10;

/// What a packet remembers about the flow at the moment it left (draft §3.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeliveryState {
    /// Bytes delivered until then.
    pub delivered: u64,
    /// When the last of them was acknowledged.
    pub delivered_at: Instant,
    /// When the first packet of the flight left.
    pub first_sent_at: Instant,
    /// Whether the sender had too little to send to fill the path.
    pub app_limited: bool,
}

/// One measurement of the delivery rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// Bytes delivered per time.
    pub rate: Bandwidth,
    /// Bytes delivered over the interval.
    pub delivered: u64,
    /// The interval: the longer of the sending and the acknowledging phase.
    pub interval: Duration,
    /// Whether the sender had too little to send: then the path may be faster than the sample.
    pub app_limited: bool,
}

/// Measures the delivery rate of one route.
#[derive(Clone, Debug)]
pub struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// The flow is limited by the application until this many bytes are delivered.
    app_limited_until: Option<u64>,
    round: u64,
    round_ends: u64,
    largest: WindowedMax<Bandwidth>,
}

impl Default for RateSampler {
    fn default() -> Self {
        Self {
            delivered: 0,
            delivered_at: Instant::ZERO,
            first_sent_at: Instant::ZERO,
            app_limited_until: None,
            round: 0,
            round_ends: 0,
            largest: WindowedMax::new(WINDOW_ROUNDS),
        }
    }
}

impl RateSampler {
    /// A packet leaves at `now` while `in_flight` bytes, its own not among them, are in flight (draft §3.2).
    pub fn on_sent(&mut self, now: Instant, in_flight: usize) -> DeliveryState {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        DeliveryState {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// The application has nothing to send although `in_flight` bytes do not fill the window (draft §3.4).
    pub fn on_app_limited(&mut self, in_flight: usize) {
        self.app_limited_until = Some(self.delivered.saturating_add(in_flight as u64).max(1));
    }

    /// `packets` were acknowledged at `now`; intervals below `min_rtt` are no measurement (draft §3.3).
    pub fn on_acknowledged(
        &mut self,
        now: Instant,
        packets: &[SentPacket],
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        let mut newest: Option<&SentPacket> = None;
        for packet in packets.iter().filter(|packet| packet.class.in_flight()) {
            self.delivered = self.delivered.saturating_add(packet.bytes as u64);
            if newest.is_none_or(|newest| is_newer(packet, newest)) {
                newest = Some(packet);
            }
        }
        let newest = newest?;
        self.delivered_at = self.delivered_at.max(now);
        self.first_sent_at = newest.sent_at;
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        if newest.delivery.delivered >= self.round_ends {
            self.round += 1;
            self.round_ends = self.delivered;
        }
        let sample = self.sample(newest, min_rtt)?;
        // A sample of an idle flow tells only when it is larger than all others (draft §3.4).
        if !sample.app_limited || self.largest.get().is_none_or(|largest| sample.rate >= largest) {
            self.largest.offer(self.round, sample.rate);
        }
        Some(sample)
    }

    /// The largest sample of the last ten round trips, not counting those that the application limited.
    pub fn estimate(&self) -> Option<Bandwidth> {
        self.largest.get()
    }

    /// Round trips counted by delivered data (packet-timed).
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Bytes delivered so far.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    fn sample(&self, newest: &SentPacket, min_rtt: Option<Duration>) -> Option<RateSample> {
        let state = newest.delivery;
        let sending = newest.sent_at.since(state.first_sent_at);
        let acknowledging = self.delivered_at.since(state.delivered_at);
        let interval = sending.max(acknowledging);
        if interval.is_zero() || min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        let delivered = self.delivered.saturating_sub(state.delivered);
        let bits = u128::from(delivered) * 8_000_000_000 / interval.as_nanos();
        let rate = Bandwidth::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX));
        Some(RateSample { rate, delivered, interval, app_limited: state.app_limited })
    }
}

fn is_newer(packet: &SentPacket, than: &SentPacket) -> bool {
    (packet.delivery.delivered, packet.sent_at, packet.number)
        > (than.delivery.delivered, than.sent_at, than.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::packet::PacketClass;
    use std::collections::VecDeque;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn packet(sampler: &mut RateSampler, number: u64, now: Instant, in_flight: usize) -> SentPacket {
        let mut packet = SentPacket::new(number, now, 1000, PacketClass::AckEliciting);
        packet.delivery = sampler.on_sent(now, in_flight);
        packet
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
                last = sampler.on_acknowledged(
                    first.sent_at + Duration::from_millis(20),
                    std::slice::from_ref(&first),
                    None,
                );
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
        assert_eq!(sample.rate, Bandwidth::from_bits_per_second(4_000_000));
        assert_eq!(sampler.estimate(), Some(sample.rate));
    }

    #[test]
    fn a_burst_of_acknowledgements_does_not_look_like_a_fast_path() {
        // Sent over 40 ms, acknowledged all at once: the sending phase bounds the rate.
        let mut sampler = RateSampler::default();
        let packets: Vec<_> =
            (0..20).map(|n| packet(&mut sampler, n, at(n * 2), n as usize * 1000)).collect();
        let first = sampler.on_acknowledged(at(50), &packets[..1], None).expect("a sample");
        assert_eq!(first.interval, Duration::from_millis(50));
        let sample = sampler.on_acknowledged(at(50), &packets[1..], None).expect("a sample");
        assert!(sample.rate <= Bandwidth::from_bits_per_second(4_300_000), "{sample:?}");
    }

    #[test]
    fn an_interval_below_the_minimum_round_trip_is_no_sample() {
        let mut sampler = RateSampler::default();
        let sent = packet(&mut sampler, 0, at(0), 0);
        assert_eq!(sampler.on_acknowledged(at(5), &[sent], Some(Duration::from_millis(20))), None);
        assert_eq!(sampler.estimate(), None);
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
            sampler.on_acknowledged(at(1020 + number * 100), &[sent], None);
        }
        assert_eq!(sampler.estimate(), fast);
    }

    #[test]
    fn an_old_estimate_is_forgotten_after_ten_round_trips() {
        let mut sampler = RateSampler::default();
        steady(&mut sampler, 0, 200, 2);
        steady(&mut sampler, 1000, 600, 4);
        assert_eq!(sampler.estimate(), Some(Bandwidth::from_bits_per_second(2_000_000)));
    }

    #[test]
    fn extremes_do_not_overflow() {
        // attacks.md C14.
        let mut sampler = RateSampler::default();
        let mut sent = packet(&mut sampler, 0, at(0), usize::MAX);
        sent.bytes = usize::MAX;
        sampler.on_app_limited(usize::MAX);
        sampler.on_acknowledged(Instant::from_nanos(1), &[sent.clone()], None);
        sampler.on_acknowledged(Instant::FAR_FUTURE, &[sent], Some(Duration::MAX));
        assert!(sampler.estimate().is_some());
    }
}
