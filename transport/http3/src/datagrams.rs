//! HTTP datagrams (RFC 9297): each belongs to a request, whose stream's ID it begins with.

use bytes::Bytes;
use h3::error::Code;
use h3::quic::StreamId;
use hvq::transport::datagram::DatagramError;
use hvq::transport::wire::varint;
use hvq::{ConnectionError, Priority, SendDatagramError};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Datagrams of one request that wait to be taken; more are dropped, as datagrams may be.
const WAITING: usize = 256;
/// The largest quarter stream ID (RFC 9297 §2.1).
const LARGEST: u64 = (1 << 60) - 1;

/// The HTTP datagrams of a connection. [`run`](Datagrams::run) hands them to those who asked for them.
#[derive(Debug)]
pub struct Datagrams {
    connection: hvq::Connection,
    /// By quarter stream ID.
    flows: Mutex<HashMap<u64, Sender<Bytes>>>,
    unread: AtomicU64,
}

/// The datagrams of one request. Dropping it ends them.
#[derive(Debug)]
pub struct Flow {
    datagrams: Arc<Datagrams>,
    quarter: u64,
    receiver: Receiver<Bytes>,
}

/// What became of a datagram that was to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is on its way, which may lead nowhere.
    Sent,
    /// It is larger than what the connection carries, or the peer takes none.
    Dropped,
}

impl Datagrams {
    /// Those of `connection`. Both ends have to say in their SETTINGS that they take them (RFC 9297 §2.1.1), which is the
    /// business of the builders of `h3`.
    pub fn new(connection: hvq::Connection) -> Arc<Self> {
        Arc::new(Self { connection, flows: Mutex::default(), unread: AtomicU64::new(0) })
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
            if let Some(flow) = self.lock().get(&quarter) {
                // Datagrams may be lost, and are if nobody takes them.
                if flow.try_send(datagram.slice(length..)).is_err() {
                    self.unread.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    /// Datagrams that arrived for requests whose queue was full, and were dropped.
    pub fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }

    /// The datagrams of the request on stream `id`; `None` if somebody has them already. Whoever carries packets has use for
    /// large ones, so that paths are probed for them at once.
    pub fn flow(self: &Arc<Self>, id: StreamId) -> Option<Flow> {
        self.connection.expect_datagrams(usize::MAX);
        let quarter = id.into_inner() / 4;
        match self.lock().entry(quarter) {
            Entry::Occupied(_) => None,
            Entry::Vacant(vacant) => {
                let (sender, receiver) = channel(WAITING);
                vacant.insert(sender);
                Some(Flow { datagrams: self.clone(), quarter, receiver })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Sender<Bytes>>> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flow {
    /// The next datagram, without the ID. Pending for ever once the connection has ended: the request's stream tells of that.
    pub async fn receive(&mut self) -> Bytes {
        match self.receiver.recv().await {
            Some(payload) => payload,
            None => std::future::pending().await,
        }
    }

    /// Sends a datagram of `priority` that consists of `parts`.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn send(&self, parts: &[&[u8]], priority: Priority) -> Result<Outcome, ConnectionError> {
        let mut datagram = Vec::with_capacity(8 + parts.iter().map(|part| part.len()).sum::<usize>());
        varint::put(&mut datagram, self.quarter);
        parts.iter().for_each(|part| datagram.extend_from_slice(part));
        match self.datagrams.connection.send_datagram_with(datagram.into(), priority, None) {
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
        self.datagrams.lock().remove(&self.quarter);
    }
}
