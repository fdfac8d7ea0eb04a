//! Congestion control: how much of one route may be in flight (RFC 9002 §7).
//!
//! A controller belongs to one route and sees one path. It takes samples and answers with a window in bytes; it reads
//! no clock and no packet. [`Algorithm`] lists the built-in ones. Another one is a type that implements [`Controller`],
//! a [`ControllerFactory`] that makes it for each route, and a test that holds it against the [`contract`].

mod algorithm;
mod balia;
mod bbr;
pub mod contract;
mod controller;
mod copa;
mod coupled;
mod cubic;
mod events;
mod factory;
mod hystart;
mod lia;
mod new_reno;
mod olia;
mod period;
mod queueing;
pub mod simulation;
mod tolerance;
mod variation;
mod vegas;
mod vivace;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::recovery::interruption::Cause;
pub use crate::recovery::persistent::Persistence;
pub use crate::recovery::rate::RateSample;
pub use crate::time::Instant;
pub use crate::{Bandwidth, PathId};
pub use algorithm::{Algorithm, UnknownAlgorithm};
pub use controller::Controller;
pub use coupled::Flow;
pub use events::{LossSample, LostPacket, MarkSample, Sample, Sending, SpuriousSample};
pub use factory::{Congestion, ControllerFactory};

use std::time::Duration;

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
    Some(Bandwidth::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX).max(1)))
}
