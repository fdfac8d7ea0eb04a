//! What a request and a response look like on a stream.

use crate::workload::pattern;
use bytes::Bytes;
use hvq_pages::ObjectId;

/// The object that stands for a name lookup.
pub(super) const LOOKUP: ObjectId = ObjectId(u32::MAX);

/// Bytes of a DNS query and its answer, about.
pub(super) const QUERY: u64 = 60;
pub(super) const ANSWER: u64 = 140;

/// The least that a request takes: its object's number.
const LEAST: u64 = 4;

/// The request for `object`, of `size` bytes if that is enough for its number.
pub(super) fn request(object: ObjectId, size: u64) -> Vec<u8> {
    let mut bytes = object.0.to_be_bytes().to_vec();
    let filling = usize::try_from(size.saturating_sub(LEAST)).unwrap_or(usize::MAX).min(60_000);
    bytes.extend_from_slice(pattern::bytes(0, 0, filling));
    bytes
}

/// The object that the first bytes of a request ask for, once there are enough of them.
pub(super) fn object(start: &[u8]) -> Option<ObjectId> {
    let number = start.first_chunk::<4>()?;
    Some(ObjectId(u32::from_be_bytes(*number)))
}

/// The next part of a response of which `left` bytes are to be written.
pub(super) fn part(left: u64) -> Bytes {
    const MOST: u64 = 60_000;
    Bytes::from_static(pattern::bytes(0, 0, left.min(MOST) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_which_object_and_has_its_size() {
        for size in [0, 4, 5, 700, 50_000] {
            let request = request(ObjectId(300), size);
            assert_eq!(request.len() as u64, size.max(4));
            assert_eq!(object(&request), Some(ObjectId(300)));
        }
        assert_eq!(object(&[0, 0, 1]), None);
        assert_eq!((part(7).len(), part(1 << 20).len()), (7, 60_000));
    }
}
