//! Memory that the connections of an endpoint use in turn, of datagrams that were sent and of what was recorded of them: in
//! the steady state none comes from the system, and connections that are idle have none.

use crate::recovery::sent_packet::SentPacket;
use crate::space::sent::Records;

/// Batches whose memory is kept at most.
const MOST_BATCHES: usize = 32;
/// Single datagrams whose memory is kept at most: as many as wait for the network at a time.
const MOST_SINGLES: usize = 64;
/// From this many bytes on memory is for batches, and for datagrams that are as large; below it for single datagrams.
const BATCH: usize = 1 << 14;
/// Memory for less than the smallest datagram (RFC 9000 §14) is not worth keeping.
const LEAST: usize = 1200;
/// Paths whose records are kept at most: as many as acknowledgements settle in a round of a driver, all of whose connections may
/// send again at once.
const MOST_RECORDS: usize = 128;
/// Packets that kept memory has room for at most: 700 kB.
const MOST_PACKETS: usize = 1 << 12;
/// Packets that the kept memory of all paths has room for at most: 3 MB.
const MOST_PACKETS_TOGETHER: usize = 4 * MOST_PACKETS;

/// Memory that waits to be used again. An endpoint has it, and lends it to the connection that it polls or hands a datagram.
#[derive(Debug, Default)]
pub(crate) struct BufferPool(Option<Box<Buffers>>);

#[derive(Debug, Default)]
struct Buffers {
    batches: Vec<Vec<u8>>,
    singles: Vec<Vec<u8>>,
    records: Vec<Records>,
    /// Packets that `records` have room for.
    recorded: usize,
    acknowledged: Vec<SentPacket>,
}

impl BufferPool {
    fn buffers(&mut self) -> &mut Buffers {
        self.0.get_or_insert_default()
    }

    /// Keeps the memory of `bytes`, if it is of use and there is not enough yet.
    pub fn put(&mut self, bytes: Vec<u8>) {
        let (kind, most) = match bytes.capacity() {
            BATCH.. => (&mut self.buffers().batches, MOST_BATCHES),
            LEAST.. => (&mut self.buffers().singles, MOST_SINGLES),
            _ => return,
        };
        if kind.len() < most {
            kind.push(bytes);
        }
    }

    /// Memory for a batch of datagrams.
    pub fn take_batch(&mut self) -> Option<Vec<u8>> {
        self.0.as_mut()?.batches.pop()
    }

    /// Memory for one datagram of `size` bytes.
    pub fn take_single(&mut self, size: usize) -> Option<Vec<u8>> {
        let kept = self.0.as_mut()?;
        if size < BATCH { kept.singles.pop() } else { kept.batches.pop() }
    }

    /// Keeps the memory of a path that has nothing in flight any more.
    pub fn put_records(&mut self, records: Records) {
        let capacity = records.capacity();
        let kept = self.buffers();
        if kept.records.len() < MOST_RECORDS
            && capacity <= MOST_PACKETS
            && kept.recorded + capacity <= MOST_PACKETS_TOGETHER
        {
            kept.records.push(records);
            kept.recorded += capacity;
        }
    }

    /// Memory for the packets of a path.
    pub fn take_records(&mut self) -> Option<Records> {
        let kept = self.0.as_mut()?;
        let records = kept.records.pop()?;
        kept.recorded -= records.capacity();
        Some(records)
    }

    /// Keeps the memory of packets that were acknowledged, and drops them.
    pub fn put_acknowledged(&mut self, mut packets: Vec<SentPacket>) {
        packets.clear();
        let kept = &mut self.buffers().acknowledged;
        if (kept.capacity()..=MOST_PACKETS).contains(&packets.capacity()) {
            *kept = packets;
        }
    }

    /// Memory for packets that an acknowledgement settles; empty.
    pub fn take_acknowledged(&mut self) -> Vec<SentPacket> {
        self.0.as_mut().map(|kept| std::mem::take(&mut kept.acknowledged)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_by_its_size_and_within_bounds() {
        let mut pool = BufferPool::default();
        assert!(pool.take_single(1200).is_none() && pool.take_batch().is_none());
        pool.put(Vec::with_capacity(100));
        assert!(pool.take_single(1200).is_none() && pool.take_batch().is_none());
        for _ in 0..100 {
            pool.put(Vec::with_capacity(1400));
            pool.put(Vec::with_capacity(90_000));
        }
        let kept = (pool.buffers().singles.len(), pool.buffers().batches.len());
        assert_eq!(kept, (MOST_SINGLES, MOST_BATCHES));
        assert!(pool.take_single(1400).is_some_and(|bytes| bytes.capacity() < BATCH));
        assert!(pool.take_single(65_000).is_some_and(|bytes| bytes.capacity() >= BATCH));
        assert!(pool.take_batch().is_some_and(|bytes| bytes.capacity() >= BATCH));
    }

    #[test]
    fn records_of_a_crowd_are_kept_within_a_common_bound() {
        let mut pool = BufferPool::default();
        let taken = |pool: &mut BufferPool| std::iter::from_fn(|| pool.take_records()).count();
        for _ in 0..MOST_RECORDS * 2 {
            pool.put_records(Records::for_packets(16));
        }
        assert_eq!(taken(&mut pool), MOST_RECORDS);
        pool.put_records(Records::for_packets(MOST_PACKETS * 2));
        assert_eq!(taken(&mut pool), 0, "too large");
        for _ in 0..2 {
            for _ in 0..8 {
                pool.put_records(Records::for_packets(MOST_PACKETS));
            }
            assert_eq!(
                taken(&mut pool),
                MOST_PACKETS_TOGETHER / MOST_PACKETS,
                "what was taken counts no more"
            );
        }
    }

    #[test]
    fn the_larger_memory_for_acknowledged_packets_is_kept_unless_it_is_too_large() {
        let mut pool = BufferPool::default();
        for capacity in [100, 200, 50, MOST_PACKETS * 2] {
            pool.put_acknowledged(Vec::with_capacity(capacity));
        }
        let packets = pool.take_acknowledged();
        assert!((200..MOST_PACKETS).contains(&packets.capacity()));
        assert_eq!(pool.take_acknowledged().capacity(), 0);
    }
}
