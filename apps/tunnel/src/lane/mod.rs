//! The TCP lane: TCP flows end at the two ends of the tunnel, and each rides a stream of its own.
//!
//! ```text
//!   program ── TCP ──▶ Endpoint ── CONNECT stream, over all paths ──▶ server ── TCP ──▶ host
//! ```
//!
//! A flow in packets is steered by the congestion controller of its sender, which takes packets that overtake each other on
//! unlike paths for losses. On a stream the transport puts them in order, and adds the paths up.
//!
//! The stack behind the device is [smoltcp](https://docs.rs/smoltcp), one for each flow: it answers a SYN only when it is
//! handed one, so that a program is refused where the host refuses; its buffers are fixed; and no rule of a firewall and no
//! address of this machine is needed. A kernel behind TPROXY accepts before the host is reached.

mod endpoint;
mod flow;
mod request;
#[cfg(test)]
mod tests;
mod tuple;

use crate::prefix::Prefix;
use endpoint::BUFFER;
pub(crate) use endpoint::{Offload, Outgoing};
use flow::Waiting;
pub(crate) use flow::{Outcome, Output};
use hvq_emulation::tun::packet::Header;
pub(crate) use request::Requests;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tuple::Tuple;

/// Flows at a time; further ones go as packets. Each holds 256 KiB of bytes that wait in either direction, and at most [`QUEUE`]
/// segments of [`ROOM`] bytes together.
pub(crate) const MOST_FLOWS: usize = 256;
/// Segments of a flow that wait; TCP repeats those for which there is no room.
const QUEUE: usize = 128;
/// The bytes of these segments: what a window has room for, as often as it may be repeated, and headers.
const ROOM: usize = 2 * BUFFER;
/// Flows that are remembered to go as packets.
const MOST_UNPLACED: usize = 4096;

/// The use of streams for TCP flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TcpLane {
    /// TCP flows ride streams, if the server takes them.
    #[default]
    On,
    /// All packets are carried as they are.
    Off,
}

/// The segments of a flow that wait.
struct Queue {
    segments: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
}

impl Queue {
    /// Takes a segment, unless there is no room for it.
    fn push(&self, tuple: Tuple, packet: &[u8]) {
        let size = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        let waiting = self.room.clone().try_acquire_many_owned(size);
        let Ok(waiting) = waiting.map(|room| Waiting { packet: packet.to_vec(), _room: room }) else {
            return tracing::trace!(?tuple, "a segment is dropped");
        };
        if let Err(mpsc::error::TrySendError::Full(_)) = self.segments.try_send(waiting) {
            tracing::trace!(?tuple, "a segment is dropped");
        }
    }
}

/// The flows of one tunnel.
pub(crate) struct Lane {
    /// The addresses of this tunnel, which packets of its programs come from.
    addresses: Vec<Prefix>,
    requests: Arc<Requests>,
    output: Output,
    flows: HashMap<Tuple, Queue>,
    unplaced: HashSet<Tuple>,
    tasks: JoinSet<(Tuple, Outcome)>,
}

impl Lane {
    /// Flows from `addresses`, whose streams `requests` asks for; packets for programs go to `output`.
    pub(crate) fn new(addresses: Vec<Prefix>, requests: Requests, output: Output) -> Self {
        Self {
            addresses,
            requests: Arc::new(requests),
            output,
            flows: HashMap::new(),
            unplaced: HashSet::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Takes `packet` if it belongs to a flow that rides a stream, or opens one; returns false if it is to go as a packet. Its
    /// checksum is right, and it may be longer than a packet of the device.
    pub(crate) fn take(&mut self, packet: &[u8], header: &Header) -> bool {
        let Some((tuple, flags)) = Tuple::of(header) else { return false };
        if let Some(segments) = self.flows.get(&tuple) {
            segments.push(tuple, packet);
            return true;
        }
        if !flags.opens() || flags.acknowledges() || !self.has_room(tuple) {
            return false;
        }
        let (sender, segments) = mpsc::channel(QUEUE);
        self.flows.insert(tuple, Queue { segments: sender, room: Arc::new(Semaphore::new(ROOM)) });
        let (requests, output, syn) = (self.requests.clone(), self.output.clone(), packet.to_vec());
        self.tasks.spawn(async move { (tuple, flow::run(tuple, syn, segments, requests, output).await) });
        true
    }

    /// Returns true if a flow may ride a stream: it comes from an address of this tunnel, and there are not too many.
    fn has_room(&self, tuple: Tuple) -> bool {
        let own = |address: IpAddr| self.addresses.iter().any(|prefix| prefix.contains(address));
        own(tuple.source.ip()) && self.flows.len() < MOST_FLOWS && !self.unplaced.contains(&tuple)
    }

    /// Waits for the end of a flow; returns its SYN if that is to go as a packet. Without end if there is no flow. Cancel-safe.
    pub(crate) async fn ended(&mut self) -> Option<Vec<u8>> {
        let Some(joined) = self.tasks.join_next().await else { return std::future::pending().await };
        let Ok((tuple, outcome)) = joined else {
            // A flow that panicked: its channel is closed, too.
            self.flows.retain(|_, queue| !queue.segments.is_closed());
            return None;
        };
        self.flows.remove(&tuple);
        match outcome {
            Outcome::Over => None,
            Outcome::Unplaced(syn) => {
                if self.unplaced.len() >= MOST_UNPLACED {
                    self.unplaced.clear();
                }
                self.unplaced.insert(tuple);
                Some(syn)
            }
        }
    }

    /// The number of flows.
    #[cfg(test)]
    pub(crate) fn flows(&self) -> usize {
        self.flows.len()
    }
}
