//! A jitter buffer: how long to wait for layers that make the picture better, if they come at all.

use crate::layers::LAYERS;
use std::collections::VecDeque;
use std::time::Duration;

/// Frames that are looked back at for what base layers typically take: half a minute at 30 a second.
const WINDOW: usize = 900;
/// The number of frames in a row without a layer in time after which waiting for it is of no use.
const HOPELESS: usize = 4;
/// The wait that remains then all the same, so that it shows when layers come again.
const SHORT: Duration = Duration::from_millis(5);
/// The share of frames that may be older than wanted, so that nineteen of twenty are not.
const EXCEPTIONS: f64 = 0.049;
/// Exceptions that are saved up at most, for the next time at which layers are late one after another; and those that may be
/// owed, since who waits for one frame shows the next ones late, too.
const SAVED: f64 = 60.0;
const OWED: f64 = -10.0;
/// An exception is made where layers bring this many times of what they usually do, if few are saved; the more are, the less
/// has to be brought, and any frame is worth the last one that can be saved.
const WORTH: f64 = 2.0;
/// The number of frames over which the usual gain of layers is averaged, about.
const USUAL: f64 = 500.0;
/// The longest wait of an exception. It is longer than the paper's receiver waits: a percentile does not tell how late
/// the frames beyond it are, and so one frame more has its layers.
const LONGEST: Duration = Duration::from_millis(120);

/// The arrivals of the layers of one frame.
#[derive(Clone, Copy, Debug)]
struct Span {
    frame: u32,
    captured: Duration,
    base: Duration,
    /// The time at which each layer was there with all below it.
    better: [Option<Duration>; LAYERS],
}

/// Waits until all layers are there that came in time of late, but not for longer than [`MOST`](Self::MOST) after a base layer
/// typically comes: what takes longer is left out, and so the picture is never older than that, and seldom as old. The
/// typical time is the median of half a minute: the fastest base layers are those of pictures without content, and tell
/// less.
///
/// But for an exception: a frame that has its base layer alone by then, while others above it do come, may wait for 120 ms.
/// Less than one of twenty may, so the 95th percentile of ages is not touched by it. They are spent where the layers bring
/// most ([`Playout::learn`](super::Playout::learn)): in one scene the base layer is nearly the picture, in another it is not.
///
/// Only differences between arrivals count, so that the clocks of sender and receiver need not agree.
#[derive(Clone, Debug)]
pub struct Adaptive {
    most: Duration,
    recent: VecDeque<Span>,
    /// The transit times of the base layers of these, ascending.
    transits: Vec<i128>,
    /// Exceptions saved up.
    saved: f64,
    /// The gain from layers: of the latest frame that had them, the usual one, and the number of frames of which it is
    /// known.
    brought: f64,
    usual: f64,
    learnt: f64,
}

impl Adaptive {
    /// The longest wait of a receiver that is to show pictures within 45 ms, of which a base layer typically takes ten.
    pub const MOST: Duration = Duration::from_micros(34_800);

    /// A wait of at most `most`.
    pub fn new(most: Duration) -> Self {
        let (recent, transits) = (VecDeque::new(), Vec::new());
        Self { most, recent, transits, saved: 0.0, brought: 0.0, usual: 0.0, learnt: 0.0 }
    }

    /// Returns the time at which to decode a frame that was taken at `captured`, whose layers were there at the times
    /// in `better`, each with all below it, the base layer at `base`.
    pub(super) fn due(
        &self,
        (captured, base): (Duration, Duration),
        better: &[Option<Duration>; LAYERS],
    ) -> Duration {
        let middle_comes = self.comes(1, LONGEST);
        let until = match middle_comes {
            // A clock that jumped does not make it wait for longer.
            true => self.limit(captured, base).clamp(base, base + LONGEST),
            false => base + SHORT.min(self.most),
        };
        let longest = base + LONGEST;
        let until = match better[1] {
            // The exception ends with what it waits for.
            Some(middle) => until.max(middle.min(longest)),
            None if middle_comes && self.may_except() => until.max(longest),
            None => until,
        };
        let wanted = if self.comes(LAYERS - 1, self.most) { LAYERS - 1 } else { 1 };
        better[wanted].map_or(until, |at| at.min(until))
    }

    /// Returns the time until which a frame that is no exception waits to be decoded.
    fn limit(&self, captured: Duration, base: Duration) -> Duration {
        let typical = self.transits.get(self.transits.len() / 2).copied();
        let typical = typical.unwrap_or_else(|| transit(captured, base));
        later(captured, typical + i128::try_from(self.most.as_nanos()).unwrap_or(i128::MAX / 4))
    }

    /// Returns true if a frame may wait for longer than others.
    fn may_except(&self) -> bool {
        let wanted = WORTH * self.usual * (1.0 - self.saved / SAVED);
        self.saved >= 1.0 && self.brought >= wanted
    }

    /// The layers above the base layer made a frame better by so much.
    pub(super) fn on_brought(&mut self, better: f64) {
        self.learnt = (self.learnt + 1.0).min(USUAL);
        self.usual += (better - self.usual) / self.learnt;
        self.brought = better;
    }

    /// Returns true if `layer` came, with all below it, so soon after the base layer in any of the latest frames.
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
        self.saved = (self.saved + EXCEPTIONS - spent).clamp(OWED, SAVED);
        if self.recent.len() == WINDOW
            && let Some(oldest) = self.recent.pop_front()
        {
            let gone = transit(oldest.captured, oldest.base);
            if let Ok(place) = self.transits.binary_search(&gone) {
                self.transits.remove(place);
            }
        }
        let new = transit(captured, base);
        self.transits.insert(self.transits.partition_point(|known| *known < new), new);
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
