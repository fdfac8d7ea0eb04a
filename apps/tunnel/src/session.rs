//! The packets and capsules that arrive through a tunnel.

use crate::capsule::{Capsule, CapsuleError, Capsules};
use crate::order::Order;
use bytes::Bytes;
use hvq::ConnectionError;
use hvq_h3::Flow;
use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// The interval at which the delays of paths are looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Paths differ by this much more than their round-trip times say: queues come and go.
const SLACK: Duration = Duration::from_millis(5);
/// Nothing is held for longer (NSDI 2023, §3.6).
const LONGEST_PATIENCE: Duration = Duration::from_millis(100);
/// Packets that are handed on together.
const BATCH: usize = 64;
/// No timer is due.
const NEVER: Duration = Duration::from_secs(3600);

/// Something that arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Arrived {
    /// Packets, in order.
    Packets(Vec<Bytes>),
    /// A capsule of the other end about addresses and routes.
    Capsule(Capsule),
}

/// The reason for which nothing more arrives.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The connection ended.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The other end sent nonsense.
    #[error(transparent)]
    Capsule(#[from] CapsuleError),
    /// The other end closed the tunnel.
    #[error("the other end closed the tunnel")]
    Closed,
}

/// Receives datagrams and capsules.
#[derive(Debug)]
pub(crate) struct Inbound {
    connection: hvq::Connection,
    datagrams: Flow,
    /// Pieces of the request's stream.
    pieces: mpsc::Receiver<Bytes>,
    capsules: Capsules,
    ready: VecDeque<Arrived>,
    order: Order,
    start: Instant,
    looked: Option<Instant>,
}

impl Inbound {
    pub(crate) fn new(connection: hvq::Connection, datagrams: Flow, pieces: mpsc::Receiver<Bytes>) -> Self {
        Self {
            connection,
            datagrams,
            pieces,
            capsules: Capsules::default(),
            ready: VecDeque::new(),
            order: Order::default(),
            start: Instant::now(),
            looked: None,
        }
    }

    /// Waits for the next arrival. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Arrived, Ended> {
        loop {
            if let Some(arrived) = self.ready.pop_front() {
                return Ok(arrived);
            }
            self.look();
            let now = self.start.elapsed();
            let left = self.order.deadline().map_or(NEVER, |at| at.saturating_sub(now));
            let packets = tokio::select! {
                payload = self.datagrams.receive() => self.arrive(payload),
                piece = self.pieces.recv() => {
                    self.read(&piece.ok_or_else(|| self.end())?)?;
                    Vec::new()
                }
                () = sleep(left) => self.order.give_up(self.start.elapsed()),
            };
            if !packets.is_empty() {
                return Ok(Arrived::Packets(packets));
            }
        }
    }

    /// Packets that `payload` and further ones that are there already bring.
    fn arrive(&mut self, payload: Bytes) -> Vec<Bytes> {
        let now = self.start.elapsed();
        let mut packets = self.order.arrive(payload, now);
        let mut context = Context::from_waker(Waker::noop());
        while packets.len() < BATCH
            && let Poll::Ready(payload) = pin!(self.datagrams.receive()).poll(&mut context)
        {
            packets.extend(self.order.arrive(payload, now));
        }
        packets
    }

    /// Returns the reason for which the stream ended.
    fn end(&self) -> Ended {
        self.connection.close_reason().map_or(Ended::Closed, Ended::Connection)
    }

    fn read(&mut self, piece: &[u8]) -> Result<(), CapsuleError> {
        self.capsules.push(piece);
        while let Some(capsule) = self.capsules.next_capsule()? {
            let arrived = match capsule {
                Capsule::Datagram(payload) => {
                    Arrived::Packets(self.order.arrive(payload, self.start.elapsed()))
                }
                other => Arrived::Capsule(other),
            };
            self.ready.push_back(arrived);
        }
        Ok(())
    }

    /// Looks by how much the paths differ, now and then: packets wait for no longer.
    fn look(&mut self) {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        let paths = self.connection.paths();
        let trips = paths.iter().map(|path| path.stats.rtt);
        let patience = match (trips.clone().min(), trips.max()) {
            (Some(least), Some(most)) if paths.len() > 1 => (most - least) / 2 + SLACK,
            _ => Duration::ZERO,
        };
        self.order.set_patience(patience.min(LONGEST_PATIENCE));
    }
}
