//! HTTP datagrams (RFC 9297): each belongs to a request, whose stream's ID it begins with.

use crate::Code;
use bytes::Bytes;
use hvq::transport::datagram::DatagramError;
use hvq::transport::wire::varint;
use hvq::{ConnectionError, Priority, SendDatagramError, StreamId};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Datagrams of one request that wait to be taken; more are dropped, as datagrams may be.
const WAITING: usize = 256;
/// Bytes of them that the connection's account of memory is told at a time.
const STEP: usize = 16 << 10;
/// The largest quarter stream ID (RFC 9297 §2.1).
const LARGEST: u64 = (1 << 60) - 1;

/// The HTTP datagrams of a connection. [`run`](Datagrams::run) hands them to those who asked for them. Those that wait to be taken
/// are charged to the connection's account of memory.
#[derive(Debug)]
pub struct Datagrams {
    connection: hvq::Connection,
    queues: Mutex<Queues>,
    unread: Arc<AtomicU64>,
}

/// The datagrams that wait to be taken.
#[derive(Debug, Default)]
struct Queues {
    /// By quarter stream ID.
    flows: HashMap<u64, Sender<Bytes>>,
    /// Bytes in all of them.
    bytes: Charge,
    /// Datagrams of requests that nobody asked for yet, the oldest first.
    early: VecDeque<(u64, Bytes)>,
    /// The number of them that is kept.
    most_early: usize,
}

/// Bytes that are held, of which the connection's account of memory is told in steps.
#[derive(Clone, Copy, Debug, Default)]
struct Charge {
    held: usize,
    /// The part of them that the account was told of.
    charged: usize,
}

impl Charge {
    /// Returns the bytes that have to be charged before `bytes` more are held.
    fn before(self, bytes: usize) -> usize {
        let uncharged = (self.held + bytes).saturating_sub(self.charged);
        if uncharged >= STEP { uncharged } else { 0 }
    }

    /// Holds `bytes` more, for which `charged` were charged.
    fn add(&mut self, bytes: usize, charged: usize) {
        self.held += bytes;
        self.charged += charged;
    }

    /// Holds `bytes` fewer. Returns those that are to be discharged: all that is spare, once that is two steps or nothing is left.
    fn remove(&mut self, bytes: usize) -> usize {
        self.held -= bytes;
        let spare = self.charged.saturating_sub(self.held);
        let given_back = if spare >= 2 * STEP || self.held == 0 { spare } else { 0 };
        self.charged -= given_back;
        given_back
    }
}

impl Queues {
    /// Makes room for `bytes` more; false if there is no memory for them.
    fn grow(&mut self, bytes: usize, connection: &hvq::Connection) -> bool {
        let more = self.bytes.before(bytes);
        let is_granted = more == 0 || connection.charge_memory(more);
        if is_granted {
            self.bytes.add(bytes, more);
        }
        is_granted
    }

    /// Keeps a datagram until somebody asks for it; of more than may be, the oldest is dropped.
    fn keep_early(&mut self, quarter: u64, payload: Bytes, connection: &hvq::Connection) {
        if self.most_early == 0 {
            return;
        }
        if self.early.len() >= self.most_early
            && let Some((_, oldest)) = self.early.pop_front()
        {
            self.shrink(oldest.len(), connection);
        }
        if self.grow(payload.len(), connection) {
            self.early.push_back((quarter, payload));
        }
    }

    /// There are `bytes` fewer.
    fn shrink(&mut self, bytes: usize, connection: &hvq::Connection) {
        let spare = self.bytes.remove(bytes);
        if spare > 0 {
            connection.discharge_memory(spare);
        }
    }
}

/// The datagrams of one request. Dropping it ends them.
#[derive(Debug)]
pub struct Flow {
    datagrams: Arc<Datagrams>,
    quarter: u64,
    receiver: Receiver<Bytes>,
}

/// The outcome of sending a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is on its way, which may lead nowhere.
    Sent,
    /// It is larger than what the connection carries, or the peer takes none.
    Dropped,
}

impl Datagrams {
    /// Makes the datagrams of `connection`. Both ends have to say in their SETTINGS that they take them (RFC 9297
    /// §2.1.1), which [`Settings`](crate::Settings) and the builders of `h3` are for.
    pub fn new(connection: hvq::Connection) -> Arc<Self> {
        Self::counting(connection, Arc::default())
    }

    /// Makes the datagrams of `connection` like [`Datagrams::new`], and counts in `unread`, which connections may
    /// share, what arrives and is dropped.
    pub fn counting(connection: hvq::Connection, unread: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self { connection, queues: Mutex::default(), unread })
    }

    /// Makes the datagrams of `connection` like [`Datagrams::new`], and keeps up to `most` of requests that nobody asked for yet.
    pub(crate) fn keeping_early(connection: hvq::Connection, most: usize) -> Arc<Self> {
        let queues = Queues { most_early: most, ..Queues::default() };
        Arc::new(Self { connection, queues: Mutex::new(queues), unread: Arc::default() })
    }

    /// Hands datagrams to their requests until the connection ends. Those of requests that nobody asked for are dropped; one
    /// that belongs to no possible request ends the connection with H3_DATAGRAM_ERROR (RFC 9297 §2.1).
    pub async fn run(&self) {
        while let Ok(datagram) = self.connection.read_datagram().await {
            let Some((quarter, length)) = varint::get(&datagram).filter(|(quarter, _)| *quarter <= LARGEST)
            else {
                self.connection.close(Code::H3_DATAGRAM_ERROR.value(), b"a datagram of no request");
                return;
            };
            self.hand_on(quarter, datagram.slice(length..));
        }
    }

    /// Puts a datagram into the queue of its request, if there is one. Datagrams may be lost, and are if nobody takes them.
    fn hand_on(&self, quarter: u64, payload: Bytes) {
        let mut queues = self.lock();
        let Some(flow) = queues.flows.get(&quarter).cloned() else {
            return queues.keep_early(quarter, payload, &self.connection);
        };
        let bytes = payload.len();
        let is_queued = flow.try_reserve().is_ok_and(|place| {
            let fits = queues.grow(bytes, &self.connection);
            if fits {
                place.send(payload);
            }
            fits
        });
        if !is_queued {
            self.unread.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Datagrams that arrived for requests whose queue was full, or for which there was no memory, and were dropped.
    pub fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }

    /// The datagrams of the request on stream `id`; `None` if somebody has them already. Those who carry packets have
    /// use for large ones, so that paths are probed for them at once.
    pub fn flow(self: &Arc<Self>, id: StreamId) -> Option<Flow> {
        self.connection.expect_datagrams(usize::MAX);
        let quarter = id.0 / 4;
        let queues = &mut *self.lock();
        match queues.flows.entry(quarter) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                let (sender, receiver) = channel(WAITING);
                for (of, payload) in std::mem::take(&mut queues.early) {
                    match of == quarter {
                        // There is room for more than are kept.
                        true => drop(sender.try_send(payload)),
                        false => queues.early.push_back((of, payload)),
                    }
                }
                vacant.insert(sender);
                Some(Flow { datagrams: self.clone(), quarter, receiver })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flow {
    /// The next datagram, without the ID. Pending for ever once the connection has ended: the request's stream tells of that.
    pub async fn receive(&mut self) -> Bytes {
        match self.receiver.recv().await {
            Some(payload) => {
                self.datagrams.lock().shrink(payload.len(), &self.datagrams.connection);
                payload
            }
            None => std::future::pending().await,
        }
    }

    /// Sends a datagram of `priority` that consists of `parts`.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&self, parts: &[&[u8]], priority: Priority) -> Result<Outcome, ConnectionError> {
        self.datagrams.send(self.quarter, parts, priority)
    }
}

impl Datagrams {
    /// Sends a datagram of the request with this `quarter` stream ID.
    pub(crate) fn send(
        &self,
        quarter: u64,
        parts: &[&[u8]],
        priority: Priority,
    ) -> Result<Outcome, ConnectionError> {
        let mut datagram = Vec::with_capacity(8 + parts.iter().map(|part| part.len()).sum::<usize>());
        varint::put(&mut datagram, quarter);
        parts.iter().for_each(|part| datagram.extend_from_slice(part));
        match self.connection.send_datagram_with(datagram.into(), priority, None) {
            Ok(()) => Ok(Outcome::Sent),
            Err(SendDatagramError::Refused(DatagramError::Unsupported | DatagramError::TooLarge { .. })) => {
                Ok(Outcome::Dropped)
            }
            Err(SendDatagramError::ConnectionLost(lost)) => Err(lost),
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        let mut queues = self.datagrams.lock();
        queues.flows.remove(&self.quarter);
        self.receiver.close();
        let mut left = 0;
        while let Ok(payload) = self.receiver.try_recv() {
            left += payload.len();
        }
        queues.shrink(left, &self.datagrams.connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_account_hears_of_bytes_in_steps_and_gets_all_back() {
        let mut charge = Charge::default();
        assert_eq!(charge.before(STEP - 1), 0, "less than a step");
        charge.add(STEP - 1, 0);
        assert_eq!(charge.before(1), STEP);
        charge.add(1, STEP);
        assert_eq!(charge.before(2 * STEP), 2 * STEP);
        charge.add(2 * STEP, 2 * STEP);
        assert_eq!(charge.remove(2 * STEP - 1), 0, "less than two steps are spare");
        assert_eq!(charge.remove(1), 2 * STEP);
        assert_eq!(charge.remove(STEP), STEP, "nothing is left");
        charge.add(1, 0);
        assert_eq!(charge.remove(1), 0, "it was never charged");
    }

    proptest! {
        #[test]
        fn less_than_a_step_is_held_uncharged_and_less_than_two_are_charged_in_vain(
            sizes in proptest::collection::vec(1usize..3 * STEP, 0..60),
            order: u64,
        ) {
            let (mut charge, mut held, mut account) = (Charge::default(), VecDeque::new(), 0usize);
            for (index, bytes) in sizes.into_iter().enumerate() {
                let more = charge.before(bytes);
                charge.add(bytes, more);
                account += more;
                held.push_back(bytes);
                let leaves = if order >> (index % 64) & 1 == 0 { held.pop_front() } else { None };
                account -= leaves.map_or(0, |bytes| charge.remove(bytes));
                let total: usize = held.iter().sum();
                prop_assert!(total < account + STEP && account < total + 2 * STEP, "{total} {account}");
            }
            account -= held.into_iter().map(|bytes| charge.remove(bytes)).sum::<usize>();
            prop_assert_eq!(account, 0);
        }
    }
}
