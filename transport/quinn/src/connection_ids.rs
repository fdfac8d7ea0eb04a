//! Connection IDs, and who makes those of an endpoint.

use hvq::balancing::ConnectionIds;
use hvq::transport::wire::connection_id::ConnectionId as Id;
use rand::RngCore;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A connection ID (RFC 9000 §5.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ConnectionId(Id);

impl ConnectionId {
    /// The connection ID of these bytes.
    ///
    /// # Panics
    /// There are more than 20.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Id::new(bytes).expect("a connection ID has at most 20 bytes"))
    }
}

impl Deref for ConnectionId {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Makes the connection IDs of an endpoint.
pub trait ConnectionIdGenerator: Send + Sync {
    /// A connection ID that differs from those that it made before, of [`Self::cid_len`] bytes. Strangers see it.
    fn generate_cid(&mut self) -> ConnectionId;

    /// Bytes of every connection ID that it makes: 0, or 4 to 20.
    fn cid_len(&self) -> usize;

    /// The time after which connection IDs are replaced, which hvq does at a pace of its own.
    fn cid_lifetime(&self) -> Option<Duration>;
}

/// Connection IDs that are drawn by chance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomConnectionIdGenerator {
    length: usize,
}

impl RandomConnectionIdGenerator {
    /// Connection IDs of `length` bytes, at most 20. Without any, an endpoint has one connection at a time.
    pub fn new(length: usize) -> Self {
        Self { length: length.min(20) }
    }
}

impl Default for RandomConnectionIdGenerator {
    /// Connection IDs of 8 bytes.
    fn default() -> Self {
        Self::new(8)
    }
}

impl ConnectionIdGenerator for RandomConnectionIdGenerator {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId(Id::random(&mut rand::rng(), self.length))
    }

    fn cid_len(&self) -> usize {
        self.length
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A generator of the program as hvq asks it.
pub(crate) struct GeneratedIds {
    generator: Mutex<Box<dyn ConnectionIdGenerator>>,
    length: usize,
}

impl GeneratedIds {
    /// The generator that hvq asks for connection IDs; `None` if they have no bytes.
    pub(crate) fn of(generator: Box<dyn ConnectionIdGenerator>) -> Option<Arc<dyn ConnectionIds>> {
        let length = generator.cid_len();
        (length > 0).then(|| Arc::new(Self { generator: Mutex::new(generator), length }) as Arc<_>)
    }
}

impl ConnectionIds for GeneratedIds {
    fn length(&self) -> usize {
        self.length
    }

    fn generate(&self, mut rng: &mut dyn RngCore) -> Id {
        let mut generator = self.generator.lock().unwrap_or_else(PoisonError::into_inner);
        let ConnectionId(id) = generator.generate_cid();
        // Of another length, packets to it would not be found to be for anybody.
        if id.len() == self.length { id } else { Id::random(&mut rng, self.length) }
    }
}

impl fmt::Debug for GeneratedIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GeneratedIds").field("length", &self.length).finish_non_exhaustive()
    }
}
