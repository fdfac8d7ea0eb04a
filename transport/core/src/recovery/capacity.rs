//! The rate of the bottleneck, from how bursts spread out there (packet trains: Dovrolis et al., INFOCOM 2001).
//!
//! Packets that leave faster than the bottleneck carries them arrive as fast as it does. The time between the arrivals of
//! two of them is known at the sender: that between their departures and the difference of their round-trip times. The
//! first packet of a burst that finds the path idle is where the smallest round trip says, so that the first flight of two
//! packets tells. A stretch of a burst shows at most the rate of the bottleneck, but for acknowledgements that come closer
//! together than the packets did; so the greatest of the latest bursts is taken, and only of the longer ones.

use crate::recovery::sent_packet::SentPacket;
use crate::time::Instant;
use crate::{Bandwidth, PathId};
use smallvec::SmallVec;
use std::time::Duration;

/// Packets that leave with no longer pauses are one burst.
const PAUSE: Duration = Duration::from_millis(1);
/// The bursts of which the greatest rate is taken.
const BURSTS: usize = 8;
/// Bursts that refute a promise, if they fall short of it by little.
const SEVERAL: usize = 3;
/// A stretch of fewer bytes shows nothing: timers and the receiver's processing are as long as it.
const LEAST_BYTES: u64 = 1000;
/// A stretch between two packets is as long as this at least, in bytes. Either acknowledgement may have been held up, while a
/// stretch from the beginning of a burst is compared with the smallest round trip.
const LONG_BYTES: u64 = 8000;
/// The time by which any measurement may be too short: timers and packets that are handled together.
const NOISE: Duration = Duration::from_micros(100);
/// Return paths that are told apart.
const RETURN_PATHS: usize = 4;

/// The burst that a packet left in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Burst {
    /// Its number.
    number: u32,
    /// The time at which it began, if nothing was in flight then.
    idle_since: Option<Instant>,
    /// Bytes of it that left before the packet.
    ahead: u64,
    /// True if it is of the handshake.
    of_handshake: bool,
}

impl Burst {
    /// The burst as one of the handshake.
    pub fn of_handshake(self) -> Self {
        Self { of_handshake: true, ..self }
    }
}

/// A packet that passed the bottleneck, as its acknowledgement tells.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    burst: Burst,
    sent_at: Instant,
    bytes: u64,
    over: PathId,
    rtt: Duration,
}

impl Passage {
    /// `packet` was acknowledged over the path `over` after `rtt`, of which nothing was the receiver's.
    pub fn of(packet: &SentPacket, over: PathId, rtt: Duration) -> Self {
        let (burst, bytes) = (packet.delivery.burst, packet.bytes as u64);
        Self { burst, sent_at: packet.sent_at, bytes, over, rtt }
    }

    /// The stretch from the beginning of the burst, which found the path idle; its first bytes take as long as those of `base`.
    fn since_idle(&self, base: Base) -> Option<Stretch> {
        let sending = self.sent_at.since(self.burst.idle_since?);
        let bytes = (self.burst.ahead + self.bytes).saturating_sub(base.bytes);
        self.stretch(bytes, sending, base.rtt).filter(|stretch| u64::from(stretch.bytes) >= LEAST_BYTES)
    }

    /// The stretch from `earlier`, of the same burst: a queue of others delayed both.
    fn since_earlier(&self, earlier: &Self) -> Option<Stretch> {
        let bytes = self.burst.ahead.saturating_sub(earlier.burst.ahead);
        let sending = self.sent_at.since(earlier.sent_at);
        let stretch = self.stretch(bytes, sending, earlier.rtt)?;
        (u64::from(stretch.bytes) >= LONG_BYTES).then_some(Stretch { is_steady: true, ..stretch })
    }

    /// A stretch of `bytes` that left within `sending`, the first of them with a round trip of `rtt`; `None` if the sender
    /// spread them no less than the bottleneck did, for then they show the sender.
    fn stretch(&self, bytes: u64, sending: Duration, rtt: Duration) -> Option<Stretch> {
        let time = sending.saturating_add(self.rtt).saturating_sub(rtt);
        let is_spread = time >= sending.saturating_mul(2);
        let (number, bytes) = (self.burst.number, u32::try_from(bytes).unwrap_or(u32::MAX));
        is_spread.then(|| Stretch { burst: number, bytes, is_steady: false, rate: rate(bytes.into(), time) })
    }
}

/// The smallest round trip over one return path, and the bytes that the bottleneck carried in it.
#[derive(Clone, Copy, Debug)]
struct Base {
    over: PathId,
    rtt: Duration,
    bytes: u64,
}

/// Bytes of a burst that the bottleneck spread over a time, and the rate which that shows.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    burst: u32,
    bytes: u32,
    /// True if no queue of others can have made it: a shorter stretch of the burst shows the same, or its beginning waited, too.
    is_steady: bool,
    rate: Bandwidth,
}

impl Stretch {
    /// Returns true if this is longer than `short` by half, and shows less than a quarter above its rate.
    fn shows_the_same_as(&self, short: &Self) -> bool {
        let [more, less] = [self, short].map(|stretch| u128::from(stretch.rate.bits_per_second()));
        self.is_longer_than(short) && more * 4 < less * 5
    }

    /// Returns true if this is longer than `short` by half.
    fn is_longer_than(&self, short: &Self) -> bool {
        self.bytes >= short.bytes.saturating_add(short.bytes / 2)
    }

    fn time(&self) -> Duration {
        self.rate.transmission_time(self.bytes as usize)
    }
}

/// The rate at which `bytes` pass in `time`, which may have been a little longer.
fn rate(bytes: u64, time: Duration) -> Bandwidth {
    Bandwidth::of(bytes, time.saturating_add(NOISE))
}

/// The estimate of the rate of one route's bottleneck.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    burst: Burst,
    /// Bytes that had been sent when it began.
    began_with: u64,
    last_sent: Option<Instant>,
    /// The memory of packets that arrived. A path that is not validated yet has none, and is to take little memory.
    shown: Option<Box<Shown>>,
}

/// The memory of packets that arrived.
#[derive(Clone, Debug, Default)]
struct Shown {
    bases: SmallVec<[Base; 2]>,
    /// The first passage of the burst that the latest belongs to.
    first: Option<Passage>,
    /// The longest stretches of the latest bursts, the latest first: [`BURSTS`] at most, of which connections that are hardly
    /// used have few.
    stretches: SmallVec<[Stretch; BURSTS / 2]>,
    /// The result of the stretches as they are, which is asked for far more often than they change.
    findings: Findings,
    /// True while all of it is of the handshake.
    of_handshake: bool,
    /// The result of the handshake, which is over.
    handshake: Option<Bandwidth>,
}

/// The result of the latest bursts together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Findings {
    /// The rate of the bottleneck, if there was a burst.
    rate: Option<Bandwidth>,
    /// The length of the longest burst in bytes, if longer ones may show more.
    undecided: Option<u32>,
}

impl Findings {
    /// The result of `stretches`.
    fn of(stretches: &[Stretch]) -> Self {
        let Some(longest) = stretches.iter().max_by_key(|stretch| stretch.bytes) else {
            return Self::default();
        };
        let long = stretches.iter().filter(|stretch| stretch.bytes >= longest.bytes / 2);
        let greatest = long.map(|stretch| stretch.rate).fold(longest.rate, Bandwidth::max);
        if is_decided(stretches) {
            return Self { rate: Some(greatest), undecided: None };
        }
        let twice = Bandwidth::from_bits_per_second(greatest.bits_per_second().saturating_mul(2));
        let rate = growth(stretches, longest).map_or(greatest, |growth| growth.clamp(greatest, twice));
        Self { rate: Some(rate), undecided: Some(longest.bytes) }
    }
}

/// Returns true if a stretch tells how wide the bottleneck is: longer ones would show no more.
fn is_decided(stretches: &[Stretch]) -> bool {
    let is_confirmed = |long: &Stretch| stretches.iter().any(|short| long.shows_the_same_as(short));
    stretches.iter().any(|stretch| stretch.is_steady) || stretches.iter().any(is_confirmed)
}

/// The rate at which bursts grew from the shortest of `stretches` to the `longest`, if that is longer by half.
fn growth(stretches: &[Stretch], longest: &Stretch) -> Option<Bandwidth> {
    let shortest = stretches.iter().min_by_key(|stretch| stretch.bytes)?;
    let bytes = longest.bytes - shortest.bytes;
    longest
        .is_longer_than(shortest)
        .then(|| rate(bytes.into(), longest.time().saturating_sub(shortest.time())))
}

impl Capacity {
    /// A packet leaves at `now` after `sent` bytes, of which `in_flight` are in flight. Returns the burst that it is part of.
    pub fn on_sent(&mut self, now: Instant, sent: u64, in_flight: usize) -> Burst {
        let continues = in_flight > 0 && self.last_sent.is_some_and(|last| now.since(last) <= PAUSE);
        if !continues {
            let (number, idle_since) = (self.burst.number.wrapping_add(1), (in_flight == 0).then_some(now));
            self.burst = Burst { number, idle_since, ..Burst::default() };
            self.began_with = sent;
        }
        self.last_sent = Some(now);
        Burst { ahead: sent.saturating_sub(self.began_with), ..self.burst }
    }

    /// Takes note of a packet that arrived.
    pub fn on_passage(&mut self, passage: &Passage) {
        self.shown.get_or_insert_default().on_passage(passage);
    }

    /// The memory of what data showed.
    #[inline]
    fn of_data(&self) -> Option<&Shown> {
        self.shown.as_deref().filter(|shown| !shown.of_handshake)
    }

    #[inline]
    fn findings(&self) -> Findings {
        self.of_data().map(|shown| shown.findings).unwrap_or_default()
    }

    /// The greatest rate that any of the latest bursts showed, of those of at least half the length of the longest.
    ///
    /// Longer bursts show more where a queue of others delayed all of them. Then it is the rate at which the longest grew beyond
    /// the shortest, but no more than twice the rate that was shown.
    #[inline]
    pub fn estimate(&self) -> Option<Bandwidth> {
        self.findings().rate
    }

    /// The longest of the latest bursts, in bytes, if longer ones may show more: none of them that is longer by half than another
    /// shows less than a quarter above the rate of that, nor a burst itself from its beginning on.
    ///
    /// A queue of others delays bursts of any length alike, so that a short one seems to have been spread by a narrow bottleneck.
    pub fn undecided(&self) -> Option<u64> {
        self.findings().undecided.map(u64::from)
    }

    /// The rate that the packets of the handshake showed, until data shows one: a server's certificates are a burst of several packets,
    /// and leave before anything else.
    pub fn shown_by_handshake(&self) -> Option<Bandwidth> {
        let shown = self.shown.as_deref()?;
        match (shown.of_handshake, shown.findings.rate) {
            (true, rate) => rate,
            (false, None) => shown.handshake,
            (false, Some(_)) => None,
        }
    }

    /// The number of bursts that the estimate is from, at most eight.
    pub fn bursts(&self) -> u8 {
        self.of_data().map_or(0, |shown| u8::try_from(shown.stretches.len()).unwrap_or(u8::MAX))
    }

    /// The rate that bursts show, if that refutes `promised`: one shows less than half of it, or several a fifth less, by
    /// which a radio may vary for a while.
    pub fn refutation(&self, promised: Bandwidth) -> Option<Bandwidth> {
        let shown = self.estimate()?;
        let [bits, promised] = [shown, promised].map(|rate| u128::from(rate.bits_per_second()));
        let needed = if bits * 2 < promised { 1 } else { SEVERAL };
        (bits * 5 < promised * 4 && usize::from(self.bursts()) >= needed).then_some(shown)
    }
}

impl Shown {
    fn on_passage(&mut self, passage: &Passage) {
        match (self.of_handshake, passage.burst.of_handshake) {
            // Data shows more than these few packets: they are forgotten but for their result.
            (true, false) => *self = Self { handshake: self.findings.rate, ..Self::default() },
            (false, true) if self.bases.is_empty() => self.of_handshake = true,
            (false, true) => return,
            _ => {}
        }
        let from_idle = self.base(passage).and_then(|base| passage.since_idle(base));
        let is_same =
            |first: &Passage| first.burst.number == passage.burst.number && first.over == passage.over;
        let known = self.first.filter(is_same);
        if known.is_none() {
            self.first = Some(*passage);
        }
        let from_first = known.and_then(|first| passage.since_earlier(&first));
        let noted = [from_idle, from_first].map(|stretch| stretch.is_some_and(|stretch| self.note(stretch)));
        if noted.contains(&true) {
            self.findings = Findings::of(&self.stretches);
        }
    }

    /// Keeps the longest stretch of each of the latest bursts, and of equals the later one. Returns true if `stretch` is kept.
    fn note(&mut self, stretch: Stretch) -> bool {
        if let Some(known) = self.stretches.iter_mut().find(|known| known.burst == stretch.burst) {
            let is_kept = known.bytes <= stretch.bytes;
            if is_kept {
                let is_steady = known.is_steady || stretch.shows_the_same_as(known);
                *known = Stretch { is_steady, ..stretch };
            }
            return is_kept;
        }
        self.stretches.truncate(BURSTS - 1);
        self.stretches.insert(0, stretch);
        true
    }

    /// The smallest round trip over the return path of `passage` before it.
    fn base(&mut self, passage: &Passage) -> Option<Base> {
        let Passage { over, rtt, .. } = *passage;
        let now = Base { over, rtt, bytes: passage.burst.ahead + passage.bytes };
        let Some(base) = self.bases.iter_mut().find(|base| base.over == over) else {
            if self.bases.len() < RETURN_PATHS {
                self.bases.push(now);
            }
            return None;
        };
        let before = *base;
        if rtt < before.rtt {
            *base = now;
        }
        Some(before)
    }
}

#[cfg(test)]
mod tests;
