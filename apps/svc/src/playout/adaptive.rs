//! A jitter buffer: how long to wait for layers that make the picture better, if they come at all.

use crate::layers::LAYERS;
use std::collections::VecDeque;
use std::time::Duration;

/// Frames that are looked back at: one second at 30 a second.
const WINDOW: usize = 30;
/// After so many frames in a row without all layers, waiting for the next is of no use.
const HOPELESS: usize = 4;
/// What is waited then all the same, so that it shows when layers come again.
const SHORT: Duration = Duration::from_millis(5);

/// How the layers of one frame came.
#[derive(Clone, Copy, Debug)]
struct Span {
    frame: u32,
    captured: Duration,
    base: Duration,
    /// When the last layer was there.
    complete: Option<Duration>,
}

/// Waits until all layers are there, but not for longer than [`MOST`](Self::MOST) after the fastest base layers of late came:
/// what takes longer is left out, and so the picture is never older than that, and seldom as old.
///
/// Only differences between arrivals count, so that the clocks of sender and receiver need not agree.
#[derive(Clone, Debug)]
pub struct Adaptive {
    most: Duration,
    recent: VecDeque<Span>,
}

impl Adaptive {
    /// The longest wait of a receiver that is to show pictures within 45 ms, of which the fastest base layers take six.
    pub const MOST: Duration = Duration::from_millis(38);

    /// A wait of at most `most`.
    pub fn new(most: Duration) -> Self {
        Self { most, recent: VecDeque::new() }
    }

    /// Until when to wait for the layers of a frame that was taken at `captured` and whose base layer came at `base`.
    pub fn until(&self, captured: Duration, base: Duration) -> Duration {
        if self.is_hopeless() {
            return base + SHORT.min(self.most);
        }
        let transits = self.recent.iter().map(|span| transit(span.captured, span.base));
        let fastest =
            transits.min().map_or(transit(captured, base), |least| least.min(transit(captured, base)));
        let after = fastest + i128::try_from(self.most.as_nanos()).unwrap_or(i128::MAX / 4);
        later(captured, after).max(base)
    }

    fn is_hopeless(&self) -> bool {
        let in_time = |span: &Span| {
            let took = |complete: Duration| complete.saturating_sub(span.base);
            span.complete.is_some_and(|complete| took(complete) <= self.most)
        };
        self.recent.len() >= HOPELESS && !self.recent.iter().rev().take(HOPELESS).any(in_time)
    }

    /// A frame was decoded whose base layer was there at `base`, and all layers at `complete` if they were.
    pub(super) fn on_decoded(
        &mut self,
        frame: u32,
        (captured, base): (Duration, Duration),
        complete: Option<Duration>,
    ) {
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(Span { frame, captured, base, complete });
    }

    /// A layer of a decoded frame arrived after all: had the wait been longer, it would have been of use.
    pub(super) fn on_late(&mut self, frame: u32, layer: usize, at: Duration) {
        let Some(span) = self.recent.iter_mut().find(|span| span.frame == frame) else { return };
        // The last layer is the largest and comes last: with it the frame counts as complete.
        if layer + 1 == LAYERS {
            span.complete = Some(at);
        }
    }
}

/// From one clock to another, in nanoseconds.
fn transit(captured: Duration, arrived: Duration) -> i128 {
    arrived.as_nanos() as i128 - captured.as_nanos() as i128
}

/// `time` and so many nanoseconds.
fn later(time: Duration, nanos: i128) -> Duration {
    let nanos = (time.as_nanos() as i128).saturating_add(nanos);
    Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}
