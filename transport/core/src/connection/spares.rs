//! Memory of datagrams that were sent, for those to come: in the steady state none comes from the system.

/// Pieces of memory that are kept at most, of each kind.
const MOST: usize = 32;
/// From this many bytes on memory is for batches, below it for single datagrams.
const BATCH: usize = 1 << 14;
/// Memory for less than the smallest datagram (RFC 9000 §14) is not worth keeping.
const LEAST: usize = 1200;

/// Memory that waits to be used again. An endpoint has it, and lends it to the connection that it polls.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    batches: Vec<Vec<u8>>,
    singles: Vec<Vec<u8>>,
}

impl Spares {
    /// Keeps the memory of `bytes`, if it is of use and there is not enough yet.
    pub fn put(&mut self, bytes: Vec<u8>) {
        let kind = match bytes.capacity() {
            BATCH.. => &mut self.batches,
            LEAST.. => &mut self.singles,
            _ => return,
        };
        if kind.len() < MOST {
            kind.push(bytes);
        }
    }

    /// Memory for a batch of datagrams.
    pub fn take_batch(&mut self) -> Option<Vec<u8>> {
        self.batches.pop()
    }

    /// Memory for one datagram.
    pub fn take_single(&mut self) -> Option<Vec<u8>> {
        self.singles.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_kept_by_its_size_and_within_bounds() {
        let mut spares = Spares::default();
        assert!(spares.take_single().is_none() && spares.take_batch().is_none());
        spares.put(Vec::with_capacity(100));
        assert!(spares.take_single().is_none() && spares.take_batch().is_none());
        for _ in 0..100 {
            spares.put(Vec::with_capacity(1400));
            spares.put(Vec::with_capacity(90_000));
        }
        assert_eq!((spares.singles.len(), spares.batches.len()), (MOST, MOST));
        assert!(spares.take_single().is_some_and(|bytes| bytes.capacity() < BATCH));
        assert!(spares.take_batch().is_some_and(|bytes| bytes.capacity() >= BATCH));
    }
}
