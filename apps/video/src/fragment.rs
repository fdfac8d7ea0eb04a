//! Layers in datagrams: cut into fragments that fit, and put together again, whatever arrives of them in whatever order.

use crate::message::{LARGEST, LayerHeader, MalformedLayer};
use std::collections::BTreeMap;

/// Bytes in front of each fragment: the layer's header, the fragment's index and how many there are.
pub const HEADER: usize = LayerHeader::SIZE + 4;
/// Layers that wait for fragments at most; the oldest give way.
const MOST_WAITING: usize = 64;
/// Bytes that wait in all of them at most.
const MOST_BYTES: usize = 4 * LARGEST;

/// The reason for which bytes are no fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MalformedFragment {
    /// The layer's header is none.
    #[error(transparent)]
    Layer(#[from] MalformedLayer),
    /// They end within the header, or there is nothing behind it.
    #[error("a datagram of {0} bytes is no fragment of a layer")]
    Truncated(usize),
    /// There is no such fragment.
    #[error("fragment {0} of {1}")]
    NoSuchFragment(u16, u16),
    /// It contradicts fragments of the same layer that came before.
    #[error("fragments of layer {1} of frame {0} contradict each other")]
    Contradiction(u32, usize),
}

/// The fragments of a layer, each of at most `most` bytes with its header; `None` if there would be too many, or `data` is
/// empty.
///
/// ```text
///   layer header (104 bits) | index (16) | count (16) | bytes
/// ```
pub fn fragments(header: &LayerHeader, data: &[u8], most: usize) -> Option<Vec<Vec<u8>>> {
    let room = most.checked_sub(HEADER).filter(|room| *room > 0)?;
    let count = u16::try_from(data.len().div_ceil(room)).ok().filter(|count| *count > 0)?;
    let fragment = |(index, part): (u16, &[u8])| {
        let mut bytes = Vec::with_capacity(HEADER + part.len());
        bytes.extend(header.encode());
        bytes.extend(index.to_be_bytes());
        bytes.extend(count.to_be_bytes());
        bytes.extend(part);
        bytes
    };
    Some((0..count).zip(data.chunks(room)).map(fragment).collect())
}

/// A layer of which fragments are missing.
#[derive(Clone, Debug)]
struct Partial {
    header: LayerHeader,
    parts: BTreeMap<u16, Vec<u8>>,
    count: u16,
    bytes: usize,
}

/// Puts layers together. It keeps a bounded number of bytes, whatever the network sends.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    waiting: BTreeMap<(u32, usize), Partial>,
    bytes: usize,
    dropped: u64,
}

impl Reassembly {
    /// Takes a datagram, and returns the layer if it is complete now. A copy of what was there before changes nothing.
    pub fn push(&mut self, datagram: &[u8]) -> Result<Option<(LayerHeader, Vec<u8>)>, MalformedFragment> {
        let truncated = MalformedFragment::Truncated(datagram.len());
        let (header, rest) = LayerHeader::decode(datagram)?;
        let (index, rest) = rest.split_first_chunk().ok_or(truncated)?;
        let (count, part) = rest.split_first_chunk().ok_or(truncated)?;
        let (index, count) = (u16::from_be_bytes(*index), u16::from_be_bytes(*count));
        if part.is_empty() {
            return Err(truncated);
        }
        if index >= count {
            return Err(MalformedFragment::NoSuchFragment(index, count));
        }
        let key = (header.frame, header.layer);
        let fresh = Partial { header, parts: BTreeMap::new(), count, bytes: 0 };
        let partial = self.waiting.entry(key).or_insert(fresh);
        if partial.header != header || partial.count != count {
            return Err(MalformedFragment::Contradiction(header.frame, header.layer));
        }
        if !partial.parts.contains_key(&index) {
            partial.bytes += part.len();
            self.bytes += part.len();
            partial.parts.insert(index, part.to_vec());
        }
        if partial.parts.len() < usize::from(count) {
            self.make_room();
            return Ok(None);
        }
        let whole = self.take(key).filter(|whole| whole.bytes <= LARGEST);
        Ok(whole.map(|whole| (header, whole.parts.into_values().flatten().collect())))
    }

    /// Forgets layers of frames before `frame`: nobody waits for them.
    pub fn forget_before(&mut self, frame: u32) {
        while let Some((key, _)) = self.waiting.first_key_value().filter(|((first, _), _)| *first < frame) {
            self.drop_layer(*key);
        }
    }

    /// Layers that were given up with fragments missing.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn make_room(&mut self) {
        while self.waiting.len() > MOST_WAITING || self.bytes > MOST_BYTES {
            let Some((key, _)) = self.waiting.first_key_value() else { return };
            self.drop_layer(*key);
        }
    }

    fn drop_layer(&mut self, key: (u32, usize)) {
        self.dropped += u64::from(self.take(key).is_some());
    }

    fn take(&mut self, key: (u32, usize)) -> Option<Partial> {
        let partial = self.waiting.remove(&key)?;
        self.bytes -= partial.bytes;
        Some(partial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Reference;
    use proptest::prelude::*;
    use std::time::Duration;

    fn header(frame: u32, layer: usize) -> LayerHeader {
        LayerHeader { frame, layer, captured: Duration::from_micros(77), reference: Reference::Fresh }
    }

    fn data(length: usize) -> Vec<u8> {
        (0..length).map(|index| (index % 251) as u8).collect()
    }

    #[test]
    fn fragments_fit_and_make_the_layer_again_in_any_order_and_twice() {
        let data = data(5000);
        let mut parts = fragments(&header(3, 1), &data, 1200).expect("it can be cut");
        assert!(parts.len() == 5 && parts.iter().all(|part| part.len() <= 1200));
        parts.reverse();
        let mut reassembly = Reassembly::default();
        for part in &parts[..4] {
            assert_eq!(reassembly.push(part), Ok(None));
            assert_eq!(reassembly.push(part), Ok(None));
        }
        assert_eq!(reassembly.push(&parts[4]), Ok(Some((header(3, 1), data))));
        assert_eq!((reassembly.bytes, reassembly.dropped()), (0, 0));
    }

    #[test]
    fn a_layer_with_a_fragment_missing_is_given_up_and_others_are_not() {
        let mut reassembly = Reassembly::default();
        let parts = fragments(&header(1, 2), &data(3000), 1200).expect("it can be cut");
        assert_eq!(reassembly.push(&parts[0]), Ok(None));
        let other = fragments(&header(2, 0), &data(10), 1200).expect("it can be cut");
        assert_eq!(reassembly.push(&other[0]), Ok(Some((header(2, 0), data(10)))));
        reassembly.forget_before(2);
        assert_eq!((reassembly.bytes, reassembly.dropped()), (0, 1));
    }

    #[test]
    fn what_waits_is_bounded_whatever_is_sent() {
        // A sender that never completes anything.
        let mut reassembly = Reassembly::default();
        for frame in 0..1000 {
            let parts = fragments(&header(frame, 0), &data(2000), 1200).expect("it can be cut");
            assert_eq!(reassembly.push(&parts[0]), Ok(None));
        }
        assert!(reassembly.waiting.len() <= MOST_WAITING && reassembly.bytes <= MOST_WAITING * 1200);
        for index in 0..500_u16 {
            let mut part = header(5000, 2).encode().to_vec();
            part.extend([index.to_be_bytes(), u16::MAX.to_be_bytes()].concat());
            part.extend([0; 60_000]);
            let _ = reassembly.push(&part);
            assert!(reassembly.bytes <= MOST_BYTES);
        }
    }

    #[test]
    fn what_is_no_fragment_is_told_apart() {
        let mut reassembly = Reassembly::default();
        let [first, ..] = &fragments(&header(1, 1), &data(2000), 1200).expect("it can be cut")[..] else {
            panic!("there is one")
        };
        for length in 0..=HEADER {
            assert!(reassembly.push(&first[..length]).is_err(), "{length}");
        }
        let mut none = first.clone();
        none[HEADER - 3] = 2;
        assert_eq!(reassembly.push(&none), Err(MalformedFragment::NoSuchFragment(2, 2)));
        assert_eq!(reassembly.push(first), Ok(None));
        none[HEADER - 1] = 9;
        assert_eq!(reassembly.push(&none), Err(MalformedFragment::Contradiction(1, 1)));
        assert_eq!(fragments(&header(0, 0), &[], 1200), None);
        assert_eq!(fragments(&header(0, 0), &data(70_000), HEADER + 1), None);
        assert_eq!(fragments(&header(0, 0), &data(1), HEADER), None);
    }

    proptest! {
        #[test]
        fn no_bytes_from_the_network_cause_a_panic(datagrams: Vec<Vec<u8>>) {
            let mut reassembly = Reassembly::default();
            for datagram in &datagrams {
                let _ = reassembly.push(datagram);
            }
        }
    }
}
