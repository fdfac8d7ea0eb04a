//! The medium of a wire: one channel, or two that a steerer below the transport makes look like one.

use crate::world::wire::Packet;
use hvq_emulation::steer::{Flow, Sent, Steered};
use hvq_emulation::{Channel, Departure, Direction, Link};
use std::net::SocketAddr;
use std::time::Duration;

/// One channel, or two steered ones.
#[derive(Debug)]
pub enum Medium {
    /// A channel of the model.
    Plain(Box<Channel<Packet>>),
    /// Two channels below one path.
    Steered(Box<Steered<Packet>>),
}

impl Medium {
    pub(super) fn enqueue(&mut self, direction: Direction, at: Duration, packet: Packet, size: usize) {
        match self {
            Self::Plain(channel) => channel.enqueue(direction, at, packet, size),
            Self::Steered(steered) => {
                let flow = flow(packet.server);
                steered.enqueue(direction, at, Sent { flow, packet, size })
            }
        };
    }

    pub(super) fn dequeue(&mut self, at: Duration) -> Option<(Direction, Departure<Packet>)> {
        match self {
            Self::Plain(channel) => channel.dequeue(at),
            Self::Steered(steered) => steered.dequeue(at),
        }
    }

    /// The device was in use at `at`, for this or for another channel: it stays awake for what comes down.
    pub(super) fn keep_awake(&mut self, at: Duration) {
        match self {
            Self::Plain(channel) => channel.link_mut(Direction::Down).keep_awake(at),
            Self::Steered(steered) => steered.keep_awake(at),
        }
    }

    /// Returns the time at which the next packet leaves, either way.
    pub fn next_deadline(&self) -> Option<Duration> {
        match self {
            Self::Plain(channel) => channel.next_deadline(),
            Self::Steered(steered) => steered.next_deadline(),
        }
    }

    /// Lets nothing through, either way, from `now` on and until `until`.
    pub fn cut(&mut self, now: Duration, until: Duration) {
        match self {
            Self::Plain(channel) => channel.cut(now, until),
            Self::Steered(steered) => steered.cut(now, until),
        }
    }

    /// Ends what [`Medium::cut`] began.
    pub fn restore(&mut self, now: Duration) {
        match self {
            Self::Plain(channel) => channel.restore(now),
            Self::Steered(steered) => steered.restore(now),
        }
    }

    /// The link of one direction of a plain medium.
    ///
    /// # Panics
    ///
    /// The medium is steered, and has two: see [`Steered::statistics`].
    pub fn link(&self, direction: Direction) -> &Link<Packet> {
        self.plain().expect("a steered medium has two links in each direction").link(direction)
    }

    /// The channel of a plain medium.
    pub fn plain(&self) -> Option<&Channel<Packet>> {
        match self {
            Self::Plain(channel) => Some(channel),
            Self::Steered(_) => None,
        }
    }

    /// The steered pair.
    pub fn steered(&self) -> Option<&Steered<Packet>> {
        match self {
            Self::Plain(_) => None,
            Self::Steered(steered) => Some(steered),
        }
    }
}

/// The flow to a server: there is one, by the server's IP address.
pub fn flow(server: SocketAddr) -> Flow {
    match server {
        SocketAddr::V4(address) => Flow(u32::from(*address.ip()).into()),
        SocketAddr::V6(address) => Flow(u128::from(*address.ip()) as u64),
    }
}
