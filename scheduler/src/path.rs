//! One path as a policy may know it.

use std::time::Duration;

use crate::{Bandwidth, PathId, PerMille};

/// A read-only snapshot of one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathView {
    /// The identifier of the path.
    pub id: PathId,
    /// The state of the path: it may and should be used, or not.
    pub state: PathState,
    /// Bytes that it may send now (congestion window, pacer, amplification limit); 0 means none now.
    pub send_allowance: usize,
    /// From now until room is expected again; zero if there is room.
    pub next_send: Duration,
    /// The congestion window in bytes.
    pub window: usize,
    /// Bytes in flight (RFC 9002 §2).
    pub in_flight: usize,
    /// One-way delay from sender to receiver, without queueing in front of the bottleneck; on the widest path with what was
    /// seen of it of late beyond `backlog`; only differences between paths need to be right.
    pub delay: Duration,
    /// Bottleneck rate: the channel's hint if given, as far as bursts do not refute it; else what bursts and deliveries show;
    /// else unknown.
    pub rate: Option<Bandwidth>,
    /// Bytes believed queued at that bottleneck, those placed and not yet sent included.
    pub backlog: usize,
    /// The part of `backlog`, in bytes, that other connections of this endpoint put there, where the endpoint owns the
    /// channel and sees all that is sent over it ([`Sharing::Endpoint`], at a client); `None` where others are only
    /// seen by the delay that they cause.
    pub others: Option<usize>,
    /// Round-trip time.
    pub rtt: Rtt,
    /// Share of packets lost of late.
    pub loss: PerMille,
    /// The largest UDP payload that the path carries (RFC 9000 §14.2).
    pub datagram_size: usize,
    /// The most bytes of a packet that are no frames: header, connection ID, packet number and AEAD tag (RFC 9000 §17.3.1).
    pub overhead: usize,
    /// Bytes of the IP and UDP headers that the network carries beside each packet.
    pub lower_headers: usize,
    /// The hints of the application or the modem about the channel.
    pub hints: Hints,
}

impl PathView {
    /// An available path of which nothing is known, without room, and with the smallest datagram size of RFC 9000 §14.
    pub const fn new(id: PathId) -> Self {
        Self {
            id,
            state: PathState::Available,
            send_allowance: 0,
            next_send: Duration::ZERO,
            window: 0,
            in_flight: 0,
            delay: Duration::ZERO,
            rate: None,
            backlog: 0,
            others: None,
            rtt: Rtt::ZERO,
            loss: PerMille::ZERO,
            datagram_size: 1200,
            overhead: 0,
            lower_headers: 0,
            hints: Hints::NONE,
        }
    }

    /// Returns true if the path may send now.
    pub const fn can_send(&self) -> bool {
        self.send_allowance > 0
    }
}

/// The state of a path: tells whether it may and should be used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum PathState {
    /// Validated, and the peer has not asked to spare it (PATH_STATUS_AVAILABLE, RFC 10069 §3.3).
    #[default]
    Available,
    /// Validated, and the peer asked to use it only when no available path is left (PATH_STATUS_BACKUP).
    Backup,
    /// Its validation is under way; what it may send (RFC 9000 §8.1) is already in its `send_allowance`.
    Unvalidated,
    /// It has not answered for a probe timeout.
    Silent,
}

/// The estimators of RFC 9002 §5; all zero before the first sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rtt {
    /// The latest sample.
    pub latest: Duration,
    /// The smoothed round-trip time.
    pub smoothed: Duration,
    /// The mean deviation.
    pub variance: Duration,
    /// The smallest sample.
    pub minimum: Duration,
}

impl Rtt {
    /// No sample yet.
    pub const ZERO: Self = Self {
        latest: Duration::ZERO,
        smoothed: Duration::ZERO,
        variance: Duration::ZERO,
        minimum: Duration::ZERO,
    };
}

/// The hints of the application or the modem about a channel; `None` stands for a value that is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hints {
    /// The rate it promises to what this end sends.
    pub rate: Option<Bandwidth>,
    /// The rate it promises in the other direction, to what the peer sends; `None` if nothing is known beyond `rate`. Policies
    /// have no use for it: it is there for the peer, who is told.
    pub rate_back: Option<Bandwidth>,
    /// The one-way delay it promises.
    pub delay: Option<Duration>,
    /// The loss to expect.
    pub loss: Option<PerMille>,
    /// The price of a byte, in any one unit: only comparisons between paths count.
    pub price_per_byte: Option<u64>,
    /// The sharing of the channel with other senders.
    pub shared: Sharing,
    /// The metering of the channel: tells whether its owner pays for what it carries.
    pub metering: Metering,
}

impl Hints {
    /// Nothing was said.
    pub const NONE: Self = Self {
        rate: None,
        rate_back: None,
        delay: None,
        loss: None,
        price_per_byte: None,
        shared: Sharing::Unknown,
        metering: Metering::Unknown,
    };

    /// Returns these hints, with each field of which they say nothing as in `others`.
    pub fn or(self, others: Self) -> Self {
        Self {
            rate: self.rate.or(others.rate),
            rate_back: self.rate_back.or(others.rate_back),
            delay: self.delay.or(others.delay),
            loss: self.loss.or(others.loss),
            price_per_byte: self.price_per_byte.or(others.price_per_byte),
            shared: if self.shared == Sharing::Unknown { others.shared } else { self.shared },
            metering: if self.metering == Metering::Unknown { others.metering } else { self.metering },
        }
    }

    /// Returns the rate promised to what the peer sends: one that is said of one direction only holds for both.
    pub fn rate_of_arrivals(&self) -> Option<Bandwidth> {
        self.rate_back.or(self.rate)
    }

    /// Returns the hints of the same channel as the other end sees it: the directions are exchanged.
    pub fn mirrored(self) -> Self {
        Self { rate: self.rate_back, rate_back: self.rate, ..self }
    }
}

/// The sharing of a channel: tells whether its rate is this connection's alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Sharing {
    /// Nobody said.
    #[default]
    Unknown,
    /// The rate is shared with other traffic.
    Shared,
    /// The rate is reserved for one endpoint, the client, and its connections share it: what a browser with a connection to
    /// each domain has of URLLC. The endpoint keeps an account of what they queue there, which each of them sees
    /// ([`PathView::others`]).
    Endpoint,
    /// The rate is reserved for this connection.
    Dedicated,
}

/// The metering of a channel: tells whether its owner pays for what it carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Metering {
    /// Nobody said.
    #[default]
    Unknown,
    /// Nobody counts the bytes.
    Unmetered,
    /// Bytes are paid for, or count against a volume.
    Metered,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Hints = Hints {
        rate: Some(Bandwidth::from_mbit(1)),
        rate_back: Some(Bandwidth::from_mbit(2)),
        delay: Some(Duration::from_millis(3)),
        loss: Some(PerMille::new(4)),
        price_per_byte: Some(5),
        shared: Sharing::Shared,
        metering: Metering::Metered,
    };

    #[test]
    fn what_is_said_wins_field_by_field_over_what_others_say() {
        let other = Hints {
            rate: Some(Bandwidth::from_mbit(9)),
            rate_back: Some(Bandwidth::from_mbit(9)),
            delay: Some(Duration::from_millis(9)),
            loss: Some(PerMille::new(9)),
            price_per_byte: Some(9),
            shared: Sharing::Dedicated,
            metering: Metering::Unmetered,
        };
        assert_eq!((ALL.or(other), Hints::NONE.or(other)), (ALL, other));
        let rate = Hints { rate: ALL.rate, ..Hints::NONE };
        assert_eq!(rate.or(other), Hints { rate: ALL.rate, ..other });
    }

    #[test]
    fn the_other_end_sees_the_directions_exchanged() {
        let mirrored = ALL.mirrored();
        assert_eq!((mirrored.rate, mirrored.rate_back), (ALL.rate_back, ALL.rate));
        assert_eq!(Hints { rate: ALL.rate, rate_back: ALL.rate_back, ..mirrored }, ALL);
        assert_eq!((ALL.mirrored().mirrored(), Hints::NONE.mirrored()), (ALL, Hints::NONE));
    }
}
