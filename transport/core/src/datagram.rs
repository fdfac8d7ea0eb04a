//! Unreliable datagrams (RFC 9221): a queue each way, where the oldest give way.

use crate::error::{ErrorCode, TransportError};
use crate::recovery_token::RecoveryToken;
use crate::time::Instant;
use crate::wire::frame::{Frame, datagram};
use bytes::Bytes;
use hvq_scheduler::{Message, Priority};
use std::collections::{BTreeMap, VecDeque};

/// The cost of a queued datagram beside its bytes, so that a flood of empty ones is bounded too; in bytes.
const OVERHEAD: usize = 64;
/// Smaller datagrams are copied: a slice would keep the whole packet that they came in alive.
const SMALL: usize = 1024;

/// The reason for which a datagram was not queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DatagramError {
    /// The peer accepts no datagrams (RFC 9221 §3).
    #[error("the peer accepts no datagrams")]
    Unsupported,
    /// The datagram is larger than a frame or packet may be. Larger sizes are tried at once if that may help.
    #[error("the datagram is larger than {max} bytes")]
    TooLarge {
        /// Bytes that it may have.
        max: usize,
        /// Bytes that it may have if the sizes that are being tried turn out to be carried; `max` when none are.
        later: usize,
    },
}

/// The datagram that is sent next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitingDatagram {
    /// Its number, as [`Datagrams::send`] returned it.
    pub number: u64,
    /// Its bytes, without the frame's header.
    pub bytes: usize,
    /// Bytes of the frame's header.
    pub header: usize,
    /// Its priority.
    pub priority: Priority,
    /// A datagram is a message by itself.
    pub message: Option<Message>,
}

/// The counters of datagrams. A datagram sent on several paths counts once for each fate of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DatagramStats {
    /// Sent.
    pub sent: u64,
    /// Arrived at the peer.
    pub acknowledged: u64,
    /// Lost by the network.
    pub lost: u64,
    /// Dropped before sending, because the queue was full.
    pub displaced: u64,
    /// Dropped before sending, because the deadline had passed.
    pub expired: u64,
    /// Refused or dropped before sending, because no path carries one so large.
    pub too_large: u64,
    /// Received.
    pub received: u64,
    /// Received and dropped, because the application did not take them.
    pub unread: u64,
}

impl std::ops::AddAssign for DatagramStats {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.displaced += other.displaced;
        self.expired += other.expired;
        self.too_large += other.too_large;
        self.received += other.received;
        self.unread += other.unread;
    }
}

#[derive(Debug)]
struct Queued {
    data: Bytes,
    priority: Priority,
    deadline: Option<Instant>,
}

/// Datagrams that wait to be sent, and that wait for the application.
#[derive(Debug)]
pub struct Datagrams {
    local_max_frame: u64,
    peer_max_frame: u64,
    /// Sizes that the application has use for.
    asked: Option<Asked>,
    queue_bytes: usize,
    /// Bytes for which there is memory, beside those that wait.
    memory_room: usize,
    /// By urgency and number.
    outgoing: BTreeMap<(u8, u64), Queued>,
    outgoing_bytes: usize,
    incoming: VecDeque<Bytes>,
    incoming_bytes: usize,
    next_number: u64,
    arrival: Arrival,
    stats: DatagramStats,
}

/// The sizes of datagrams that the application has use for, in bytes without the frame's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The largest.
    pub most: usize,
    /// The latest that was refused; `most` before.
    pub latest: usize,
}

/// Tells whether the application was told of the datagrams that wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arrival {
    Told,
    News,
}

impl Datagrams {
    /// Empty queues of at most `queue_bytes` bytes each. `local_max_frame` is the `max_datagram_frame_size` that this
    /// endpoint announces, 0 for none (RFC 9221 §3).
    pub fn new(local_max_frame: u64, queue_bytes: usize) -> Self {
        Self {
            local_max_frame,
            peer_max_frame: 0,
            asked: None,
            queue_bytes,
            memory_room: usize::MAX,
            outgoing: BTreeMap::new(),
            outgoing_bytes: 0,
            incoming: VecDeque::new(),
            incoming_bytes: 0,
            next_number: 0,
            arrival: Arrival::Told,
            stats: DatagramStats::default(),
        }
    }

    /// The peer's `max_datagram_frame_size`.
    pub fn set_peer_limit(&mut self, limit: u64) {
        self.peer_max_frame = limit;
    }

    /// Notes that the application has use for datagrams of `bytes`, whether or not they can be sent now.
    pub fn expect(&mut self, bytes: usize) {
        let most = self.asked.map_or(bytes, |asked| asked.most.max(bytes));
        self.asked = Some(Asked { most, latest: self.asked.map_or(most, |asked| asked.latest) });
    }

    /// Counts a datagram of `bytes` that no path carries, and notes the size as one that the application has use for.
    pub fn refuse(&mut self, bytes: usize) {
        self.expect(bytes);
        self.asked = self.asked.map(|asked| Asked { latest: bytes, ..asked });
        self.stats.too_large += 1;
    }

    /// Returns the sizes of frames that the application has use for and the peer accepts, `None` if there are none.
    pub fn asked(&self) -> Option<Asked> {
        let limit = usize::try_from(self.peer_max_frame).unwrap_or(usize::MAX);
        let frame = |bytes: usize| datagram::encoded_size(bytes.min(limit)).min(limit);
        let asked = self.asked.filter(|_| limit > 0)?;
        Some(Asked { most: frame(asked.most), latest: frame(asked.latest) })
    }

    /// Bytes of the largest datagram that the peer takes and that fits in `room` bytes of frame, `None` if the peer takes
    /// none.
    pub fn max_size(&self, room: usize) -> Option<usize> {
        // RFC 9221 §3: the limit includes the type and the length of the frame.
        let frame = room.min(usize::try_from(self.peer_max_frame).unwrap_or(usize::MAX));
        (self.peer_max_frame > 0).then(|| datagram::data_room(frame))
    }

    /// Queues `data`, to be sent by `deadline` if there is one; returns its number. If the queue is full, the oldest of
    /// the least urgent datagrams gives way, which may be this one.
    pub fn send(
        &mut self,
        data: Bytes,
        priority: Priority,
        deadline: Option<Instant>,
    ) -> Result<u64, DatagramError> {
        //= https://www.rfc-editor.org/rfc/rfc9221#section-3
        //# An endpoint MUST NOT send DATAGRAM frames until it has received the max_datagram_frame_size
        //# transport parameter with a non-zero value during the handshake (or during a previous handshake
        let max = self.max_size(usize::MAX).ok_or(DatagramError::Unsupported)?;
        //= https://www.rfc-editor.org/rfc/rfc9221#section-3
        //# An endpoint MUST NOT send DATAGRAM frames that are larger than the max_datagram_frame_size value
        //# it has received from its peer
        if data.len() > max {
            self.stats.too_large += 1;
            return Err(DatagramError::TooLarge { max, later: max });
        }
        let most = self.most(self.outgoing_bytes);
        let number = self.next_number;
        self.next_number += 1;
        self.outgoing_bytes += data.len() + OVERHEAD;
        self.outgoing.insert((priority.urgency, number), Queued { data, priority, deadline });
        while self.outgoing_bytes > most && self.outgoing.len() > 1 {
            self.displace();
        }
        Ok(number)
    }

    /// Bytes that wait, in both directions.
    pub fn held(&self) -> usize {
        self.outgoing_bytes + self.incoming_bytes
    }

    /// Bytes that wait for the application.
    pub fn unread(&self) -> usize {
        self.incoming_bytes
    }

    /// There is memory for `room` bytes beside those that wait.
    pub fn set_memory_room(&mut self, room: usize) {
        self.memory_room = room;
    }

    /// Forgets all that wait.
    pub fn clear(&mut self) {
        self.outgoing.clear();
        self.incoming = VecDeque::new();
        (self.outgoing_bytes, self.incoming_bytes) = (0, 0);
    }

    /// Bytes that may wait in a queue that has `waiting`.
    fn most(&self, waiting: usize) -> usize {
        self.queue_bytes.min(waiting.saturating_add(self.memory_room))
    }

    /// Bytes of the largest datagram that is queued without another giving way to it; an empty queue takes any that the peer does.
    pub fn space(&self) -> usize {
        if self.outgoing.is_empty() {
            return self.max_size(usize::MAX).unwrap_or(0);
        }
        self.most(self.outgoing_bytes).saturating_sub(self.outgoing_bytes).saturating_sub(OVERHEAD)
    }

    /// Returns true if anything waits to be sent.
    pub fn has_waiting(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// The datagram to send next: the oldest of the most urgent. Drops those whose deadline has passed.
    pub fn peek(&mut self, now: Instant) -> Option<WaitingDatagram> {
        loop {
            let (&(_, number), queued) = self.outgoing.first_key_value()?;
            if queued.deadline.is_some_and(|deadline| deadline < now) {
                self.pop();
                self.stats.expired += 1;
                continue;
            }
            let deadline = queued.deadline.map(|deadline| deadline.since(now));
            let bytes = queued.data.len();
            let message = Some(Message { remaining: bytes, deadline });
            let header = datagram::encoded_size(bytes) - bytes;
            return Some(WaitingDatagram { number, bytes, header, priority: queued.priority, message });
        }
    }

    /// The frame with the datagram that [`Self::peek`] shows, `None` if it has more than `room` bytes.
    pub fn take(&mut self, room: usize) -> Option<(Frame, RecoveryToken)> {
        let (&(_, number), queued) = self.outgoing.first_key_value()?;
        let frame = Frame::Datagram(queued.data.clone());
        if frame.encoded_size() > room {
            return None;
        }
        self.pop();
        self.stats.sent += 1;
        Some((frame, RecoveryToken::Datagram(number)))
    }

    /// Drops the datagram that [`Self::peek`] shows: no path carries it any more.
    pub fn discard(&mut self) {
        if let Some((_, queued)) = self.outgoing.first_key_value() {
            self.refuse(queued.data.len());
        }
        self.pop();
    }

    /// A DATAGRAM frame arrived. If the queue is full, the oldest datagrams give way.
    pub fn on_datagram(&mut self, data: Bytes) -> Result<(), TransportError> {
        //= https://www.rfc-editor.org/rfc/rfc9221#section-3
        //# An endpoint that receives a DATAGRAM frame when it has not indicated support via the transport
        //# parameter MUST terminate the connection with an error of type PROTOCOL_VIOLATION
        //= https://www.rfc-editor.org/rfc/rfc9221#section-3
        //# value it sent in its max_datagram_frame_size transport parameter MUST terminate the connection
        //# with an error of type PROTOCOL_VIOLATION.
        // RFC 9221 §3. The frame has a type of one byte and perhaps a length, which is not known any more.
        if data.len() as u64 >= self.local_max_frame {
            return Err(ErrorCode::PROTOCOL_VIOLATION.because("a DATAGRAM frame above the limit"));
        }
        let data = if data.len() < SMALL { Bytes::copy_from_slice(&data) } else { data };
        let most = self.most(self.incoming_bytes);
        self.incoming_bytes += data.len() + OVERHEAD;
        self.incoming.push_back(data);
        self.stats.received += 1;
        self.arrival = Arrival::News;
        while self.incoming_bytes > most && self.incoming.len() > 1 {
            self.receive();
            self.stats.unread += 1;
        }
        Ok(())
    }

    /// The oldest datagram that the application has not taken.
    pub fn receive(&mut self) -> Option<Bytes> {
        let data = self.incoming.pop_front()?;
        self.incoming_bytes -= data.len() + OVERHEAD;
        Some(data)
    }

    /// Returns true if a datagram arrived since this was asked last.
    #[inline]
    pub fn take_arrival(&mut self) -> bool {
        std::mem::replace(&mut self.arrival, Arrival::Told) == Arrival::News
    }

    /// A copy of datagram `number` arrived at the peer.
    pub fn on_acknowledged(&mut self, _number: u64) {
        self.stats.acknowledged += 1;
    }

    /// A copy of datagram `number` was lost; it is not repeated (RFC 9221 §5.2).
    pub fn on_lost(&mut self, _number: u64) {
        self.stats.lost += 1;
    }

    /// Returns the counters of datagrams so far.
    pub fn stats(&self) -> DatagramStats {
        self.stats
    }

    fn pop(&mut self) {
        if let Some((_, queued)) = self.outgoing.pop_first() {
            self.outgoing_bytes -= queued.data.len() + OVERHEAD;
        }
    }

    /// Drops the oldest of the least urgent datagrams.
    fn displace(&mut self) {
        let Some((&(urgency, _), _)) = self.outgoing.last_key_value() else { return };
        let oldest = self.outgoing.range((urgency, 0)..).next().map(|(&key, _)| key);
        if let Some(queued) = oldest.and_then(|key| self.outgoing.remove(&key)) {
            self.outgoing_bytes -= queued.data.len() + OVERHEAD;
            self.stats.displaced += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn open(queue: usize) -> Datagrams {
        let mut datagrams = Datagrams::new(1200, queue);
        datagrams.set_peer_limit(1200);
        datagrams
    }

    fn send(datagrams: &mut Datagrams, data: &'static [u8], urgency: u8) -> Result<u64, DatagramError> {
        datagrams.send(Bytes::from_static(data), Priority { urgency, ..Priority::default() }, None)
    }

    fn sent(datagrams: &mut Datagrams) -> Vec<Bytes> {
        let frames = std::iter::from_fn(|| datagrams.take(2000));
        frames
            .filter_map(|(frame, _)| if let Frame::Datagram(data) = frame { Some(data) } else { None })
            .collect()
    }

    //= https://www.rfc-editor.org/rfc/rfc9221#section-3
    //= type=test
    //# An endpoint MUST NOT send DATAGRAM frames until it has received the max_datagram_frame_size transport
    //# parameter with a non-zero value during the handshake (or during a previous handshake
    #[test]
    fn a_peer_without_support_gets_nothing() {
        let mut datagrams = Datagrams::new(1200, 1000);
        assert_eq!(send(&mut datagrams, b"x", 3), Err(DatagramError::Unsupported));
        assert_eq!(datagrams.max_size(1200), None);
    }

    //= https://www.rfc-editor.org/rfc/rfc9221#section-3
    //= type=test
    //# An endpoint MUST NOT send DATAGRAM frames that are larger than the max_datagram_frame_size value it
    //# has received from its peer
    #[test]
    fn the_largest_datagram_fills_the_frame_that_the_peer_accepts() {
        // RFC 9221 §3: type and length count.
        let mut datagrams = open(10_000);
        assert_eq!((datagrams.max_size(5000), datagrams.max_size(500)), (Some(1197), Some(497)));
        assert_eq!(
            send(&mut datagrams, &[0; 1198], 3),
            Err(DatagramError::TooLarge { max: 1197, later: 1197 })
        );
        send(&mut datagrams, &[0; 1197], 3).expect("fits");
        assert_eq!(datagrams.take(1199), None);
        assert_eq!(datagrams.take(1200).expect("fits").0.encoded_size(), 1200);
    }

    #[test]
    fn a_datagram_that_no_path_carries_any_more_does_not_block_the_others_and_is_counted() {
        let mut datagrams = open(10_000);
        send(&mut datagrams, &[0; 1000], 3).expect("fits");
        send(&mut datagrams, b"small", 3).expect("fits");
        datagrams.discard();
        assert_eq!(sent(&mut datagrams), [&b"small"[..]]);
        assert_eq!(
            (datagrams.outgoing_bytes, datagrams.stats().too_large, datagrams.stats().lost),
            (0, 1, 0)
        );
    }

    #[test]
    fn sizes_that_were_asked_for_are_those_of_frames_that_the_peer_accepts() {
        let mut datagrams = Datagrams::new(1200, 1000);
        datagrams.refuse(1000);
        assert_eq!(datagrams.asked(), None, "the peer accepts none");
        datagrams.set_peer_limit(1200);
        assert_eq!(datagrams.asked(), Some(Asked { most: 1003, latest: 1003 }));
        datagrams.expect(usize::MAX);
        datagrams.refuse(10);
        assert_eq!(datagrams.asked(), Some(Asked { most: 1200, latest: 12 }));
    }

    #[test]
    fn urgent_datagrams_go_first_and_old_unurgent_ones_give_way() {
        let mut datagrams = open(3 * (OVERHEAD + 1));
        for (data, urgency) in [(b"a", 3), (b"b", 5), (b"c", 5), (b"d", 1)] {
            send(&mut datagrams, data, urgency).expect("queued");
        }
        assert_eq!(sent(&mut datagrams), [&b"d"[..], b"a", b"c"]);
        assert_eq!((datagrams.stats().displaced, datagrams.stats().sent), (1, 3));
    }

    //= https://www.rfc-editor.org/rfc/rfc9221#section-5.4
    //= type=test
    //# The sender MUST either delay sending the frame until the controller allows it or drop the frame
    //# without sending it (at which point it MAY notify the application)
    #[test]
    fn a_datagram_past_its_deadline_is_not_sent() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut datagrams = open(1000);
        datagrams.send(Bytes::from_static(b"late"), Priority::default(), Some(at(10))).expect("queued");
        datagrams.send(Bytes::from_static(b"good"), Priority::default(), Some(at(30))).expect("queued");
        let waiting = datagrams.peek(at(20)).expect("one is in time");
        let message = Message { remaining: 4, deadline: Some(Duration::from_millis(10)) };
        assert_eq!((waiting.number, waiting.message, datagrams.stats().expired), (1, Some(message), 1));
        assert_eq!(datagrams.peek(at(40)), None);
        assert!(!datagrams.has_waiting());
    }

    //= https://www.rfc-editor.org/rfc/rfc9221#section-3
    //= type=test
    //# An endpoint that receives a DATAGRAM frame when it has not indicated support via the transport
    //# parameter MUST terminate the connection with an error of type PROTOCOL_VIOLATION
    //= https://www.rfc-editor.org/rfc/rfc9221#section-3
    //= type=test
    //# value it sent in its max_datagram_frame_size transport parameter MUST terminate the connection with an
    //# error of type PROTOCOL_VIOLATION.
    #[test]
    fn a_frame_above_the_announced_limit_is_a_violation() {
        // RFC 9221 §3, attacks E15.
        let mut datagrams = open(10_000);
        datagrams.on_datagram(Bytes::from(vec![0; 1199])).expect("1200 with the type");
        let error = datagrams.on_datagram(Bytes::from(vec![0; 1200])).expect_err("too large");
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
        let error = Datagrams::new(0, 1000).on_datagram(Bytes::new()).expect_err("not announced");
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    }

    #[test]
    fn a_flood_keeps_the_newest_within_the_bound() {
        // attacks E15.
        let mut datagrams = open(10 * OVERHEAD);
        for i in 0..1000u16 {
            let data = if i % 2 == 0 { Bytes::new() } else { Bytes::copy_from_slice(&i.to_be_bytes()) };
            datagrams.on_datagram(data).expect("within limits");
            assert!(datagrams.incoming_bytes <= 10 * OVERHEAD);
        }
        assert!(datagrams.take_arrival() && !datagrams.take_arrival());
        let kept: Vec<Bytes> = std::iter::from_fn(|| datagrams.receive()).collect();
        assert_eq!(kept.last().map(|data| &data[..]), Some(&999u16.to_be_bytes()[..]));
        assert_eq!((kept.len() as u64 + datagrams.stats().unread, datagrams.incoming_bytes), (1000, 0));
    }
}
