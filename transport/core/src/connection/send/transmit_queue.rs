//! The transmit queue: datagrams that one system call can send are put together.

use crate::connection::Transmit;
use crate::connection::send::buffer_pool::BufferPool;
use crate::connection::send::packet_builder::LARGEST_BATCH;
use crate::stream::short_queue::ShortQueue;

/// Datagrams that are copied to join others at most: a call costs as much as copying some.
const MOST_COPIED: usize = 4;

/// Datagrams that wait for the network, and memory for more: the endpoint's own, which it lends while it polls.
#[derive(Debug, Default)]
pub(in crate::connection) struct TransmitQueue {
    waiting: ShortQueue<Transmit>,
    pool: BufferPool,
}

impl TransmitQueue {
    /// Appends `transmit` by itself.
    pub fn push(&mut self, transmit: Transmit) {
        self.waiting.push_back(transmit);
    }

    /// Appends `transmit`, with the datagrams before it if they are alike: a flight of the handshake is one batch, of at
    /// most `most` datagrams. Datagrams larger than `largest` are probes that may be refused, and stay alone.
    pub fn join(&mut self, transmit: Transmit, largest: usize, most: usize) {
        match self.waiting.back_mut() {
            Some(last) if last.size() <= largest && last.takes(&transmit, most) => {
                last.segment = Some(last.size());
                last.bytes.extend_from_slice(&transmit.bytes);
                self.pool.put(transmit.bytes);
            }
            _ => self.waiting.push_back(transmit),
        }
    }

    /// Takes the first batch.
    pub fn pop(&mut self) -> Option<Transmit> {
        self.waiting.pop_front()
    }

    /// The number of batches that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns true if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Drops what waits: the connection ends.
    pub fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Frees the room for more than usual.
    pub fn shrink_to_fit(&mut self) {
        self.waiting.shrink_to_fit();
    }

    /// The memory for datagrams and for records of what was sent.
    pub fn pool(&mut self) -> &mut BufferPool {
        &mut self.pool
    }

    /// Lends or gives back that memory.
    pub fn exchange_pool(&mut self, pool: &mut BufferPool) {
        std::mem::swap(&mut self.pool, pool);
    }
}

impl Transmit {
    /// The size of its datagrams but the last.
    fn size(&self) -> usize {
        self.segment.unwrap_or(self.bytes.len())
    }

    /// Returns true if the datagrams of `other` may follow in a batch of at most `most`: only the last may be smaller
    /// than the first.
    fn takes(&self, other: &Self, most: usize) -> bool {
        let size = self.size();
        let alike = (self.local, self.remote, self.ecn, self.dscp)
            == (other.local, other.remote, other.ecn, other.dscp);
        let whole = size > 0 && self.bytes.len().is_multiple_of(size);
        let fits = other.segment.map_or(other.bytes.len() <= size, |segment| segment == size);
        let bytes = self.bytes.len() + other.bytes.len();
        let few = other.bytes.len() <= MOST_COPIED * size;
        alike && whole && fits && few && bytes.div_ceil(size) <= most && bytes <= LARGEST_BATCH
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Dscp, Ecn};

    fn transmit(length: usize, segment: Option<usize>) -> Transmit {
        let address = ([192, 0, 2, 1], 443).into();
        let (ecn, dscp) = (Ecn::Ect0, Dscp::default());
        Transmit { local: address, remote: address, ecn, dscp, bytes: vec![0; length], segment }
    }

    #[test]
    fn datagrams_follow_those_of_their_size_and_a_smaller_one_is_the_last() {
        let first = transmit(1200, None);
        assert!(first.takes(&transmit(1200, None), 2) && first.takes(&transmit(200, None), 2));
        assert!(!first.takes(&transmit(1201, None), 2));
        assert!(first.takes(&transmit(2500, Some(1200)), 4) && !first.takes(&transmit(2500, Some(1200)), 3));
        assert!(!first.takes(&transmit(2000, Some(1000)), 4) && !first.takes(&transmit(1000, Some(500)), 4));
        let ended = transmit(1400, Some(1200));
        assert!(!ended.takes(&transmit(200, None), 4));
        let batch = transmit(2400, Some(1200));
        assert!(batch.takes(&transmit(1200, None), 3) && !batch.takes(&transmit(1200, None), 2));
        let large = transmit(54 * 1200, Some(1200));
        assert!(!large.takes(&transmit(1200, None), 64));
        assert!(!transmit(0, None).takes(&transmit(0, None), 4));
    }

    #[test]
    fn only_datagrams_of_one_way_and_mark_share_a_batch() {
        let first = transmit(1200, None);
        let other = ([192, 0, 2, 2], 443).into();
        assert!(!first.takes(&Transmit { remote: other, ..transmit(100, None) }, 4));
        assert!(!first.takes(&Transmit { local: other, ..transmit(100, None) }, 4));
        assert!(!first.takes(&Transmit { ecn: Ecn::NotEct, ..transmit(100, None) }, 4));
    }
}
