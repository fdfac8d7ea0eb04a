//! The progress of a load: the times at which twentieths of its content had arrived.

use std::time::Duration;

/// The parts of the content whose arrival is noted.
pub const PARTS: u64 = 20;

/// The bytes of content that have arrived, and the times at which each part of them was complete.
#[derive(Debug, Default)]
pub(super) struct Progress {
    total: u64,
    arrived: u64,
    /// The time of the first byte, and then of the end of each part.
    marks: Vec<Duration>,
}

impl Progress {
    /// The progress before any of `total` bytes has arrived.
    pub(super) fn new(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    /// Another `bytes` arrived at `now`.
    pub(super) fn on_bytes(&mut self, bytes: u64, now: Duration) {
        self.arrived += bytes;
        if self.marks.is_empty() && bytes > 0 {
            self.marks.push(now);
        }
        while self.marks.len() as u64 <= PARTS && self.arrived * PARTS >= self.total * self.marks.len() as u64
        {
            self.marks.push(now);
        }
    }

    /// The times of the first byte and of the end of each part; fewer before all has arrived.
    pub(super) fn marks(&self) -> &[Duration] {
        &self.marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_complete_when_their_last_byte_is_there() {
        let mut progress = Progress::new(200);
        let at = Duration::from_millis;
        progress.on_bytes(9, at(1));
        assert_eq!(progress.marks(), [at(1)]);
        progress.on_bytes(1, at(2));
        progress.on_bytes(25, at(3));
        assert_eq!(progress.marks(), [at(1), at(2), at(3), at(3)]);
        progress.on_bytes(165, at(4));
        assert_eq!((progress.marks().len() as u64, progress.marks().last()), (PARTS + 1, Some(&at(4))));
    }
}
