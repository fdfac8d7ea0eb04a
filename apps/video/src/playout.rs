//! The receiver's model: when it decodes which frame, and with which layers (HotNets 2023, §3.3).

mod adaptive;
#[cfg(test)]
mod tests;

pub use adaptive::Adaptive;

use crate::layers::{Chain, LAYERS, LayerSet};
use crate::message::{LayerHeader, Reference};
use std::collections::BTreeMap;
use std::time::Duration;

/// Frames that may wait, so that a sender who counts wildly costs no memory: eight seconds at 30 a second.
const MOST_WAITING: u32 = 240;

/// The time for which a receiver that has the base layer waits for the others.
#[derive(Clone, Debug)]
pub enum Wait {
    /// A fixed time, or until the base layers of the next two frames are there (HotNets 2023, §3.3: 60 ms), even if
    /// nothing is missing.
    Fixed(Duration),
    /// An adaptive time: until all layers are there, or for as long as they are likely to come in time.
    Adaptive(Adaptive),
}

impl Wait {
    /// The wait of the paper's receiver.
    pub const PAPER: Duration = Duration::from_millis(60);
}

/// The treatment of a frame whose base layer is missing while later ones are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gaps {
    /// Everything waits for it: it is on its way, since a base layer is sent until it arrives.
    Wait,
    /// It is left out when a later frame is decoded: lost packets are not repeated.
    Skip,
}

/// A decoded frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decoded {
    /// Its number.
    pub frame: u32,
    /// The time at which the picture was taken.
    pub captured: Duration,
    /// The time at which it is decoded.
    pub at: Duration,
    /// The layers that were there.
    pub present: LayerSet,
    /// The number of layers, from the base layer on, that are decoded: those that refer to nothing that is missing.
    pub depth: usize,
    /// The input of the decoder, as frames and layers: late layers of frames before, then this one's.
    pub order: Vec<(u32, usize)>,
}

impl Decoded {
    /// From the camera to the screen, without the time that encoder and decoder take.
    pub fn latency(&self) -> Duration {
        self.at.saturating_sub(self.captured)
    }
}

/// A frame of which something arrived.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    captured: Duration,
    /// The time at which each layer was there with all below it.
    better: [Option<Duration>; LAYERS],
    present: LayerSet,
    fresh: LayerSet,
}

/// The receiver: told of layers as they arrive, it says when to decode what. It does no decoding itself.
#[derive(Clone, Debug)]
pub struct Playout {
    wait: Wait,
    gaps: Gaps,
    frames: BTreeMap<u32, Waiting>,
    /// The first frame that is neither decoded nor skipped.
    next: u32,
    /// The time at which the last one was decoded.
    last: Duration,
    chain: Chain,
    /// True once there was a key frame.
    begun: bool,
    skipped: u64,
}

impl Playout {
    /// A receiver at the start of a video.
    pub fn new(wait: Wait, gaps: Gaps) -> Self {
        Self {
            wait,
            gaps,
            frames: BTreeMap::new(),
            next: 0,
            last: Duration::ZERO,
            chain: Chain::default(),
            begun: false,
            skipped: 0,
        }
    }

    /// Takes note that all of a layer is there at `at`. Returns true if it is of use: for frames that were shown, as
    /// long as others may refer to it. A layer that is too far ahead is dropped.
    pub fn on_layer(&mut self, header: &LayerHeader, at: Duration) -> bool {
        if header.frame < self.next {
            if let Wait::Adaptive(adaptive) = &mut self.wait {
                adaptive.on_late(header.frame, header.layer, at);
            }
            // Frames to come may refer to it.
            return self.chain.arrive(header.frame, header.layer, header.reference);
        }
        if header.frame - self.next >= MOST_WAITING || header.layer >= LAYERS {
            return false;
        }
        let waiting = self.frames.entry(header.frame).or_insert(Waiting {
            captured: header.captured,
            better: [None; LAYERS],
            present: LayerSet::NONE,
            fresh: LayerSet::NONE,
        });
        if waiting.present.contains(header.layer) {
            return false;
        }
        waiting.present = waiting.present.with(header.layer);
        waiting.fresh = LayerSet::from_bits(waiting.fresh.bits() | header.fresh().bits());
        for better in &mut waiting.better[..waiting.present.depth()] {
            better.get_or_insert(at);
        }
        true
    }

    /// Returns the time at which the next frame is to be decoded, as far as is known: call [`Self::poll`] then.
    pub fn deadline(&self) -> Option<Duration> {
        let (frame, base) = self.candidate()?;
        Some(self.due(frame, base).max(self.last))
    }

    /// The frame that is to be decoded by `now`, if there is one; call it until there is none.
    pub fn poll(&mut self, now: Duration) -> Option<Decoded> {
        let (frame, base) = self.candidate()?;
        let at = self.due(frame, base).max(self.last);
        if at > now {
            return None;
        }
        let waiting = self.frames.remove(&frame)?;
        self.frames = self.frames.split_off(&frame);
        if frame > self.next {
            self.skipped += u64::from(frame - self.next);
        }
        self.next = frame.saturating_add(1);
        self.last = at;
        if let Wait::Adaptive(adaptive) = &mut self.wait {
            adaptive.on_decoded(frame, (waiting.captured, base, at), waiting.better);
        }
        for layer in (1..LAYERS).filter(|layer| waiting.present.contains(*layer)) {
            let fresh = waiting.fresh.contains(layer);
            self.chain.arrive(frame, layer, if fresh { Reference::Fresh } else { Reference::Earlier });
        }
        let Waiting { captured, present, fresh, .. } = waiting;
        // Nothing can be decoded before a key frame.
        self.begun |= fresh.contains(0);
        let order = if self.begun { self.chain.show(frame) } else { Vec::new() };
        let depth = if self.begun { self.chain.depth(frame) } else { 0 };
        Some(Decoded { frame, captured, at, present, depth, order })
    }

    /// The layers above the base layer made a frame that was decoded better by so much, as the difference in SSIM between
    /// its picture with and without them. An adaptive wait is longer where they bring more.
    pub fn learn(&mut self, better: f64) {
        if let Wait::Adaptive(adaptive) = &mut self.wait
            && better.is_finite()
        {
            adaptive.on_brought(better.clamp(0.0, 1.0));
        }
    }

    /// Frames that were left out because their base layer did not come.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Frames from this number on are neither decoded nor skipped.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// The frame that comes next, and when its base layer was there.
    fn candidate(&self) -> Option<(u32, Duration)> {
        let with_base = |(frame, waiting): (&u32, &Waiting)| Some((*frame, waiting.better[0]?));
        let first = self.frames.iter().find_map(with_base)?;
        (self.gaps == Gaps::Skip || first.0 == self.next).then_some(first)
    }

    /// Returns the time at which a frame is to be decoded whose base layer was there at `base`.
    fn due(&self, frame: u32, base: Duration) -> Duration {
        match (&self.wait, self.frames.get(&frame)) {
            (Wait::Adaptive(adaptive), Some(waiting)) => {
                adaptive.due((waiting.captured, base), &waiting.better)
            }
            (Wait::Adaptive(_), None) => base,
            (Wait::Fixed(wait), _) => {
                let base_of = |ahead: u32| self.frames.get(&frame.checked_add(ahead)?)?.better[0];
                let followed = base_of(1).zip(base_of(2)).map(|(first, second)| base.max(first).max(second));
                followed.map_or(base + *wait, |followed| followed.min(base + *wait))
            }
        }
    }
}
