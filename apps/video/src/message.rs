//! The message that carries a layer: a header in front of its bytes, a priority, and a time after which it is of no
//! use.

use crate::clip::Clip;
use crate::layers::{HELD, LAYERS, LayerSet};
use std::time::Duration;

/// The largest layer that is taken from the network, in bytes: far more than a key frame at the highest rate.
pub const LARGEST: usize = 4 << 20;

/// Bit of the first byte: the layer begins anew.
const FRESH: u8 = 0x80;
/// Bits of the first byte that mean nothing and are zero.
const RESERVED: u8 = 0x7c;

/// The header that goes before the bytes of a layer.
///
/// ```text
///   fresh (1 bit) 0 (5) layer (2) | frame (32) | captured, microseconds (64)
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LayerHeader {
    /// The number of the frame, counted from 0.
    pub frame: u32,
    /// The layer, less than [`LAYERS`].
    pub layer: usize,
    /// The time at which the picture was taken, by the sender's clock.
    pub captured: Duration,
    /// The reference of the layer to frames before this one, if there is one.
    pub reference: Reference,
}

/// Tells whether a layer refers to the same layer of frames before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reference {
    /// It does.
    Earlier,
    /// It begins anew: it refers at most to the layer below in the same frame.
    Fresh,
}

/// The reason for which bytes are no layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MalformedLayer {
    /// They end within the header.
    #[error("a message of {0} bytes is no layer")]
    Truncated(usize),
    /// The layer's number is too high.
    #[error("layer {0}: there are {LAYERS}")]
    NoSuchLayer(u8),
    /// Bits are set that are zero in this version.
    #[error("reserved bits are set: {0:#04x}")]
    Reserved(u8),
}

impl LayerHeader {
    /// Its bytes.
    pub const SIZE: usize = 13;

    /// The header as it travels.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let fresh = if self.reference == Reference::Fresh { FRESH } else { 0 };
        bytes[0] = fresh | (self.layer % LAYERS) as u8;
        bytes[1..5].copy_from_slice(&self.frame.to_be_bytes());
        let micros = u64::try_from(self.captured.as_micros()).unwrap_or(u64::MAX);
        bytes[5..].copy_from_slice(&micros.to_be_bytes());
        bytes
    }

    /// The header in front of `message`, and the layer's bytes.
    pub fn decode(message: &[u8]) -> Result<(Self, &[u8]), MalformedLayer> {
        let truncated = MalformedLayer::Truncated(message.len());
        let (&first, rest) = message.split_first().ok_or(truncated)?;
        let (frame, rest) = rest.split_first_chunk().ok_or(truncated)?;
        let (captured, data) = rest.split_first_chunk().ok_or(truncated)?;
        if first & RESERVED != 0 {
            return Err(MalformedLayer::Reserved(first & RESERVED));
        }
        let layer = first & !(FRESH | RESERVED);
        if usize::from(layer) >= LAYERS {
            return Err(MalformedLayer::NoSuchLayer(layer));
        }
        let header = Self {
            frame: u32::from_be_bytes(*frame),
            layer: layer.into(),
            captured: Duration::from_micros(u64::from_be_bytes(*captured)),
            reference: if first & FRESH != 0 { Reference::Fresh } else { Reference::Earlier },
        };
        Ok((header, data))
    }

    /// The layer as a set of those that begin anew.
    pub fn fresh(&self) -> LayerSet {
        match self.reference {
            Reference::Fresh => LayerSet::NONE.with(self.layer),
            Reference::Earlier => LayerSet::NONE,
        }
    }
}

/// The RFC 9218 urgency of a layer: nothing is more urgent than the base layer, and the best layer comes last.
pub const fn urgency(layer: usize) -> u8 {
    match layer {
        0 => 0,
        1 => 3,
        _ => 5,
    }
}

/// The times until which layers are of use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadlines([Duration; LAYERS]);

impl Deadlines {
    /// For a receiver that decodes `wait` after it has the base layer, which takes `flight`.
    pub fn of(flight: Duration, wait: Duration) -> Self {
        let shown = flight.saturating_add(wait);
        // A layer is of use until the one below it is replaced, which is shown with others then.
        let kept = |below: u32| Clip::INTERVAL.saturating_mul(below - 1);
        Self([flight, shown.saturating_add(kept(HELD[0])), shown.saturating_add(kept(HELD[1]))])
    }

    /// For layer `layer`, from when the picture was taken on. The picture is late without the base layer, not lost, so that is
    /// sent all the same afterwards. Without one of the others the receiver has shown the frame then, and cannot decode
    /// them for the frames that refer to them either ([`HELD`]).
    pub const fn of_layer(&self, layer: usize) -> Duration {
        self.0[if layer < LAYERS { layer } else { LAYERS - 1 }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn headers_are_read_as_they_were_written(frame: u32, layer in 0..LAYERS, micros: u64, fresh: bool) {
            let reference = if fresh { Reference::Fresh } else { Reference::Earlier };
            let header = LayerHeader { frame, layer, captured: Duration::from_micros(micros), reference };
            let mut message = header.encode().to_vec();
            message.extend(b"data");
            prop_assert_eq!(LayerHeader::decode(&message), Ok((header, &b"data"[..])));
        }

        #[test]
        fn no_bytes_from_the_network_cause_a_panic(bytes: Vec<u8>) {
            let _ = LayerHeader::decode(&bytes);
        }
    }

    #[test]
    fn what_is_no_header_is_told_apart() {
        let whole = [0; LayerHeader::SIZE];
        for length in 0..LayerHeader::SIZE {
            assert_eq!(LayerHeader::decode(&whole[..length]), Err(MalformedLayer::Truncated(length)));
        }
        let first =
            |byte| LayerHeader::decode(&[&[byte][..], &whole[1..]].concat()).map(|(header, _)| header.layer);
        assert_eq!(first(3), Err(MalformedLayer::NoSuchLayer(3)));
        assert_eq!(first(0x45), Err(MalformedLayer::Reserved(0x44)));
        assert_eq!(first(0x82), Ok(2));
    }

    #[test]
    fn the_base_layer_is_the_most_urgent_and_due_first() {
        assert!(urgency(0) < urgency(1) && urgency(1) < urgency(2));
        let deadlines = Deadlines::of(Duration::from_millis(10), Duration::from_millis(60));
        assert_eq!([0, 1, 2].map(|layer| deadlines.of_layer(layer).as_millis()), [10, 169, 136]);
    }
}
