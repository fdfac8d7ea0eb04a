//! The transmit queue: datagrams that one system call can send are put together.

use crate::connection::send::packet_builder::LARGEST_BATCH;
use crate::connection::{Connection, Transmit};

/// Datagrams that are copied to join others at most: a call costs as much as copying some.
const MOST_COPIED: usize = 4;

impl Connection {
    /// Queues `transmit`, with the datagrams before it if they are alike: a flight of the handshake is one batch. Datagrams
    /// larger than `largest` are probes that may be refused, and stay alone.
    pub(in crate::connection) fn queue(&mut self, transmit: Transmit, largest: usize) {
        let most = self.config.segments;
        match self.transmits.back_mut() {
            Some(last) if last.size() <= largest && last.takes(&transmit, most) => {
                last.segment = Some(last.size());
                last.bytes.extend_from_slice(&transmit.bytes);
                self.pool.put(transmit.bytes);
            }
            _ => self.transmits.push_back(transmit),
        }
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
