//! Decisions about streams: a bounded memory for schemes that map a stream as a whole.

/// The number of streams that are remembered. A slot that streams share belongs to the later one; the other is decided
/// anew.
const SLOTS: usize = 256;

/// A value for each of the streams that were noted of late.
#[derive(Clone, Debug)]
pub(super) struct Streams<T> {
    slots: Box<[Option<(u64, T)>]>,
}

impl<T: Copy> Default for Streams<T> {
    fn default() -> Self {
        Self { slots: vec![None; SLOTS].into_boxed_slice() }
    }
}

impl<T: Copy> Streams<T> {
    /// Returns the value that was noted for stream `id`.
    pub(super) fn get(&self, id: u64) -> Option<T> {
        let slot = self.slots.get(slot(id)).copied().flatten();
        slot.filter(|(stream, _)| *stream == id).map(|(_, value)| value)
    }

    /// Notes `value` of stream `id`.
    pub(super) fn note(&mut self, id: u64, value: T) {
        if let Some(slot) = self.slots.get_mut(slot(id)) {
            *slot = Some((id, value));
        }
    }
}

/// The slot of a stream: streams opened one after the other have different ones (RFC 9000 §2.1).
fn slot(id: u64) -> usize {
    let (number, kind) = (id >> 2, id & 3);
    (number.wrapping_add(kind * 64) % SLOTS as u64) as usize
}
