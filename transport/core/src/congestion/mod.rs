//! Congestion control: how much of one route may be in flight (RFC 9002 §7).
//!
//! A controller belongs to one route and sees one path. It takes samples and answers with a window in bytes; it reads
//! no clock and no packet.

pub mod balia;
pub mod bbr;
pub mod copa;
pub mod coupled;
pub mod cubic;
pub mod hystart;
pub mod lia;
pub mod new_reno;
pub mod olia;
mod period;
mod queueing;
mod variation;
pub mod vegas;
pub mod vivace;

#[cfg(test)]
mod radio;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod simulation;

use crate::recovery::interruption::Cause;
use crate::recovery::persistent::Persistence;
use crate::recovery::rate::{RateSample, RateSampler};
use crate::recovery::sent_packet::SentPacket;
use crate::time::Instant;
use crate::{Bandwidth, PathId};
use coupled::Flow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A packet leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sending {
    /// The time of sending.
    pub now: Instant,
    /// Its size.
    pub bytes: usize,
    /// Bytes in flight, the packet included.
    pub in_flight: usize,
    /// True if the application had too little to send to fill the path of late.
    pub app_limited: bool,
}

/// Packets were acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// The time at which the acknowledgement arrived.
    pub now: Instant,
    /// The path that carried the packets.
    pub data_path: PathId,
    /// The path that carried the acknowledgement: round-trip times of different return paths do not compare.
    pub acknowledged_over: PathId,
    /// Bytes newly acknowledged that were in flight.
    pub bytes: usize,
    /// The time at which the newest of them left.
    pub sent_at: Instant,
    /// The round-trip time, if the acknowledgement is a sample of it.
    pub rtt: Option<Duration>,
    /// The smallest round-trip time over the same return path.
    pub min_rtt: Duration,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// The delivery rate that was just measured.
    pub delivery_rate: Option<Bandwidth>,
    /// The delivery since the newest of the packets left; `None` if none of them was in flight.
    pub delivery: Option<RateSample>,
    /// Bytes left in flight.
    pub in_flight: usize,
    /// True if the window was not used up because there was too little to send (RFC 9002 §7.8).
    pub app_limited: bool,
}

/// One packet that counted in flight was lost; the [`LossSample`] of all of them follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostPacket {
    /// The time at which it was declared lost.
    pub now: Instant,
    /// Its number.
    pub number: u64,
    /// Its size.
    pub bytes: usize,
    /// The time at which it left.
    pub sent_at: Instant,
    /// Bytes in flight just after it left, its own included.
    pub tx_in_flight: u64,
    /// Bytes lost since it left, its own included.
    pub lost: u64,
    /// Bytes delivered since the route exists.
    pub total_delivered: u64,
    /// True if the application had too little to send when it left.
    pub app_limited: bool,
}

impl LostPacket {
    /// Makes the report to a controller of `packet`, lost at `now`, of which `rate` takes note.
    pub fn of(packet: &SentPacket, rate: &mut RateSampler, now: Instant) -> Self {
        let lost = rate.on_lost(packet);
        Self {
            now,
            number: packet.number,
            bytes: packet.bytes,
            sent_at: packet.sent_at,
            tx_in_flight: packet.delivery.in_flight.saturating_add(packet.bytes as u64),
            lost,
            total_delivered: rate.delivered(),
            app_limited: packet.delivery.app_limited,
        }
    }
}

/// Packets were lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LossSample {
    /// The time at which they were declared lost.
    pub now: Instant,
    /// Bytes lost that were in flight.
    pub bytes: usize,
    /// The time at which the newest of them left.
    pub largest_sent_at: Instant,
    /// Tells whether the losses establish persistent congestion.
    pub persistent: Persistence,
    /// Their cause, as far as it can be told.
    pub cause: Cause,
    /// Bytes left in flight.
    pub in_flight: usize,
}

/// The peer reports packets that arrived with the CE mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkSample {
    /// The time at which the report arrived.
    pub now: Instant,
    /// The time at which the newest of the acknowledged packets left.
    pub sent_at: Instant,
}

/// A packet declared lost was acknowledged after all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpuriousSample {
    /// The time at which the acknowledgement arrived.
    pub now: Instant,
    /// Bytes that the packet counted in flight.
    pub bytes: usize,
    /// The time at which it left.
    pub sent_at: Instant,
    /// The time at which it was declared lost.
    pub lost_at: Instant,
}

/// A congestion controller.
pub trait Controller: Send + fmt::Debug {
    /// A packet that counts as in flight leaves.
    fn on_sent(&mut self, _sending: &Sending) {}

    /// Packets were acknowledged.
    fn on_acknowledged(&mut self, sample: &Sample);

    /// One packet was lost; called for each, and then [`on_lost`](Self::on_lost) for all.
    fn on_packet_lost(&mut self, _packet: &LostPacket) {}

    //= https://www.rfc-editor.org/rfc/rfc9002#section-7
    //= type=implication
    //= reason=Every controller reduces its rate for congestion and none exceeds its window.
    //# If a sender uses a different controller than that specified in this document, the chosen controller
    //# MUST conform to the congestion control guidelines specified in Section 3.1 of [RFC8085].
    /// Packets were lost; losses of one round trip reduce the window once.
    fn on_lost(&mut self, sample: &LossSample);

    /// Congestion was signalled without a loss (RFC 9002 §7.1).
    fn on_ecn_ce(&mut self, sample: &MarkSample);

    /// A loss was no loss.
    fn on_spurious(&mut self, sample: &SpuriousSample);

    /// Returns the state for its siblings, the other coupled controllers of the connection; `None` if it is not coupled
    /// or has nothing to show yet.
    fn flow(&self) -> Option<Flow> {
        None
    }

    /// Takes note of the state of the siblings, before every sample, if [`flow`](Self::flow) shows something.
    fn on_siblings(&mut self, _flows: &[Flow]) {}

    /// Bytes that may be in flight; never below two datagrams (RFC 9002 §7.2).
    fn window(&self) -> usize;

    /// The rate at which to send, `None` if the pacer shall derive it from the window.
    fn pacing_rate(&self) -> Option<Bandwidth> {
        None
    }

    /// Returns true if the controller itself holds back data that the path could carry, so that the rate samples of the
    /// packets now in flight tell as little as those of an application with too little to send.
    fn withholds(&self) -> bool {
        false
    }

    /// The name that [`Algorithm`] parses.
    fn name(&self) -> &'static str;

    /// Returns true if the window still grows by the bytes that are acknowledged.
    fn in_slow_start(&self) -> bool;

    /// Starts again on a new route with datagrams of `datagram_size` bytes (RFC 9000 §9.4).
    fn reset(&mut self, datagram_size: usize);

    /// Datagrams have `datagram_size` bytes from now on (RFC 9002 §7.2).
    fn set_datagram_size(&mut self, datagram_size: usize);
}

/// The controllers that there are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Algorithm {
    /// RFC 9002 §7.
    NewReno,
    /// RFC 9438, with HyStart++ (RFC 9406).
    #[default]
    Cubic,
    /// RFC 9438, with a slow start that only loss ends (RFC 9002 §7.3.1): for paths on which a longer round trip is no
    /// sign of a queue, as where packets are steered over two channels below the transport.
    PlainCubic,
    /// draft-ietf-ccwg-bbr (version 3).
    Bbr,
    /// Brakmo and Peterson 1994.
    Vegas,
    /// Arun and Balakrishnan 2018.
    Copa,
    /// Dong et al. 2018.
    Vivace,
    /// RFC 6356, coupled.
    Lia,
    /// Khalili et al. 2012, coupled.
    Olia,
    /// Peng et al. 2016, coupled.
    Balia,
}

impl Algorithm {
    /// All of them, but for [`Self::PlainCubic`], which differs in its slow start only.
    pub const ALL: [Self; 9] = [
        Self::NewReno,
        Self::Cubic,
        Self::Bbr,
        Self::Vegas,
        Self::Copa,
        Self::Vivace,
        Self::Lia,
        Self::Olia,
        Self::Balia,
    ];

    /// All that have a name.
    fn known() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain([Self::PlainCubic])
    }

    /// A controller in its initial state for datagrams of `datagram_size` bytes.
    pub fn build(self, datagram_size: usize) -> Box<dyn Controller> {
        match self {
            Self::NewReno => Box::new(new_reno::NewReno::new(datagram_size)),
            Self::Cubic => Box::new(cubic::Cubic::new(datagram_size)),
            Self::PlainCubic => Box::new(cubic::Cubic::new(datagram_size).without_hystart()),
            Self::Bbr => Box::new(bbr::Bbr::new(datagram_size)),
            Self::Vegas => Box::new(vegas::Vegas::new(datagram_size)),
            Self::Copa => Box::new(copa::Copa::new(datagram_size)),
            Self::Vivace => Box::new(vivace::Vivace::new(datagram_size)),
            Self::Lia => Box::new(lia::LiaController::new(datagram_size)),
            Self::Olia => Box::new(olia::OliaController::new(datagram_size)),
            Self::Balia => Box::new(balia::BaliaController::new(datagram_size)),
        }
    }

    /// The name that [`FromStr`] takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
            Self::PlainCubic => "plain-cubic",
            Self::Bbr => "bbr",
            Self::Vegas => "vegas",
            Self::Copa => "copa",
            Self::Vivace => "vivace",
            Self::Lia => "lia",
            Self::Olia => "olia",
            Self::Balia => "balia",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No controller has this name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown congestion control algorithm {0:?}: choose from {names}", names = names())]
pub struct UnknownAlgorithm(pub String);

/// All names, separated by commas.
fn names() -> String {
    Algorithm::known().map(Algorithm::name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    /// Takes the names as [`Display`](fmt::Display) writes them, also `reno`, `new-reno`, `bbr3` and `bbrv3`, in any
    /// case.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let lower = name.to_ascii_lowercase();
        let known = match lower.as_str() {
            "new-reno" | "reno" => "newreno",
            "bbr3" | "bbrv3" => "bbr",
            other => other,
        };
        let found = Self::known().find(|algorithm| algorithm.name() == known);
        found.ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}

/// The window before anything is known: ten datagrams, but no more than 14720 bytes unless two datagrams are
/// (RFC 9002 §7.2).
pub fn initial_window(datagram_size: usize) -> usize {
    let most = datagram_size.saturating_mul(2).max(14_720);
    datagram_size.saturating_mul(10).min(most).max(minimum_window(datagram_size))
}

/// The smallest window: two datagrams (RFC 9002 §7.2).
pub fn minimum_window(datagram_size: usize) -> usize {
    datagram_size.saturating_mul(2).max(1)
}

/// `window` bytes per half `smoothed_rtt`: in slow start the window doubles within a round trip, and pacing must not
/// keep it from doing so.
fn slow_start_rate(window: usize, smoothed_rtt: Option<Duration>) -> Option<Bandwidth> {
    let nanos = smoothed_rtt?.as_nanos().max(1000);
    let bits = (window as u128).saturating_mul(16 * 1_000_000_000) / nanos;
    Some(Bandwidth::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `ms` after the start.
    pub(crate) const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A datagram of 1200 bytes is acknowledged at `now`, 50 ms after it left, over its own path.
    pub(crate) fn sample(now: Instant) -> Sample {
        let rtt = Duration::from_millis(50);
        Sample {
            now,
            data_path: PathId::ZERO,
            acknowledged_over: PathId::ZERO,
            bytes: 1200,
            sent_at: Instant::ZERO + now.since(Instant::ZERO).saturating_sub(rtt),
            rtt: Some(rtt),
            min_rtt: rtt,
            smoothed_rtt: rtt,
            delivery_rate: None,
            delivery: None,
            in_flight: 0,
            app_limited: false,
        }
    }

    /// `bytes` that left at `sent` ms are declared lost at `now` ms.
    pub(crate) fn lost(sent: u64, now: u64, bytes: usize) -> LossSample {
        let (now, largest_sent_at) = (at(now), at(sent));
        LossSample {
            now,
            bytes,
            largest_sent_at,
            persistent: Persistence::Passing,
            cause: Cause::Congestion,
            in_flight: 0,
        }
    }

    /// A mark of a packet that left at `sent` ms is reported at `now` ms.
    pub(crate) fn marked(sent: u64, now: u64) -> MarkSample {
        MarkSample { now: at(now), sent_at: at(sent) }
    }

    /// `bytes` declared lost at `lost` ms are acknowledged at `now` ms.
    pub(crate) fn spurious(lost: u64, now: u64, bytes: usize) -> SpuriousSample {
        let lost_at = at(lost);
        SpuriousSample { now: at(now), bytes, sent_at: lost_at, lost_at }
    }

    #[test]
    fn the_initial_window_is_that_of_the_rfc() {
        // RFC 9002 §7.2.
        assert_eq!(initial_window(1200), 12_000);
        assert_eq!(initial_window(1472), 14_720);
        assert_eq!(initial_window(1500), 14_720);
        assert_eq!(initial_window(9000), 18_000);
        assert!(initial_window(0) > 0, "a window is a divisor");
    }

    #[test]
    fn names_round_trip() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
            assert_eq!(algorithm.build(1200).name(), algorithm.name());
        }
        assert_eq!("Reno".parse(), Ok(Algorithm::NewReno));
        assert_eq!("BBRv3".parse(), Ok(Algorithm::Bbr));
        assert!("bbr9".parse::<Algorithm>().is_err());
    }

    fn arbitrary_delivery(bytes: usize, time: u64) -> Option<RateSample> {
        (!time.is_multiple_of(7)).then(|| RateSample {
            rate: (!time.is_multiple_of(11)).then(|| Bandwidth::from_bits_per_second(time)),
            delivered: time,
            interval: Duration::from_nanos(time),
            prior_delivered: time / 3,
            total_delivered: time,
            newly_acknowledged: bytes as u64,
            tx_in_flight: bytes as u64,
            lost: time / 5,
            app_limited: time.is_multiple_of(2),
        })
    }

    fn arbitrary_loss(now: Instant, bytes: usize, time: u64) -> LostPacket {
        LostPacket {
            now,
            number: time,
            bytes,
            sent_at: Instant::from_nanos(time),
            tx_in_flight: time / 3,
            lost: time,
            total_delivered: bytes as u64,
            app_limited: time.is_multiple_of(2),
        }
    }

    /// Feeds one arbitrary event; numbers of any size.
    fn feed(controller: &mut dyn Controller, kind: u8, now: Instant, bytes: usize, time: u64) {
        let (rtt, earlier) = (Duration::from_micros(time), Instant::from_nanos(time));
        match kind {
            0 => controller.on_sent(&Sending {
                now,
                bytes,
                in_flight: if time.is_multiple_of(3) { bytes } else { time as usize },
                app_limited: time.is_multiple_of(2),
            }),
            1 | 2 => controller.on_acknowledged(&Sample {
                now,
                data_path: PathId::ZERO,
                acknowledged_over: PathId((time % 3) as u32),
                bytes,
                sent_at: earlier,
                rtt: Some(rtt),
                min_rtt: rtt,
                smoothed_rtt: rtt,
                delivery_rate: Some(Bandwidth::from_bits_per_second(time)),
                delivery: arbitrary_delivery(bytes, time),
                in_flight: bytes,
                app_limited: kind == 2 && time.is_multiple_of(2),
            }),
            3 => {
                controller.on_packet_lost(&arbitrary_loss(now, bytes, time));
                controller.on_lost(&LossSample {
                    now,
                    bytes,
                    largest_sent_at: earlier,
                    persistent: if time.is_multiple_of(5) {
                        Persistence::Persistent
                    } else {
                        Persistence::Passing
                    },
                    cause: Cause::Congestion,
                    in_flight: bytes,
                })
            }
            4 => controller.on_ecn_ce(&MarkSample { now, sent_at: earlier }),
            5 => controller.on_spurious(&SpuriousSample { now, bytes, sent_at: earlier, lost_at: now }),
            _ => controller.set_datagram_size(bytes % 65_536),
        }
    }

    proptest! {
        #[test]
        fn the_window_stays_sane_whatever_happens(
            events in prop::collection::vec((0u8..7, any::<u64>(), any::<usize>(), any::<u64>()), 1..100)
        ) {
            // attacks.md C14, C15.
            for algorithm in Algorithm::ALL {
                let mut controller = algorithm.build(1200);
                for &(kind, now, bytes, time) in &events {
                    let rtt = Duration::from_nanos(time);
                    let sibling = Flow { path: PathId(1), window: bytes as f64, rtt, between_losses: now };
                    controller.on_siblings(&[sibling]);
                    let size = if kind >= 6 { bytes % 65_536 } else { 0 };
                    feed(controller.as_mut(), kind, Instant::from_nanos(now), bytes, time);
                    prop_assert!(controller.window() >= minimum_window(size));
                    prop_assert!(controller.window() <= usize::MAX / 2);
                }
                controller.reset(1200);
                prop_assert_eq!(controller.window(), initial_window(1200));
                prop_assert!(controller.in_slow_start());
            }
        }
    }
}
