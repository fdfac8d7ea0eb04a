//! Stream bursts: the bytes that a stream of unknown length has placed so far are the best guess at the bytes that
//! still follow, as long as the application keeps the stream from running empty.

use std::time::Duration;

use super::cost::nanos;
use super::tuning::BURST_PAUSE;

/// The number of streams that are remembered. A slot that streams share belongs to the one that placed last: all that
/// the other loses is a guess.
const SLOTS: usize = 64;

/// Bytes that streams placed without a pause and without running empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamBursts {
    slots: [Burst; SLOTS],
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    stream: u64,
    bytes: usize,
    /// The last time at which more of the stream goes on with it, in nanoseconds: a [`Duration`] would take twice the room, in each
    /// slot of each connection.
    until: u64,
}

impl Burst {
    const NONE: Self = Self { stream: 0, bytes: 0, until: 0 };

    fn continues(&self, stream: u64, now: Duration) -> bool {
        self.stream == stream && nanos(now) <= self.until
    }
}

/// A part of a stream that was placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedPart {
    /// The stream.
    pub(super) stream: u64,
    /// Its bytes.
    pub(super) bytes: usize,
    /// Bytes of the stream that were written and wait behind it.
    pub(super) left: usize,
}

impl Default for StreamBursts {
    fn default() -> Self {
        Self { slots: [Burst::NONE; SLOTS] }
    }
}

impl StreamBursts {
    /// Adds a part of a stream, in place of the stream that had its slot.
    ///
    /// A stream that was sent to its last byte waits for its application. What comes later is a burst of its own, even if it comes
    /// soon: frames of a live picture follow each other for ever, and no second path would bring one of them sooner.
    pub(super) fn add(&mut self, part: PlacedPart, now: Duration) {
        let PlacedPart { stream, bytes, left } = part;
        let burst = &mut self.slots[slot(stream)];
        let before = if burst.continues(stream, now) { burst.bytes } else { 0 };
        let patience = if left == 0 { Duration::ZERO } else { BURST_PAUSE };
        *burst =
            Burst { stream, bytes: before.saturating_add(bytes), until: nanos(now.saturating_add(patience)) };
    }

    /// Returns the bytes that `stream` has placed in its present run.
    pub(super) fn bytes(&self, stream: u64, now: Duration) -> usize {
        let burst = &self.slots[slot(stream)];
        if burst.continues(stream, now) { burst.bytes } else { 0 }
    }
}

/// The slot of a stream: neighbours among the streams of one type have neighbouring slots (RFC 9000 §2.1).
fn slot(stream: u64) -> usize {
    let (number, kind) = (stream >> 2, stream & 3);
    (number.wrapping_add(kind * 16) % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn part(stream: u64, bytes: usize, left: usize) -> PlacedPart {
        PlacedPart { stream, bytes, left }
    }

    #[test]
    fn a_run_ends_when_nothing_is_left_to_send() {
        let mut stream_bursts = StreamBursts::default();
        stream_bursts.add(part(4, 1000, 1000), at(0));
        stream_bursts.add(part(4, 1000, 0), at(1));
        assert_eq!(stream_bursts.bytes(4, at(1)), 2000, "more may be written at once");
        assert_eq!(stream_bursts.bytes(4, at(2)), 0);
        stream_bursts.add(part(4, 700, 300), at(20));
        assert_eq!(stream_bursts.bytes(4, at(40)), 700);
    }

    #[test]
    fn a_run_ends_with_a_pause() {
        let mut stream_bursts = StreamBursts::default();
        stream_bursts.add(part(4, 1000, 1500), at(0));
        stream_bursts.add(part(4, 1000, 500), at(90));
        assert_eq!((stream_bursts.bytes(4, at(100)), stream_bursts.bytes(0, at(100))), (2000, 0));
        assert_eq!(stream_bursts.bytes(4, at(191)), 0);
        stream_bursts.add(part(4, 500, 0), at(300));
        assert_eq!(stream_bursts.bytes(4, at(300)), 500);
    }

    #[test]
    fn streams_opened_together_are_all_remembered_and_later_ones_make_them_forgotten() {
        let mut stream_bursts = StreamBursts::default();
        let opened = |number| 4 * number;
        for number in 0..65 {
            stream_bursts.add(part(opened(number), 100, 1), at(number));
        }
        assert_eq!(stream_bursts.bytes(opened(0), at(70)), 0);
        assert!((1..65).all(|number| stream_bursts.bytes(opened(number), at(70)) == 100));
    }
}
