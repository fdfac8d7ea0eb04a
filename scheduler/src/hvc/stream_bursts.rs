//! Stream bursts: the bytes that a stream of unknown length has placed so far are the best guess at the bytes that
//! still follow.

use std::time::Duration;

use super::tuning::BURST_PAUSE;

/// The number of streams that are remembered. A slot that streams share belongs to the one that placed last: all that
/// the other loses is a guess.
const SLOTS: usize = 64;

/// Bytes that streams placed without a pause.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamBursts {
    slots: [Burst; SLOTS],
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    stream: u64,
    bytes: usize,
    last: Duration,
}

impl Burst {
    const NONE: Self = Self { stream: 0, bytes: 0, last: Duration::ZERO };

    fn continues(&self, stream: u64, now: Duration) -> bool {
        self.stream == stream && now.saturating_sub(self.last) <= BURST_PAUSE
    }
}

impl Default for StreamBursts {
    fn default() -> Self {
        Self { slots: [Burst::NONE; SLOTS] }
    }
}

impl StreamBursts {
    /// Adds `bytes` of `stream`, in place of the stream that had its slot.
    pub(super) fn add(&mut self, stream: u64, bytes: usize, now: Duration) {
        let burst = &mut self.slots[slot(stream)];
        let before = if burst.continues(stream, now) { burst.bytes } else { 0 };
        *burst = Burst { stream, bytes: before.saturating_add(bytes), last: now };
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

    #[test]
    fn a_run_ends_with_a_pause() {
        let mut stream_bursts = StreamBursts::default();
        stream_bursts.add(4, 1000, at(0));
        stream_bursts.add(4, 1000, at(90));
        assert_eq!((stream_bursts.bytes(4, at(100)), stream_bursts.bytes(0, at(100))), (2000, 0));
        assert_eq!(stream_bursts.bytes(4, at(191)), 0);
        stream_bursts.add(4, 500, at(300));
        assert_eq!(stream_bursts.bytes(4, at(300)), 500);
    }

    #[test]
    fn streams_opened_together_are_all_remembered_and_later_ones_make_them_forgotten() {
        let mut stream_bursts = StreamBursts::default();
        let opened = |number| 4 * number;
        for number in 0..65 {
            stream_bursts.add(opened(number), 100, at(number));
        }
        assert_eq!(stream_bursts.bytes(opened(0), at(70)), 0);
        assert!((1..65).all(|number| stream_bursts.bytes(opened(number), at(70)) == 100));
    }
}
