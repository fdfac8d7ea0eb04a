//! Layers of a frame: which there are, and which can be decoded without an error.

use crate::message::Reference;
use std::collections::{BTreeMap, BTreeSet};

/// Layers of every frame (HotNets 2023, §3.3): a base layer and two that make the picture better.
pub const LAYERS: usize = 3;

/// Some of the layers of one frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LayerSet(u8);

impl LayerSet {
    /// None.
    pub const NONE: Self = Self(0);
    /// All.
    pub const ALL: Self = Self((1 << LAYERS) - 1);

    /// Returns true if `layer` is one of them.
    pub const fn contains(self, layer: usize) -> bool {
        layer < LAYERS && self.0 & (1 << layer) != 0
    }

    /// These and `layer`, if there is such a layer.
    #[must_use]
    pub const fn with(self, layer: usize) -> Self {
        if layer < LAYERS { Self(self.0 | (1 << layer)) } else { self }
    }

    /// Returns the number of layers from the base layer on without a gap.
    pub const fn depth(self) -> usize {
        self.0.trailing_ones() as usize
    }

    /// The set as a number: bit k stands for layer k.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set of these bits; bits above those of [`LAYERS`] are dropped.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }
}

/// Pictures of each layer that a decoder still has, the newest included: the eight that VP9 keeps, divided among the layers.
///
/// Picture n of a layer lies in place n modulo this. A layer that comes late can still be decoded, for frames after it
/// refer to it: the picture of the layer below, of the same frame, is there for as long.
pub const HELD: [u32; LAYERS] = [4, 3, 1];

/// The layers that a decoder has without an error, some of them decoded after their frame was shown.
///
/// Layer k of a frame refers to layer k − 1 of the same frame and, unless it begins anew, to layer k of the frame before.
/// Decoded without either it would show errors, which stay until it begins anew, though the decoder reports none: VP9
/// with its usual references falls below the base layer's quality when a twentieth of the layers is lost. A layer is
/// therefore decoded only after all that it refers to was. One that was late for its own frame is decoded with the next
/// that is shown, while the pictures that it needs are kept ([`HELD`]).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chain {
    /// Layers above the base layer that are there and not decoded, and whether they begin anew.
    waiting: BTreeMap<(u32, usize), Reference>,
    /// The decoded layers of the latest frames.
    decoded: BTreeSet<(u32, usize)>,
    /// The newest frame of each layer that was decoded.
    newest: [Option<u32>; LAYERS],
}

impl Chain {
    /// Takes note that a layer above the base layer is there. Returns true if it can still be of use.
    pub fn arrive(&mut self, frame: u32, layer: usize, reference: Reference) -> bool {
        let is_newer = |newest: u32| frame > newest;
        let useful = (1..LAYERS).contains(&layer)
            && self.newest[layer].is_none_or(is_newer)
            && self.newest[0].is_none_or(|shown| is_newer(shown) || self.keeps((frame, 0), shown));
        if useful {
            self.waiting.insert((frame, layer), reference);
        }
        useful
    }

    /// Frame `frame` is shown, its base layer being there: the layers to decode by now, in their order, late ones of frames
    /// before it included. Those of `frame` itself come last, without a gap from the base layer on.
    pub fn show(&mut self, frame: u32) -> Vec<(u32, usize)> {
        let mut order = Vec::new();
        let first = frame.saturating_sub(HELD[0] - 1);
        self.waiting = self.waiting.split_off(&(first, 0));
        self.decoded = self.decoded.split_off(&(first, 0));
        for late in first..frame {
            self.decode_above(late, &mut order);
        }
        self.note((frame, 0), &mut order);
        self.decode_above(frame, &mut order);
        order
    }

    /// Returns the number of layers of `frame`, from the base layer on, that were decoded.
    pub fn depth(&self, frame: u32) -> usize {
        (0..LAYERS).take_while(|layer| self.decoded.contains(&(frame, *layer))).count()
    }

    /// Decodes the layers of `frame` above the base layer that are there and can be.
    fn decode_above(&mut self, frame: u32, order: &mut Vec<(u32, usize)>) {
        for layer in 1..LAYERS {
            let Some(reference) = self.waiting.get(&(frame, layer)) else { continue };
            let follows = frame.checked_sub(1).is_some_and(|before| self.newest[layer] == Some(before));
            let refers = *reference == Reference::Fresh || follows;
            let below = (frame, layer - 1);
            let kept = self.newest[layer - 1].is_some_and(|newest| self.keeps(below, newest));
            if refers && kept && self.newest[layer].is_none_or(|newest| newest < frame) {
                self.waiting.remove(&(frame, layer));
                self.note((frame, layer), order);
            }
        }
    }

    /// Returns true if a picture that was decoded has not been replaced by the `newest` of its layer.
    fn keeps(&self, (frame, layer): (u32, usize), newest: u32) -> bool {
        self.decoded.contains(&(frame, layer)) && newest - frame.min(newest) < HELD[layer]
    }

    fn note(&mut self, (frame, layer): (u32, usize), order: &mut Vec<(u32, usize)>) {
        self.decoded.insert((frame, layer));
        self.newest[layer] = Some(frame);
        order.push((frame, layer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(layers: &[usize]) -> LayerSet {
        layers.iter().fold(LayerSet::NONE, |set, layer| set.with(*layer))
    }

    /// Shows `frame` with the layers `present`, of which `fresh` begin anew; how many come out without an error.
    fn show(chain: &mut Chain, frame: u32, present: &[usize], fresh: &[usize]) -> usize {
        for layer in present.iter().filter(|layer| **layer > 0) {
            chain.arrive(frame, *layer, reference(fresh.contains(layer)));
        }
        chain.show(frame);
        chain.depth(frame)
    }

    fn reference(fresh: bool) -> Reference {
        if fresh { Reference::Fresh } else { Reference::Earlier }
    }

    #[test]
    fn depth_counts_up_to_the_first_gap() {
        assert_eq!([set(&[]), set(&[1, 2]), set(&[0, 2]), LayerSet::ALL].map(LayerSet::depth), [0, 0, 1, 3]);
        assert_eq!(set(&[9]), LayerSet::NONE);
        assert_eq!(LayerSet::from_bits(0xff), LayerSet::ALL);
    }

    #[test]
    fn a_lost_layer_is_missed_until_it_begins_anew_and_so_are_those_above() {
        let mut chain = Chain::default();
        assert_eq!(show(&mut chain, 0, &[0, 1, 2], &[0, 1, 2]), 3);
        assert_eq!(show(&mut chain, 1, &[0, 2], &[]), 1);
        assert_eq!(show(&mut chain, 2, &[0, 1, 2], &[]), 1);
        // The third layer begins anew, but what it refers to in this frame is not there.
        assert_eq!(show(&mut chain, 3, &[0, 1, 2], &[2]), 1);
        assert_eq!(show(&mut chain, 4, &[0, 1, 2], &[1]), 2);
        assert_eq!(show(&mut chain, 5, &[0, 1, 2], &[2]), 3);
    }

    #[test]
    fn layers_that_come_late_are_decoded_before_the_next_frame() {
        let mut chain = Chain::default();
        show(&mut chain, 0, &[0, 1, 2], &[0, 1, 2]);
        assert_eq!(show(&mut chain, 1, &[0], &[]), 1);
        assert_eq!(show(&mut chain, 2, &[0, 1, 2], &[]), 1);
        assert!(chain.arrive(1, 1, Reference::Earlier) && chain.arrive(1, 2, Reference::Earlier));
        chain.arrive(3, 1, Reference::Earlier);
        let order = chain.show(3);
        assert_eq!(order, [(1, 1), (1, 2), (2, 1), (2, 2), (3, 0), (3, 1)]);
        assert_eq!(chain.depth(3), 2);
        assert!(!chain.arrive(1, 1, Reference::Earlier), "it was decoded");
    }

    #[test]
    fn what_is_too_late_has_lost_the_picture_that_it_refers_to() {
        let mut chain = Chain::default();
        show(&mut chain, 0, &[0, 1, 2], &[0, 1, 2]);
        (1..5).for_each(|frame| assert_eq!(show(&mut chain, frame, &[0], &[]), 1));
        assert!(!chain.arrive(0, 1, Reference::Earlier));
        // The place of base layer 1 is taken by that of frame 5.
        assert!(chain.arrive(1, 1, Reference::Earlier));
        assert_eq!(show(&mut chain, 5, &[0, 1], &[]), 1);
        assert_eq!(show(&mut chain, 6, &[0, 1], &[1]), 2);
    }

    #[test]
    fn a_frame_that_is_left_out_breaks_the_chain_above_its_base_layer() {
        let mut chain = Chain::default();
        show(&mut chain, 0, &[0, 1, 2], &[0, 1, 2]);
        assert_eq!(show(&mut chain, 2, &[0, 1, 2], &[]), 1);
        assert!(!chain.arrive(1, 1, Reference::Earlier), "its base layer was not decoded");
        assert_eq!(show(&mut chain, u32::MAX, &[0, 1, 2], &[1, 2]), 3);
    }
}
