//! Layers of a frame: which there are, and which can be decoded without an error.

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

    /// Whether `layer` is one of them.
    pub const fn contains(self, layer: usize) -> bool {
        layer < LAYERS && self.0 & (1 << layer) != 0
    }

    /// These and `layer`, if there is such a layer.
    #[must_use]
    pub const fn with(self, layer: usize) -> Self {
        if layer < LAYERS { Self(self.0 | (1 << layer)) } else { self }
    }

    /// How many there are from the base layer on without a gap.
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

/// Which layers a decoder has without an error up to some frame.
///
/// Layer k of a frame refers to layer k − 1 of the same frame and, unless it begins anew, to layer k of the frame before.
/// Decoded without either it would show errors, which stay until it begins anew, though the decoder reports none: VP9
/// with its usual references falls below the base layer's quality when a twentieth of the layers is lost. So a layer is
/// decoded only while all that it refers to was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chain {
    intact: LayerSet,
}

impl Chain {
    /// Decodes the next frame, of which the layers `present` are there and `fresh` begin anew; how many layers, from the base
    /// layer on, come out without an error.
    pub fn decode(&mut self, present: LayerSet, fresh: LayerSet) -> usize {
        let mut intact = LayerSet::NONE;
        for layer in 0..LAYERS {
            let refers = fresh.contains(layer) || self.intact.contains(layer);
            if intact.depth() == layer && present.contains(layer) && refers {
                intact = intact.with(layer);
            }
        }
        self.intact = intact;
        intact.depth()
    }

    /// The next frame is not decoded at all; the decoder goes on from the base layer before it, with an error that
    /// nobody counts.
    pub fn skip(&mut self) {
        self.intact = LayerSet::from_bits(self.intact.bits() & 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(layers: &[usize]) -> LayerSet {
        layers.iter().fold(LayerSet::NONE, |set, layer| set.with(*layer))
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
        assert_eq!(chain.decode(LayerSet::ALL, LayerSet::ALL), 3);
        assert_eq!(chain.decode(set(&[0, 2]), LayerSet::NONE), 1);
        assert_eq!(chain.decode(LayerSet::ALL, LayerSet::NONE), 1);
        // The third layer begins anew, but what it refers to in this frame is not there.
        assert_eq!(chain.decode(LayerSet::ALL, set(&[2])), 1);
        assert_eq!(chain.decode(LayerSet::ALL, set(&[1])), 2);
        assert_eq!(chain.decode(LayerSet::ALL, set(&[2])), 3);
    }

    #[test]
    fn nothing_can_be_decoded_before_a_key_frame() {
        let mut chain = Chain::default();
        assert_eq!(chain.decode(LayerSet::ALL, LayerSet::NONE), 0);
        assert_eq!(chain.decode(set(&[0]), LayerSet::ALL), 1);
        chain.skip();
        assert_eq!(chain.decode(LayerSet::ALL, LayerSet::NONE), 1);
    }
}
