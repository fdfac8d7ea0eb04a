//! A pair of devices and what is between them.

use std::io;
use std::time::Duration;

use crate::steer::{Branch, Delivered, Sent, Steered};
use crate::{Admission, Channel, Departure, Direction, LinkStatistics};
use bytes::Bytes;

use crate::tun::device::TunDevice;
use crate::tun::namespace::Namespace;
use crate::tun::packet::{Flows, Header};

/// A packet inside the channels.
#[derive(Clone, Debug)]
pub struct QueuedPacket {
    pub(super) bytes: Bytes,
    pub(super) header: Option<Header>,
}

/// The network between two devices.
#[derive(Debug)]
pub enum Network {
    /// One channel, and its name.
    Single(Box<Channel<QueuedPacket>>, String),
    /// Two channels that look like one, called `embb` and `urllc`.
    Pair(Box<Steered<QueuedPacket>>),
}

impl Network {
    pub(super) fn enqueue(
        &mut self,
        direction: Direction,
        now: Duration,
        flows: &Flows,
        packet: QueuedPacket,
    ) -> Admission {
        let size = packet.bytes.len();
        match self {
            Self::Single(channel, _) => channel.enqueue(direction, now, packet, size),
            Self::Pair(steered) => {
                let flow = flows.of(packet.header.as_ref());
                steered.enqueue(direction, now, Sent { flow, packet, size })
            }
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        match self {
            Self::Single(channel, _) => channel.next_deadline(),
            Self::Pair(steered) => steered.next_deadline(),
        }
    }

    pub(super) fn deliver(&mut self, now: Duration) -> Option<Delivered<QueuedPacket>> {
        match self {
            Self::Single(channel, _) => {
                let (direction, departure): (Direction, Departure<QueuedPacket>) = channel.dequeue(now)?;
                let branch = Branch::HighBandwidth;
                Some(Delivered { direction, branch, departure, held: Duration::ZERO })
            }
            Self::Pair(steered) => steered.deliver(now),
        }
    }

    /// The name of the channel that the last packet of `direction` was given to.
    pub(super) fn last_name(&self, direction: Direction) -> &str {
        match self {
            Self::Single(_, name) => name,
            Self::Pair(steered) => self.name(steered.last_branch(direction).unwrap_or(Branch::HighBandwidth)),
        }
    }

    /// The name of the channel that packets of `branch` take.
    pub(super) fn name(&self, branch: Branch) -> &str {
        match (self, branch) {
            (Self::Single(_, name), _) => name,
            (Self::Pair(_), Branch::HighBandwidth) => "embb",
            (Self::Pair(_), Branch::LowLatency) => "urllc",
        }
    }

    /// Returns the statistics of each channel in `direction`.
    pub(super) fn statistics(&self, direction: Direction) -> Vec<(String, LinkStatistics)> {
        match self {
            Self::Single(channel, name) => {
                vec![(name.clone(), channel.link(direction).statistics().clone())]
            }
            Self::Pair(steered) => [Branch::HighBandwidth, Branch::LowLatency]
                .into_iter()
                .map(|branch| (self.name(branch).to_owned(), steered.statistics(branch, direction).clone()))
                .collect(),
        }
    }
}

/// A device in the near namespace, one in the far, and the network between them; up is from near to far.
#[derive(Debug)]
pub struct Crossing {
    pub(super) near: TunDevice,
    pub(super) far: TunDevice,
    pub(super) network: Network,
}

impl Crossing {
    /// Devices called `name` in both namespaces with `network` between them.
    ///
    /// # Errors
    /// Returns the errors of [`TunDevice::new`].
    pub fn new(near: &Namespace, far: &Namespace, name: &str, network: Network) -> io::Result<Self> {
        Ok(Self { near: TunDevice::new(near, name)?, far: TunDevice::new(far, name)?, network })
    }

    /// The device that packets of `direction` come from, or go to.
    pub(super) const fn source(&self, direction: Direction) -> &TunDevice {
        match direction {
            Direction::Up => &self.near,
            Direction::Down => &self.far,
        }
    }

    pub(super) const fn target(&self, direction: Direction) -> &TunDevice {
        match direction {
            Direction::Up => &self.far,
            Direction::Down => &self.near,
        }
    }
}
