//! The rates at which channels bring packets, held against what was promised of them.
//!
//! A sender learns from acknowledgements that a promise does not hold, each of its connections anew. The receiver sees it for all
//! of them at once: packets that follow each other at the bottleneck arrive as far apart as it takes for one of them (packet
//! pairs: Keshav, SIGCOMM 1991). Senders may leave larger gaps than the bottleneck does, so that the closest of the latest pairs counts,
//! and only if others agree with it. The packets of a pair come from two connections, or are of a handshake, whose flights leave at
//! once: an application that sends a packet at a time, in a steady beat, looks like a narrow channel. One connection alone has a
//! sender who knows better.

use crate::Bandwidth;
use crate::time::Instant;
use hvq_scheduler::Hints;
use smallvec::SmallVec;
use std::net::SocketAddr;

/// Channels that are watched at most.
const MOST_CHANNELS: usize = 16;
/// The latest pairs that are kept.
const PAIRS: usize = 8;
/// Pairs that refute a promise, if they agree and no other shows as much as half of it.
const FEW: usize = 2;
/// Pairs that refute it, if they agree and all others fall a fifth short of it, by which a radio may vary for a while.
const SEVERAL: usize = 6;
/// Rates agree that differ by no more than one over this.
const AGREEMENT: u64 = 16;
/// The second packet of a pair has so many bytes at least: timers are as long as smaller ones take.
const LEAST_BYTES: usize = 600;
/// A gap of so many times what a packet takes at the promised rate is a pause of the sender.
const PAUSE: u32 = 8;
/// A rate that differs by less than one over this is no news.
const NEWS: u64 = 4;

/// The rates that the channels behind this endpoint's addresses were promised to have and seem to have.
#[derive(Debug, Default)]
pub(super) struct ReceivedRates {
    channels: SmallVec<[Received; 2]>,
}

/// A datagram that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// The address that it arrived at.
    pub local: SocketAddr,
    /// Its size in bytes of UDP payload.
    pub bytes: usize,
    /// The number of its connection.
    pub connection: u64,
    /// True if it begins with a packet of the handshake.
    pub of_handshake: bool,
}

/// Packets that arrived over one channel.
#[derive(Clone, Debug)]
struct Received {
    local: SocketAddr,
    promised: Bandwidth,
    last: Option<(Instant, Arrival)>,
    /// The rates of the latest pairs, the latest last.
    pairs: SmallVec<[Bandwidth; PAIRS]>,
    /// The rate that is believed in place of the promised one, once that is refuted.
    shown: Option<Bandwidth>,
}

impl ReceivedRates {
    /// The channel of `local` has these hints. It is watched if they promise a rate to what arrives.
    pub(super) fn watch(&mut self, local: SocketAddr, hints: &Hints) {
        let Some(promised) = hints.rate_of_arrivals() else { return };
        let has_room = self.channels.len() < MOST_CHANNELS;
        match self.channels.iter_mut().find(|channel| channel.local == local) {
            Some(channel) if channel.promised == promised => {}
            Some(channel) => *channel = Received::new(local, promised),
            None if has_room => self.channels.push(Received::new(local, promised)),
            None => {}
        }
    }

    /// A datagram arrived. Returns true if another rate is believed of its channel from now on.
    pub(super) fn on_arrival(&mut self, arrival: Arrival, now: Instant) -> bool {
        let channel = self.channels.iter_mut().find(|channel| channel.local == arrival.local);
        channel.is_some_and(|channel| channel.on_arrival(arrival, now))
    }

    /// Returns the rate at which packets arrive at `local`, if that refutes what was promised.
    pub(super) fn shown(&self, local: SocketAddr) -> Option<Bandwidth> {
        self.channels.iter().find(|channel| channel.local == local)?.shown
    }
}

impl Received {
    fn new(local: SocketAddr, promised: Bandwidth) -> Self {
        Self { local, promised, last: None, pairs: SmallVec::new(), shown: None }
    }

    fn on_arrival(&mut self, arrival: Arrival, now: Instant) -> bool {
        let Some((at, before)) = self.last.replace((now, arrival)) else { return false };
        let (gap, bytes) = (now.since(at), arrival.bytes);
        let is_pair = before.connection != arrival.connection || arrival.of_handshake;
        let is_pause = gap > self.promised.transmission_time(bytes).saturating_mul(PAUSE);
        if !is_pair || is_pause || bytes < LEAST_BYTES {
            return false;
        }
        if self.pairs.len() == PAIRS {
            self.pairs.remove(0);
        }
        self.pairs.push(Bandwidth::of(bytes as u64, gap));
        self.review()
    }

    /// Returns true if this changes what is believed.
    fn review(&mut self) -> bool {
        let refutation = self.refutation();
        let is_news = match (self.shown, refutation) {
            (None, None) => false,
            (Some(before), Some(after)) => differ(before, after),
            _ => true,
        };
        if is_news {
            self.shown = refutation;
        }
        is_news
    }

    /// Returns the rate of the closest pair, if that refutes the promise.
    fn refutation(&self) -> Option<Bandwidth> {
        let closest = self.pairs.iter().copied().max()?;
        let [bits, promised] = [closest, self.promised].map(Bandwidth::bits_per_second);
        let needed = if bits < promised / 2 { FEW } else { SEVERAL };
        let agree = self.pairs.iter().filter(|pair| bits - pair.bits_per_second() <= bits / AGREEMENT);
        (bits < promised / 5 * 4 && agree.count() >= needed).then_some(closest)
    }
}

/// Returns true if `after` differs from `before` by so much that it is worth telling.
fn differ(before: Bandwidth, after: Bandwidth) -> bool {
    let [before, after] = [before, after].map(Bandwidth::bits_per_second);
    before.abs_diff(after) > before / NEWS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn promised(mbit: u64) -> Hints {
        Hints { rate: Some(Bandwidth::from_mbit(mbit)), ..Hints::NONE }
    }

    fn watched(mbit: u64) -> ReceivedRates {
        let mut rates = ReceivedRates::default();
        rates.watch(address(1), &promised(mbit));
        rates
    }

    /// A packet of a handshake.
    const ARRIVAL: Arrival = Arrival {
        local: SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1),
        bytes: 1_200,
        connection: 0,
        of_handshake: true,
    };

    /// Packets of handshakes arrive at these times, in microseconds. Returns the number of changes.
    fn arrive(rates: &mut ReceivedRates, times: impl IntoIterator<Item = u64>) -> usize {
        times.into_iter().filter(|micros| rates.on_arrival(ARRIVAL, at(*micros))).count()
    }

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn two_pairs_refute_a_promise_of_five_times_the_rate() {
        let mut rates = watched(10);
        assert_eq!(arrive(&mut rates, [0, 4_800]), 0);
        assert_eq!(rates.shown(address(1)), None, "one pair may be a whim of the sender");
        assert_eq!(arrive(&mut rates, [9_600]), 1);
        assert_eq!(rates.shown(address(1)), Some(Bandwidth::from_mbit(2)));
        assert_eq!(arrive(&mut rates, (3..100).map(|n| n * 4_800)), 0, "it is told once");
    }

    #[test]
    fn a_promise_that_holds_is_not_refuted_by_pauses_of_the_sender() {
        let mut rates = watched(2);
        // Pairs at 2 Mbit/s, one in five, between gaps that are up to seven times as long.
        let gaps = [4_800, 9_600, 20_000, 33_000, 12_000].into_iter().cycle().take(500);
        let times = gaps.scan(0, |at, gap| Some(std::mem::replace(at, *at + gap)));
        assert_eq!(arrive(&mut rates, times.collect::<Vec<_>>()), 0);
        // Packets that come one by one say nothing at all.
        let mut rates = watched(2);
        assert_eq!(arrive(&mut rates, (0..100).map(|n| n * 50_000)), 0);
    }

    #[test]
    fn a_channel_that_is_as_quick_as_promised_again_is_believed() {
        let mut rates = watched(10);
        assert_eq!(arrive(&mut rates, [0, 4_800, 9_600]), 1);
        assert_eq!(arrive(&mut rates, [10_560]), 1);
        assert_eq!(rates.shown(address(1)), None);
    }

    #[test]
    fn a_fifth_less_takes_several_pairs() {
        let mut rates = watched(2);
        // 1.5 Mbit/s.
        assert_eq!(arrive(&mut rates, (0..6).map(|n| n * 6_400)), 0);
        assert_eq!(arrive(&mut rates, [6 * 6_400]), 1);
        let mut rates = watched(2);
        // 1.7 Mbit/s.
        assert_eq!(arrive(&mut rates, (0..100).map(|n| n * 5_647)), 0);
    }

    #[test]
    fn small_packets_count_as_time_and_not_as_pairs() {
        let mut rates = watched(10);
        let small = Arrival { bytes: 100, ..ARRIVAL };
        assert!((0..100).all(|n| !rates.on_arrival(small, at(n * 4_800))));
    }

    #[test]
    fn the_steady_beat_of_one_connection_is_no_evidence_and_several_are() {
        let data = Arrival { of_handshake: false, ..ARRIVAL };
        let mut rates = watched(2);
        assert!((0..100).all(|n| !rates.on_arrival(data, at(n * 20_000))), "a frame of a video each time");
        let mut rates = watched(10);
        let of = |n| Arrival { connection: n % 3, ..data };
        assert_eq!((0..100).filter(|n| rates.on_arrival(of(*n), at(n * 4_800))).count(), 1);
        assert_eq!(rates.shown(address(1)), Some(Bandwidth::from_mbit(2)));
    }

    #[test]
    fn few_channels_are_watched_and_only_those_of_promised_rate() {
        let mut rates = ReceivedRates::default();
        rates.watch(address(1), &Hints::NONE);
        assert!(rates.channels.is_empty());
        (0..1_000).for_each(|port| rates.watch(address(port), &promised(2)));
        assert_eq!(rates.channels.len(), MOST_CHANNELS);
        let back = Hints { rate_back: Some(Bandwidth::from_mbit(7)), ..promised(2) };
        rates.watch(address(1), &back);
        assert_eq!(rates.channels.len(), MOST_CHANNELS);
        assert_eq!(rates.channels[1].promised, Bandwidth::from_mbit(7));
    }
}
