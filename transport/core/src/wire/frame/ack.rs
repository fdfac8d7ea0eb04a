//! ACK (RFC 9000 §19.3) and PATH_ACK (RFC 10069 §4.1).

use super::decode_error::DecodeError;
use super::sink::Sink;
use super::types;
use crate::PathId;
use crate::ranges::Ranges;
use crate::wire::cursor::{Reader, SliceReader};
use crate::wire::varint;
use bytes::Bytes;
use smallvec::SmallVec;
use std::fmt;
use std::ops::RangeInclusive;

/// An acknowledgement of packets of one packet number space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The path whose packets are acknowledged; `None` is the frame of RFC 9000, which means path 0.
    pub path: Option<PathId>,
    /// The largest packet number acknowledged, always that of `ranges`.
    pub largest: u64,
    /// The time for which the sender kept the acknowledgement, in units of 2^`ack_delay_exponent` microseconds.
    pub delay: u64,
    /// The packet numbers.
    pub ranges: AckRanges,
    /// The totals of the ECN codepoints seen, if the frame has them.
    pub ecn: Option<EcnCounts>,
}

/// The numbers of packets of a packet number space that arrived with each ECN codepoint (RFC 9000 §19.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct EcnCounts {
    /// Packets with ECT(0).
    pub ect0: u64,
    /// Packets with ECT(1).
    pub ect1: u64,
    /// Packets with ECN-CE: congestion was experienced.
    pub ce: u64,
}

impl Ack {
    /// The acknowledgement of the newest of `ranges` that fit in a frame of at most `room` bytes, `None` if there are
    /// none or not even one fits.
    pub fn from_ranges(
        path: Option<PathId>,
        ranges: &Ranges,
        delay: u64,
        ecn: Option<EcnCounts>,
        room: usize,
    ) -> Option<Self> {
        let path_size = path.map_or(0, |path| varint::size(path.0.into()));
        let ecn_size = ecn.map_or(0, |ecn| ecn.values().into_iter().map(varint::size).sum());
        let budget = room.checked_sub(1 + path_size + varint::size(delay) + ecn_size)?;
        let ranges = AckRanges::from_ranges(ranges, budget)?;
        Some(Self { path, largest: ranges.largest(), delay, ranges, ecn })
    }

    pub(super) fn frame_type(&self) -> u64 {
        match (self.path, self.ecn) {
            (None, None) => types::ACK,
            (None, Some(_)) => types::ACK_ECN,
            (Some(_), None) => types::PATH_ACK,
            (Some(_), Some(_)) => types::PATH_ACK_ECN,
        }
    }

    /// Reads what follows a `frame_type` that is one of the four.
    pub(super) fn read(frame_type: u64, reader: &mut Reader) -> Result<Self, DecodeError> {
        let path = match frame_type {
            types::ACK | types::ACK_ECN => None,
            _ => Some(DecodeError::path(reader.varint()?)?),
        };
        let largest = reader.varint()?;
        let delay = reader.varint()?;
        let ranges = AckRanges::read(largest, reader)?;
        let ecn = match frame_type {
            types::ACK | types::PATH_ACK => None,
            //= https://www.rfc-editor.org/rfc/rfc9000#section-19.3
            //# QUIC implementations MUST properly handle both types, and, if they have enabled ECN for
            //# packets they send, they SHOULD use the information in the ECN section to manage their
            //# congestion state.
            _ => Some(EcnCounts { ect0: reader.varint()?, ect1: reader.varint()?, ce: reader.varint()? }),
        };
        Ok(Self { path, largest, delay, ranges, ecn })
    }

    pub(super) fn write(&self, sink: &mut impl Sink) {
        debug_assert_eq!(self.largest, self.ranges.largest(), "the ranges end with the largest");
        sink.path(self.path);
        sink.varints(&[self.ranges.largest, self.delay, self.ranges.additional]);
        sink.bytes(self.ranges.encoded.as_slice());
        if let Some(ecn) = self.ecn {
            sink.varints(&ecn.values());
        }
    }
}

impl EcnCounts {
    fn values(self) -> [u64; 3] {
        [self.ect0, self.ect1, self.ce]
    }
}

/// The packet numbers of an acknowledgement: at least one range, all valid. Kept as they are on the wire, so that
/// receiving them copies nothing and allocates nothing.
#[derive(Clone)]
pub struct AckRanges {
    largest: u64,
    /// The number of ranges that follow the first one: ACK Range Count.
    additional: u64,
    /// First ACK Range, then Gap and ACK Range Length `additional` times; checked to stay at or above 0.
    encoded: Encoded,
}

/// Varints, from a packet or for one.
#[derive(Clone)]
enum Encoded {
    Received(Bytes),
    Built(SmallVec<[u8; 32]>),
}

impl Encoded {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Received(bytes) => bytes,
            Self::Built(bytes) => bytes,
        }
    }
}

impl AckRanges {
    /// The newest of `ranges`, as many as fit in `budget` bytes for Largest Acknowledged, ACK Range Count, First ACK
    /// Range and ACK Ranges; `None` if not even one fits. The others have been reported before, or are too old to
    /// matter (RFC 9000 §13.2.3).
    pub fn from_ranges(ranges: &Ranges, budget: usize) -> Option<Self> {
        let mut descending = ranges.iter().rev();
        let (mut smallest, largest) = descending.next()?.into_inner();
        let mut encoded = SmallVec::new();
        append(&mut encoded, &[largest - smallest]);
        let mut additional = 0;
        let size = |encoded: usize, additional| varint::size(largest) + varint::size(additional) + encoded;
        if size(encoded.len(), additional) > budget {
            return None;
        }
        for range in descending {
            let (first, last) = range.into_inner();
            // `Ranges` leaves at least one number between neighbours, so that this is at least 0.
            let gap = smallest - last - 2;
            let grown = encoded.len() + varint::size(gap) + varint::size(last - first);
            if size(grown, additional + 1) > budget {
                break;
            }
            append(&mut encoded, &[gap, last - first]);
            additional += 1;
            smallest = first;
        }
        Some(Self { largest, additional, encoded: Encoded::Built(encoded) })
    }

    /// Takes ACK Range Count and what follows it. The work is bounded by the bytes present, whatever the count says.
    fn read(largest: u64, reader: &mut Reader) -> Result<Self, DecodeError> {
        let additional = reader.varint()?;
        let size = reader.as_slice().len();
        let left = check(largest, additional, SliceReader::new(reader.as_slice()))?;
        let encoded = Encoded::Received(reader.bytes(size - left)?);
        Ok(Self { largest, additional, encoded })
    }

    /// The largest packet number.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Returns the number of ranges, at least one.
    pub fn count(&self) -> u64 {
        self.additional.saturating_add(1)
    }

    /// The ranges, from the largest packet numbers to the smallest.
    pub fn iter(&self) -> AckRangeIter<'_> {
        AckRangeIter { next: Next::First(self.largest), encoded: SliceReader::new(self.encoded.as_slice()) }
    }
}

fn append(encoded: &mut SmallVec<[u8; 32]>, values: &[u64]) {
    values.iter().for_each(|&value| varint::encode(value, |bytes| encoded.extend_from_slice(bytes)));
}

/// Checks the ranges and returns how many bytes follow them.
fn check(largest: u64, additional: u64, mut reader: SliceReader<'_>) -> Result<usize, DecodeError> {
    const BELOW_ZERO: DecodeError = DecodeError::encoding("acknowledged packet numbers below 0");
    let first_range = reader.varint()?;
    //= https://www.rfc-editor.org/rfc/rfc9000#section-19.3.1
    //# If any computed packet number is negative, an endpoint MUST generate a connection error of type
    //# FRAME_ENCODING_ERROR.
    let mut smallest = largest.checked_sub(first_range).ok_or(BELOW_ZERO)?;
    // Every turn takes at least two bytes or ends the loop.
    for _ in 0..additional {
        let gap = reader.varint()?;
        let length = reader.varint()?;
        let largest = smallest.checked_sub(gap).and_then(|n| n.checked_sub(2)).ok_or(BELOW_ZERO)?;
        smallest = largest.checked_sub(length).ok_or(BELOW_ZERO)?;
    }
    Ok(reader.remaining())
}

/// Iterates over [`AckRanges`], descending.
#[derive(Clone, Debug)]
pub struct AckRangeIter<'a> {
    next: Next,
    encoded: SliceReader<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    /// The range that ends with this number.
    First(u64),
    /// A gap below this number, then a range.
    Below(u64),
}

impl Iterator for AckRangeIter<'_> {
    type Item = RangeInclusive<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        let largest = match self.next {
            Next::First(largest) => largest,
            Next::Below(smallest) => smallest.checked_sub(self.encoded.varint().ok()?)?.checked_sub(2)?,
        };
        let smallest = largest.checked_sub(self.encoded.varint().ok()?)?;
        self.next = Next::Below(smallest);
        Some(smallest..=largest)
    }
}

impl<'a> IntoIterator for &'a AckRanges {
    type Item = RangeInclusive<u64>;
    type IntoIter = AckRangeIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Equal if the packet numbers are, even if one was encoded with more bytes than necessary.
impl PartialEq for AckRanges {
    fn eq(&self, other: &Self) -> bool {
        self.largest == other.largest && self.additional == other.additional && self.iter().eq(other.iter())
    }
}

impl Eq for AckRanges {}

impl fmt::Debug for AckRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
