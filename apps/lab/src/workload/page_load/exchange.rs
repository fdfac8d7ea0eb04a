//! The form of a request and a response on a stream.

use crate::pages::ObjectId;
use crate::workload::pattern;
use bytes::Bytes;
use hvq_scheduler::Priority;
use std::time::Duration;

/// An exchange that is none of the page's: what it takes of bytes and of time. The sizes are those of messages; what
/// the transport adds is about what IP and UDP or TCP would.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Preliminary {
    /// The number in the place of an object's.
    pub(super) object: ObjectId,
    /// Bytes of the question.
    pub(super) question: u64,
    /// Bytes of the answer.
    pub(super) answer: u64,
    /// The time for which the answer is thought about, at both ends together.
    pub(super) wait: Duration,
}

/// A name lookup: a DNS query and its answer. NSDI 2023, Table 2, measured 3 to 4 ms beyond the round trip.
pub(super) const LOOKUP: Preliminary =
    Preliminary { object: ObjectId(u32::MAX), question: 60, answer: 140, wait: Duration::from_millis(3) };

/// TCP's handshake: segments without data. NSDI 2023, Table 2, measured 1 to 2 ms beyond the round trip.
pub(super) const TCP: Preliminary =
    Preliminary { object: ObjectId(u32::MAX - 1), question: 12, answer: 12, wait: Duration::from_millis(1) };

/// TLS 1.3's handshake: a ClientHello that Chrome pads to 517 bytes (RFC 7685), and certificates. NSDI 2023, Table 2,
/// measured 13 ms beyond the round trip over eMBB, and another 12 ms, which are 3 KB at 2 Mbit/s, over URLLC.
pub(super) const TLS: Preliminary = Preliminary {
    object: ObjectId(u32::MAX - 2),
    question: 517,
    answer: 3_000,
    wait: Duration::from_millis(12),
};

/// The upload of a background flow: 5 KB of JSON, which the server notes (HotNets 2023, §4).
pub(super) const UPLOAD: Preliminary =
    Preliminary { object: ObjectId(u32::MAX - 3), question: 5_000, answer: 100, wait: Duration::ZERO };

/// The download that follows it: 10 KB of JSON.
pub(super) const DOWNLOAD: Preliminary =
    Preliminary { object: ObjectId(u32::MAX - 4), question: 200, answer: 10_000, wait: Duration::ZERO };

/// Bytes of a transfer that is not over before a run is: a minute at 10 Gbit/s.
const ENDLESS: u64 = 75_000_000_000;

/// An upload without end.
pub(super) const ENDLESS_UPLOAD: Preliminary =
    Preliminary { object: ObjectId(u32::MAX - 5), question: ENDLESS, answer: 100, wait: Duration::ZERO };

/// A download without end.
pub(super) const ENDLESS_DOWNLOAD: Preliminary =
    Preliminary { object: ObjectId(u32::MAX - 6), question: 200, answer: ENDLESS, wait: Duration::ZERO };

/// All of them.
pub(super) const PRELIMINARIES: [Preliminary; 7] =
    [LOOKUP, TCP, TLS, UPLOAD, DOWNLOAD, ENDLESS_UPLOAD, ENDLESS_DOWNLOAD];

/// Returns true if `preliminary` is part of a flow in the background.
pub(super) fn is_background(preliminary: Preliminary) -> bool {
    [UPLOAD, DOWNLOAD, ENDLESS_UPLOAD, ENDLESS_DOWNLOAD].contains(&preliminary)
}

/// The priority of background flows: the least urgent there is, so that it is worth nothing to hurry
/// (RFC 9218 §4.1).
pub(super) const BACKGROUND: Priority = Priority { urgency: 7, incremental: true };

/// The least that a request takes: its object's number.
pub(super) const LEAST: u64 = 4;

/// The beginning of the request for `object`, of `size` bytes if that is enough for its number: all of it, unless it is an
/// upload.
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
