//! A jitter buffer: how long to wait for layers that make the picture better, by how long they took of late.

use crate::layers::LAYERS;
use std::collections::VecDeque;
use std::time::Duration;

/// Frames that are looked back at: one second at 30 a second.
const WINDOW: usize = 30;
/// After so many frames in a row without all layers, waiting for the next is of no use.
const HOPELESS: usize = 4;
/// What is waited then all the same, so that it shows when layers come again.
const SHORT: Duration = Duration::from_millis(5);

/// How long the layers of one frame took.
#[derive(Clone, Copy, Debug)]
struct Span {
    frame: u32,
    base: Duration,
    /// Layers that are still missing, and what the last one took from the base layer on.
    missing: usize,
    took: Duration,
}

/// Waits a little longer than all layers took of late, counted from the base layer, and not longer than is worth it.
#[derive(Clone, Debug)]
pub struct Adaptive {
    most: Duration,
    recent: VecDeque<Span>,
}

impl Adaptive {
    /// The longest wait of a receiver that is to show pictures within 45 ms, of which a base layer's flight takes ten.
    pub const MOST: Duration = Duration::from_millis(33);

    /// A wait of at most `most`.
    pub fn new(most: Duration) -> Self {
        Self { most, recent: VecDeque::new() }
    }

    /// From the arrival of a base layer on, how long to wait for the others.
    pub fn wait(&self) -> Duration {
        let in_time = |span: &Span| span.missing == 0 && span.took <= self.most;
        let last = self.recent.iter().rev().take(HOPELESS);
        if self.recent.len() >= HOPELESS && !last.clone().any(in_time) {
            return SHORT.min(self.most);
        }
        let longest = self.recent.iter().filter(|span| in_time(span)).map(|span| span.took).max();
        // A quarter more than the longest: it is to be met by what takes a little longer, too.
        longest.map_or(self.most, |longest| (longest + longest / 4 + SHORT).min(self.most))
    }

    /// A frame was decoded whose base layer was there at `base`, and all layers at `complete` if they were.
    pub(super) fn on_decoded(&mut self, frame: u32, base: Duration, complete: Option<Duration>) {
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        let took = complete.map_or(Duration::ZERO, |at| at.saturating_sub(base));
        let missing = if complete.is_some() { 0 } else { LAYERS - 1 };
        self.recent.push_back(Span { frame, base, missing, took });
    }

    /// A layer of a decoded frame arrived after all: had the wait been longer, it would have been of use.
    pub(super) fn on_late(&mut self, frame: u32, layer: usize, at: Duration) {
        let Some(span) = self.recent.iter_mut().find(|span| span.frame == frame) else { return };
        // The last layer is the largest and comes last: with it the frame counts as complete.
        if layer + 1 == LAYERS {
            (span.missing, span.took) = (0, at.saturating_sub(span.base));
        }
    }
}
