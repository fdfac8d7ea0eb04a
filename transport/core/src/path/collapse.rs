//! A path whose delivery has collapsed: it answers, but what is in flight takes many times as long as when it left.
//!
//! The link has hardly any of its rate left, and what was queued for it before waits there. A stream that is read in order
//! waits with it. No packet is lost, and acknowledgements keep coming, so neither loss detection nor liveness sees anything.

use crate::path::path::{LatePacket, Path};
use crate::ranges::Ranges;
use crate::recovery::sent_packet::SentPacket;
use crate::time::Instant;
use hvq_scheduler::Bandwidth;
use std::time::Duration;

/// One over the share of its rate that a collapsed path delivers at most.
const SHARE: u64 = 4;
/// Fewer packets in flight than this are no queue: the peer may hold their acknowledgement back.
const SEVERAL: usize = 4;
/// Fewer bytes in flight than this, of an application that has no more to send, are a trickle: less than an initial window (RFC
/// 9002 §7.2).
const TRICKLE: usize = 12_000;
/// The time by which the oldest packet is late at least, beyond a quarter of what it should have taken: acknowledgements are
/// delayed by as much (RFC 9000 §13.2.1).
const LEAST_MARGIN: Duration = Duration::from_millis(25);

/// The packets of a path that were copied to others although it answers. Most paths never have any.
#[derive(Clone, Debug, Default)]
pub struct Copies(Option<Box<Copied>>);

/// Packets that were copied.
#[derive(Clone, Debug, Default)]
struct Copied {
    /// Those that are in flight.
    numbers: Ranges,
    /// Bytes of all since the path was opened.
    bytes: u64,
}

impl Copies {
    /// Returns true if packet `number` was copied.
    pub fn has(&self, number: u64) -> bool {
        self.0.as_ref().is_some_and(|copied| copied.numbers.contains(number))
    }

    /// Bytes that were copied since the path was opened.
    pub fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |copied| copied.bytes)
    }

    /// Packet `number` of `bytes` was copied; those below `oldest` are not in flight any more.
    pub fn note(&mut self, number: u64, bytes: usize, oldest: u64) {
        let copied = self.0.get_or_insert_default();
        copied.numbers.remove_below(oldest);
        copied.numbers.insert(number);
        copied.bytes += bytes as u64;
    }

    /// Withdraws offers that were not sent elsewhere yet: they may be made again.
    pub fn withdraw(&mut self) {
        if let Some(copied) = &mut self.0 {
            copied.numbers.clear();
        }
    }

    /// Returns true if a packet from `oldest` on was copied: the collapse goes on.
    fn go_on(&self, oldest: u64) -> bool {
        let largest = self.0.as_ref().and_then(|copied| copied.numbers.largest());
        largest.is_some_and(|largest| largest >= oldest)
    }
}

/// A packet in flight, and the bytes of the path up to its end.
#[derive(Clone, Debug)]
pub struct Overdue {
    /// The number of the packet.
    pub number: u64,
    /// The packet.
    pub packet: LatePacket,
    /// Bytes in flight up to the end of the packet.
    pub ahead: usize,
}

impl Path {
    /// The rate at which a path delivers whose delivery has collapsed; `None` of any other.
    ///
    /// The oldest of several packets is overdue by what its queue should have taken when it left, and less than a quarter of
    /// its rate arrived of late: of what it delivered before, or of what its bursts showed where the application sent a trickle.
    /// A path on which nothing arrives at all is [silent](crate::path::liveness) before long.
    pub fn collapsed_rate(&self, now: Instant) -> Option<Bandwidth> {
        if self.sent.ack_eliciting_in_flight() < SEVERAL || self.liveness.is_silent() {
            return None;
        }
        let oldest = self.sent.unacknowledged().find(|packet| packet.class.is_ack_eliciting())?;
        let age = now.since(oldest.sent_at);
        if age <= LEAST_MARGIN {
            return None;
        }
        let usual = self.route.rate.estimate()?;
        let recent = self.route.rate.recent(oldest, now);
        // An application that sends little shows little of what the path carries.
        let carried = match oldest.delivery.app_limited && self.sent.in_flight() < TRICKLE {
            true => self.route.rate.capacity().max(self.route.rate.shown_by_handshake()).max(Some(usual))?,
            false => usual,
        };
        if recent.at_most.bits_per_second().saturating_mul(SHARE) >= carried.bits_per_second() {
            return None;
        }
        let is_overdue = || {
            let expected = self.expected_round_trip(oldest, usual)?;
            Some(recent.moves && age > expected + (expected / 4).max(LEAST_MARGIN))
        };
        (self.copies.go_on(oldest.number) || is_overdue()?).then_some(recent.at_most)
    }

    /// The round trip of `packet` behind the bytes that were in flight when it left, at `rate`.
    fn expected_round_trip(&self, packet: &SentPacket, rate: Bandwidth) -> Option<Duration> {
        let before = usize::try_from(packet.delivery.in_flight).unwrap_or(usize::MAX);
        let queue = rate.transmission_time(before.saturating_add(packet.bytes));
        Some(self.rtts.longest_base()? + queue)
    }

    /// Packets in flight that were not copied, the oldest first.
    pub fn overdue(&self, now: Instant) -> impl Iterator<Item = Overdue> {
        let mut ahead = 0_usize;
        let counted = self.sent.unacknowledged().map(move |packet| {
            ahead = ahead.saturating_add(packet.bytes_in_flight());
            (packet, ahead)
        });
        let is_open =
            |packet: &SentPacket| packet.class.is_ack_eliciting() && !self.copies.has(packet.number);
        counted.filter(move |(packet, _)| is_open(packet)).map(move |(packet, ahead)| Overdue {
            number: packet.number,
            packet: LatePacket::of(packet, now),
            ahead,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathId;
    use crate::congestion::Algorithm;
    use crate::path::amplification::Amplification;
    use crate::path::mtu::DatagramSizing;
    use crate::path::route::{FourTuple, Route};
    use crate::recovery::rate::AckSample;
    use crate::recovery::sent_packet::PacketClass;
    use crate::space::received::AckPolicy;

    const ID: PathId = PathId(1);

    fn milliseconds(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn at(count: u64) -> Instant {
        Instant::ZERO + milliseconds(count)
    }

    /// A path with an empty round trip of 40 ms.
    fn path() -> Path {
        let address = ([192, 0, 2, 1], 443).into();
        let (tuple, sizing) = (FourTuple { local: address, remote: address }, DatagramSizing::default());
        let congestion = Algorithm::NewReno.into();
        let route = Route::new(tuple, congestion, Amplification::Validated, sizing, Instant::ZERO);
        let mut path = Path::new(ID, route, AckPolicy::default());
        path.rtts.sample(ID, milliseconds(40), Duration::ZERO, at(0));
        path
    }

    /// A packet of 1000 bytes leaves at `ms` behind `before` others.
    fn leave(path: &mut Path, number: u64, ms: u64, before: usize) -> SentPacket {
        let mut packet = SentPacket::new(number, at(ms), 1000, PacketClass::AckEliciting);
        packet.delivery = path.route.rate.on_sent(at(ms), 1000 * before);
        packet
    }

    fn arrive(path: &mut Path, ms: u64, packet: &SentPacket, rtt: Option<Duration>) {
        let arrival = AckSample { now: at(ms), over: ID, rtts: &path.rtts, rtt };
        path.route.rate.on_acknowledged(arrival, std::slice::from_ref(packet)).expect("it was in flight");
    }

    /// The rate at which a path has collapsed 220 ms after `count` packets left at once, `ahead` of which arrived after 200 ms.
    fn collapsed(mut path: Path, count: usize, ahead: usize) -> Option<Bandwidth> {
        let flight: Vec<_> = (0..ahead + count).map(|n| leave(&mut path, n as u64, 1000, n)).collect();
        flight[..ahead].iter().for_each(|packet| arrive(&mut path, 1200, packet, None));
        flight[ahead..].iter().for_each(|packet| path.sent.on_sent(packet.clone()));
        assert_eq!(path.collapsed_rate(at(1025)), None, "nothing is late yet");
        path.collapsed_rate(at(1220))
    }

    /// A path that carried a packet a millisecond.
    fn fast() -> Path {
        let mut path = path();
        let packets: Vec<_> = (0..40).map(|n| leave(&mut path, n, n, n as usize)).collect();
        packets.iter().zip(40..).for_each(|(packet, ms)| arrive(&mut path, ms, packet, None));
        path
    }

    #[test]
    fn a_path_has_collapsed_on_which_several_packets_are_late_and_hardly_anything_arrives() {
        let rate = Bandwidth::of(2000, milliseconds(220));
        assert_eq!(collapsed(fast(), SEVERAL, 1), Some(rate));
        assert_eq!(collapsed(fast(), 20, 1), Some(rate));
        assert_eq!(collapsed(fast(), SEVERAL - 1, 1), None, "acknowledgements may be held back");
        assert_eq!(collapsed(fast(), SEVERAL, 0), None, "it is silent");
        assert_eq!(collapsed(path(), SEVERAL, 1), None, "it never carried more");
    }

    #[test]
    fn a_packet_is_overdue_25_milliseconds_after_it_should_have_left_its_queue() {
        let mut path = fast();
        let usual = path.route.rate.estimate().expect("packets arrived");
        let flight: Vec<_> = (0..=SEVERAL).map(|n| leave(&mut path, n as u64, 1000, n)).collect();
        arrive(&mut path, 1040, &flight[0], None);
        flight[1..].iter().for_each(|packet| path.sent.on_sent(packet.clone()));
        let expected = milliseconds(40) + usual.transmission_time(2000);
        let last = at(1000) + expected + LEAST_MARGIN;
        assert_eq!(path.collapsed_rate(last), None);
        let late = last + Duration::from_nanos(1);
        assert_eq!(path.collapsed_rate(late), Some(Bandwidth::of(2000, late.since(at(1000)))));
    }

    #[test]
    fn the_packets_that_may_be_copied_wait_for_an_answer_and_were_not_copied() {
        let mut path = path();
        for (number, class) in
            [(3, PacketClass::AckEliciting), (4, PacketClass::InFlight), (5, PacketClass::AckEliciting)]
        {
            path.sent.on_sent(SentPacket::new(number, at(10 * number), 100, class));
        }
        let open = |path: &Path| -> Vec<_> {
            let of = |overdue: Overdue| (overdue.number, overdue.ahead, overdue.packet.age);
            path.overdue(at(90)).map(of).collect()
        };
        assert_eq!(open(&path), [(3, 100, milliseconds(60)), (5, 300, milliseconds(40))]);
        path.copies.note(3, 100, 3);
        assert_eq!(open(&path), [(5, 300, milliseconds(40))]);
    }

    #[test]
    fn of_a_trickle_the_bursts_tell_what_the_path_carries() {
        // Two packets at once every 80 ms, 1 ms apart when they arrive.
        let trickle = |is_limited: bool| {
            let mut path = path();
            for n in 0..10 {
                let pair = [0, 1].map(|place| leave(&mut path, 2 * n + place, 80 * n, place as usize));
                for (packet, rtt) in pair.iter().zip([41, 42]) {
                    arrive(&mut path, 80 * n + rtt, packet, Some(milliseconds(rtt)));
                }
            }
            if is_limited {
                path.route.rate.on_app_limited(100_000);
            }
            path
        };
        let rate = Bandwidth::of(3000, milliseconds(220));
        assert_eq!(collapsed(trickle(true), SEVERAL, 2), Some(rate));
        assert_eq!(collapsed(trickle(false), SEVERAL, 2), None, "it carried hardly more before");
        assert_eq!(collapsed(trickle(true), TRICKLE / 1000, 2), None, "that is no trickle");
    }

    #[test]
    fn a_collapse_goes_on_while_packets_that_were_copied_are_in_flight() {
        let mut copies = Copies::default();
        assert!(!copies.go_on(0));
        for number in [11, 12, 10] {
            copies.note(number, 100, 9);
        }
        assert_eq!([9, 10, 12, 13].map(|number| copies.has(number)), [false, true, true, false]);
        assert_eq!([12, 13].map(|oldest| copies.go_on(oldest)), [true, false]);
        copies.note(20, 50, 12);
        assert!(!copies.has(11) && copies.has(12));
        copies.withdraw();
        assert!(!copies.has(20) && !copies.go_on(0));
        assert_eq!(copies.bytes(), 350);
    }
}
