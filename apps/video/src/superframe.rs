//! VP9 superframes: the layers of a picture in one piece, with an index at the end (VP9 bitstream specification, Annex B).

use crate::layers::LAYERS;

/// Frames in one superframe at most: three bits of the index count them from 1.
const MOST_FRAMES: usize = 8;

/// The reason for which bytes are no superframe of layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MalformedSuperframe {
    /// There is no byte.
    #[error("an empty frame")]
    Empty,
    /// The index does not fit to what it is the index of.
    #[error("the index of a superframe is longer than the superframe, or its two ends differ")]
    Index,
    /// The sizes in the index exceed what there is.
    #[error("a superframe of {0} bytes is shorter than its index says")]
    Truncated(usize),
    /// There are more frames than layers.
    #[error("{0} frames in a superframe, at most {LAYERS} layers")]
    TooMany(usize),
}

/// The layers in `superframe`, lowest first. A superframe without an index is one layer.
pub fn split(superframe: &[u8]) -> Result<Vec<&[u8]>, MalformedSuperframe> {
    let Some(&marker) = superframe.last() else { return Err(MalformedSuperframe::Empty) };
    if marker & 0xe0 != 0xc0 {
        return Ok(vec![superframe]);
    }
    let count = usize::from(marker & 7) + 1;
    let width = usize::from((marker >> 3) & 3) + 1;
    let length = 2 + width * count;
    let begin = superframe.len().checked_sub(length).ok_or(MalformedSuperframe::Index)?;
    let (mut frames, index) = superframe.split_at(begin);
    if index.first() != Some(&marker) {
        return Err(MalformedSuperframe::Index);
    }
    if count > LAYERS {
        return Err(MalformedSuperframe::TooMany(count));
    }
    let mut layers = Vec::with_capacity(count);
    for size in index[1..length - 1].chunks(width) {
        let size = size.iter().rev().fold(0_usize, |size, byte| size << 8 | usize::from(*byte));
        let truncated = MalformedSuperframe::Truncated(superframe.len());
        let (layer, rest) = frames.split_at_checked(size).ok_or(truncated)?;
        if !layer.is_empty() {
            layers.push(layer);
        }
        frames = rest;
    }
    Ok(layers)
}

/// One piece of `layers`, at most eight, as a player or a file wants it; the reverse of [`split`]. A single layer stays as
/// it is.
pub fn join(layers: &[&[u8]]) -> Vec<u8> {
    let mut joined = layers.concat();
    if layers.len() < 2 || layers.len() > MOST_FRAMES {
        return joined;
    }
    let marker = 0xc0 | 3 << 3 | (layers.len() - 1) as u8;
    joined.push(marker);
    for layer in layers {
        joined.extend((layer.len() as u32).to_le_bytes());
    }
    joined.push(marker);
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn layers_come_out_as_they_went_in(sizes in proptest::collection::vec(1_usize..70_000, 2..=LAYERS)) {
            let layers: Vec<Vec<u8>> = sizes.iter().zip(1..).map(|(size, byte)| vec![byte; *size]).collect();
            let layers: Vec<&[u8]> = layers.iter().map(Vec::as_slice).collect();
            let joined = join(&layers);
            prop_assert_eq!(split(&joined), Ok(layers));
        }

        #[test]
        fn no_bytes_cause_a_panic(mut bytes: Vec<u8>, marker in 0xc0_u8..0xe0) {
            let _ = split(&bytes);
            bytes.push(marker);
            let _ = split(&bytes);
        }
    }

    #[test]
    fn a_frame_without_an_index_is_one_layer() {
        assert_eq!(split(&[1, 2, 3]), Ok(vec![&[1, 2, 3][..]]));
        assert_eq!(join(&[&[1, 2, 3]]), [1, 2, 3]);
        assert_eq!(split(&[]), Err(MalformedSuperframe::Empty));
    }

    #[test]
    fn sizes_are_little_endian_and_of_the_width_in_the_marker() {
        // Two frames with sizes of two bytes (Annex B.3): 3 and 1.
        let superframe = [7, 7, 7, 9, 0xc9, 3, 0, 1, 0, 0xc9];
        assert_eq!(split(&superframe), Ok(vec![&[7, 7, 7][..], &[9][..]]));
    }

    #[test]
    fn a_wrong_index_is_an_error() {
        assert_eq!(split(&[0xc9]), Err(MalformedSuperframe::Index));
        assert_eq!(split(&[0xc0, 3, 0, 1, 0, 0xc9]), Err(MalformedSuperframe::Index));
        assert_eq!(split(&[7, 0xc9, 3, 0, 1, 0, 0xc9]), Err(MalformedSuperframe::Truncated(7)));
        let four = [&[0; 4][..], &[0xc3, 1, 1, 1, 1, 0xc3]].concat();
        assert_eq!(split(&four), Err(MalformedSuperframe::TooMany(4)));
    }
}
