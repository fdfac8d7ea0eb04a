//! Memory into which sockets of the kernel receive.

use crate::receive_queue;
use crate::receive_queue::Queue;
use bytes::BytesMut;
use hvq_transport::connection::{Datagram, Ecn};
use quinn_udp::RecvMeta;
use std::io::IoSliceMut;
use std::net::SocketAddr;

/// Bytes of the largest datagram, or batch of equal ones, that the kernel hands over.
const LARGEST: usize = 1 << 16;
/// Batches of at least so many bytes are copied into memory that is used again.
const POOLED: usize = 1 << 14;
/// Buffers of [`LARGEST`] bytes that are kept for that: as many batches as one call receives, and as many that are read.
/// Once all are held by somebody, datagrams get memory of their own.
const MOST_POOLED: usize = 2 * quinn_udp::BATCH_SIZE;

/// Buffers into which batches are received, before they are copied out in their true size.
pub(crate) struct Buffers {
    bytes: Box<[u8]>,
    metas: [RecvMeta; quinn_udp::BATCH_SIZE],
    pool: Pool,
    /// The number of connections that share the sockets.
    senders: usize,
}

/// Memory for large batches that is used again once nobody holds a part of them: fresh memory of that size would come from
/// the system, and go back to it, page by page.
#[derive(Default)]
struct Pool {
    buffers: Vec<BytesMut>,
    /// The buffer to try next.
    next: usize,
}

impl Pool {
    /// A copy of `batch`, if it is large and there is memory.
    fn copy(&mut self, batch: &[u8]) -> Option<BytesMut> {
        if batch.len() < POOLED {
            return None;
        }
        let count = self.buffers.len();
        let free = (0..count)
            .map(|step| (self.next + step) % count)
            .find(|index| self.buffers.get_mut(*index).is_some_and(|buffer| buffer.try_reclaim(LARGEST)));
        let index = match free {
            Some(index) => index,
            None if count < MOST_POOLED => {
                self.buffers.push(BytesMut::with_capacity(LARGEST));
                count
            }
            None => return None,
        };
        self.next = index + 1;
        let buffer = self.buffers.get_mut(index)?;
        buffer.extend_from_slice(batch);
        Some(buffer.split())
    }
}

impl Default for Buffers {
    fn default() -> Self {
        let bytes = vec![0; LARGEST * quinn_udp::BATCH_SIZE].into_boxed_slice();
        Self { bytes, metas: [RecvMeta::default(); quinn_udp::BATCH_SIZE], pool: Pool::default(), senders: 0 }
    }
}

impl Buffers {
    /// Returns true if so many connections share the sockets that queues are managed.
    pub(crate) fn is_crowded(&self) -> bool {
        self.senders >= receive_queue::CROWD
    }

    /// Takes the number of connections that share the sockets.
    pub(crate) fn set_senders(&mut self, senders: usize) {
        self.senders = senders;
    }

    /// Room for a batch.
    pub(crate) fn slices(&mut self) -> ([IoSliceMut<'_>; quinn_udp::BATCH_SIZE], &mut [RecvMeta]) {
        let mut chunks = self.bytes.chunks_mut(LARGEST);
        (std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default())), &mut self.metas)
    }

    /// Cuts the first `count` buffers into datagrams, which waited in `queue`.
    pub(crate) fn split(
        &mut self,
        count: usize,
        queue: Queue,
        local: impl Fn(&RecvMeta) -> SocketAddr,
        datagrams: &mut Vec<Datagram>,
    ) {
        for (meta, buffer) in self.metas.iter().zip(self.bytes.chunks(LARGEST)).take(count) {
            let batch = buffer.get(..meta.len).unwrap_or(buffer);
            let stride = meta.stride.max(1);
            let ecn = Ecn::from_bits(meta.ecn.map_or(0, |ecn| ecn as u8));
            let local = local(meta);
            let datagram = |bytes| Datagram { local, remote: meta.addr, ecn, bytes };
            match self.pool.copy(batch) {
                Some(mut bytes) => {
                    while !bytes.is_empty() {
                        datagrams.push(datagram(bytes.split_to(stride.min(bytes.len()))));
                    }
                }
                // What is kept for long must hold no more than itself: peers choose what comes in a batch.
                None => datagrams.extend(batch.chunks(stride).map(|one| datagram(BytesMut::from(one)))),
            }
            if let Some(last) = datagrams.last_mut() {
                queue.mark(last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_large_batches_is_used_again_once_nobody_holds_a_part_of_it() {
        let mut pool = Pool::default();
        let copy = |pool: &mut Pool, batch: &[u8]| pool.copy(batch).expect("there is room");
        let (first, second) = (copy(&mut pool, &[1; 30_000]), copy(&mut pool, &[2; 60_000]));
        let place = first.as_ptr();
        assert_ne!(second.as_ptr(), place);
        let (kept, rest) = (first.clone().split_to(10), first);
        drop(rest);
        assert_eq!(kept, [1; 10][..]);
        drop(kept);
        let third = copy(&mut pool, &[3; 40_000]);
        assert_eq!((third.as_ptr(), &third[..], &second[..]), (place, &[3; 40_000][..], &[2; 60_000][..]));
        assert!(pool.copy(&[4; 100]).is_none());
        assert_eq!(pool.buffers.len(), 2, "a single datagram has memory of its own");
    }

    #[test]
    fn small_parts_of_many_large_batches_hold_no_more_than_the_pool() {
        // attacks.md E6: a peer chooses what it sends together, and which part of it this end has to keep.
        let mut buffers = Buffers::default();
        let (mut datagrams, mut kept) = (Vec::new(), Vec::new());
        for batch in 0..2 * MOST_POOLED {
            buffers.bytes[..40_000].fill(batch as u8);
            buffers.metas[0] = RecvMeta { len: 40_000, stride: 1_000, ..RecvMeta::default() };
            buffers.split(1, Queue::Short, |_| ([127, 0, 0, 1], 1).into(), &mut datagrams);
            assert_eq!(datagrams.len(), 40);
            kept.extend(datagrams.drain(..).take(1));
        }
        assert_eq!(buffers.pool.buffers.len(), MOST_POOLED);
        for (batch, datagram) in kept.iter().enumerate() {
            assert_eq!(datagram.bytes, [batch as u8; 1_000][..]);
        }
        // Those beyond the pool are not in its memory. A buffer begins behind the batch that it gave away.
        let pooled = |datagram: &Datagram| {
            let at = datagram.bytes.as_ptr() as usize;
            buffers.pool.buffers.iter().any(|buffer| {
                let end = buffer.as_ptr() as usize;
                (end - 40_000..end).contains(&at)
            })
        };
        assert!(kept[..MOST_POOLED].iter().all(pooled) && !kept[MOST_POOLED..].iter().all(pooled));
    }
}
