//! A jitter buffer: how long to wait for layers that make the picture better, if they come at all.

use super::Wait;
use crate::layers::LAYERS;
use std::collections::VecDeque;
use std::time::Duration;

/// Frames that are looked back at for the fastest of them: ten seconds at 30 a second.
const WINDOW: usize = 300;
/// After so many frames in a row without a layer in time, waiting for it is of no use.
const HOPELESS: usize = 4;
/// What is waited then all the same, so that it shows when layers come again.
const SHORT: Duration = Duration::from_millis(5);
/// The share of frames that may be older than wanted, so that nineteen of twenty are not.
const EXCEPTIONS: f64 = 0.045;
/// Exceptions that are saved up at most, for the next time at which layers are late one after another.
const SAVED: f64 = 30.0;

/// How the layers of one frame came.
#[derive(Clone, Copy, Debug)]
struct Span {
    frame: u32,
    captured: Duration,
    base: Duration,
    /// When each layer was there with all below it.
    better: [Option<Duration>; LAYERS],
}

/// Waits until all layers are there that came in time of late, but not for longer than [`MOST`](Self::MOST) after the
/// fastest base layers came: what takes longer is left out, and so the picture is never older than that, and seldom as old.
///
/// But for an exception: a frame that has its base layer alone by then, while others above it do come, may wait for as long
/// as the receiver of the paper does ([`Wait::PAPER`]). At most one of twenty-two may, so the 95th percentile of ages is not
/// touched by it.
///
/// Only differences between arrivals count, so that the clocks of sender and receiver need not agree.
#[derive(Clone, Debug)]
pub struct Adaptive {
    most: Duration,
    recent: VecDeque<Span>,
    /// Exceptions saved up.
    saved: f64,
}

impl Adaptive {
    /// The longest wait of a receiver that is to show pictures within 45 ms, of which the fastest base layers take six.
    pub const MOST: Duration = Duration::from_micros(38_500);

    /// A wait of at most `most`.
    pub fn new(most: Duration) -> Self {
        Self { most, recent: VecDeque::new(), saved: 0.0 }
    }

    /// When to decode a frame that was taken at `captured`, whose layers were there at the times in `better`, each with all
    /// below it, the base layer at `base`.
    pub(super) fn due(
        &self,
        (captured, base): (Duration, Duration),
        better: &[Option<Duration>; LAYERS],
    ) -> Duration {
        let middle_comes = self.comes(1, Wait::PAPER);
        let until = match middle_comes {
            true => self.limit(captured, base).max(base),
            false => base + SHORT.min(self.most),
        };
        let longest = base + Wait::PAPER;
        let until = match better[1] {
            // The exception ends with what it waits for.
            Some(middle) => until.max(middle.min(longest)),
            None if self.saved >= 1.0 && middle_comes => until.max(longest),
            None => until,
        };
        let wanted = if self.comes(LAYERS - 1, self.most) { LAYERS - 1 } else { 1 };
        better[wanted].map_or(until, |at| at.min(until))
    }

    /// Until when a frame is decoded that is no exception.
    fn limit(&self, captured: Duration, base: Duration) -> Duration {
        let transits = self.recent.iter().map(|span| transit(span.captured, span.base));
        let fastest =
            transits.min().map_or(transit(captured, base), |least| least.min(transit(captured, base)));
        later(captured, fastest + i128::try_from(self.most.as_nanos()).unwrap_or(i128::MAX / 4))
    }

    /// Whether `layer` came, with all below it, so soon after the base layer in any of the latest frames.
    fn comes(&self, layer: usize, soon: Duration) -> bool {
        let in_time = |span: &Span| span.better[layer].is_some_and(|at| at.saturating_sub(span.base) <= soon);
        self.recent.len() < HOPELESS || self.recent.iter().rev().take(HOPELESS).any(in_time)
    }

    /// A frame was decoded at `at`.
    pub(super) fn on_decoded(
        &mut self,
        frame: u32,
        (captured, base, at): (Duration, Duration, Duration),
        better: [Option<Duration>; LAYERS],
    ) {
        let spent = if at > self.limit(captured, base) { 1.0 } else { 0.0 };
        self.saved = (self.saved + EXCEPTIONS - spent).clamp(0.0, SAVED);
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(Span { frame, captured, base, better });
    }

    /// A layer of a decoded frame arrived after all: had the wait been longer, it would have been of use.
    pub(super) fn on_late(&mut self, frame: u32, layer: usize, at: Duration) {
        let Some(span) = self.recent.iter_mut().rev().find(|span| span.frame == frame) else { return };
        if let Some(Some(below)) = layer.checked_sub(1).and_then(|below| span.better.get(below)).copied() {
            span.better[layer] = Some(at.max(below));
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
