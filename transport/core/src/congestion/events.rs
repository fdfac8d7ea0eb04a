//! Events that a controller is told of.

use crate::recovery::interruption::Cause;
use crate::recovery::persistent::Persistence;
use crate::recovery::rate::{RateSample, RateSampler};
use crate::recovery::sent_packet::SentPacket;
use crate::time::Instant;
use crate::{Bandwidth, PathId};
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
