//! PATH_HINTS: what an endpoint knows of a path's channel (docs/spec/path-hints.md §4).

use super::decode_error::DecodeError;
use super::path;
use super::sink::Sink;
use crate::PathId;
use crate::wire::cursor::Reader;
use crate::wire::varint;
use hvq_scheduler::{Bandwidth, Hints, Metering, PerMille, Sharing};
use std::time::Duration;

/// The Rate From Sender field is there.
const RATE_FROM: u64 = 0x01;
/// The Rate To Sender field is there.
const RATE_TO: u64 = 0x02;
/// The Delay field is there.
const DELAY: u64 = 0x04;
/// The Loss field is there.
const LOSS: u64 = 0x08;
/// The Price field is there.
const PRICE: u64 = 0x10;
/// The lower of two bits with the sharing of the channel.
const SHARING_SHIFT: u32 = 5;
/// The lower of two bits with its metering.
const METERING_SHIFT: u32 = 7;
/// All bits that mean something.
const KNOWN: u64 = 0x1ff;
/// The Loss field of a channel that delivers nothing: losses are counted in a million.
const ALL_LOST: u64 = 1_000_000;
/// Losses in a million that are one in a thousand.
const PER_MILLE: u64 = 1000;

/// The hints of one end about a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathHints {
    /// The path.
    pub path: PathId,
    /// Orders the frames about the path: only one with a higher number than all before counts.
    pub sequence: u64,
    /// The hints, as the sender of the frame sees the channel. Delays are whole microseconds on the wire. [`Hints::NONE`]
    /// takes back what was said before.
    pub hints: Hints,
}

impl PathHints {
    /// FRAME_ENCODING_ERROR for flags that mean nothing, and for more losses than packets.
    pub(super) fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        let path = path::id(reader)?;
        let sequence = reader.varint()?;
        let flags = reader.varint()?;
        if flags & !KNOWN != 0 {
            return Err(DecodeError::encoding("hints that are not known"));
        }
        let mut field = |bit| if flags & bit == 0 { Ok(None) } else { reader.varint().map(Some) };
        let rate = field(RATE_FROM)?.map(Bandwidth::from_bits_per_second);
        let rate_back = field(RATE_TO)?.map(Bandwidth::from_bits_per_second);
        let delay = field(DELAY)?.map(Duration::from_micros);
        let loss = field(LOSS)?.map(loss).transpose()?;
        let price_per_byte = field(PRICE)?;
        let shared = match flags >> SHARING_SHIFT & 3 {
            0 => Sharing::Unknown,
            1 => Sharing::Shared,
            2 => Sharing::Endpoint,
            _ => Sharing::Dedicated,
        };
        let metering = match flags >> METERING_SHIFT & 3 {
            0 => Metering::Unknown,
            1 => Metering::Unmetered,
            2 => Metering::Metered,
            _ => return Err(DecodeError::encoding("metering that is not known")),
        };
        Ok(Self {
            path,
            sequence,
            hints: Hints { rate, rate_back, delay, loss, price_per_byte, shared, metering },
        })
    }

    pub(super) fn write(&self, sink: &mut impl Sink) {
        let Hints { rate, rate_back, delay, loss, price_per_byte, shared, metering } = self.hints;
        let fields = [
            (RATE_FROM, rate.map(Bandwidth::bits_per_second)),
            (RATE_TO, rate_back.map(Bandwidth::bits_per_second)),
            (DELAY, delay.map(|delay| u64::try_from(delay.as_micros()).unwrap_or(varint::MAX))),
            (LOSS, loss.map(|loss| u64::from(loss.get()) * PER_MILLE)),
            (PRICE, price_per_byte),
        ];
        let sharing = match shared {
            Sharing::Unknown => 0,
            Sharing::Shared => 1,
            Sharing::Endpoint => 2,
            Sharing::Dedicated => 3,
        };
        let metering = match metering {
            Metering::Unknown => 0,
            Metering::Unmetered => 1,
            Metering::Metered => 2,
        };
        let present =
            fields.iter().filter(|(_, value)| value.is_some()).fold(0, |flags, (bit, _)| flags | bit);
        sink.varints(&[self.path.0.into(), self.sequence]);
        sink.varint(present | sharing << SHARING_SHIFT | metering << METERING_SHIFT);
        fields.iter().filter_map(|(_, value)| *value).for_each(|value| sink.varint(value));
    }
}

fn loss(in_a_million: u64) -> Result<PerMille, DecodeError> {
    if in_a_million > ALL_LOST {
        return Err(DecodeError::encoding("more losses than packets"));
    }
    Ok(PerMille::new(u16::try_from(in_a_million / PER_MILLE).unwrap_or(u16::MAX)))
}
