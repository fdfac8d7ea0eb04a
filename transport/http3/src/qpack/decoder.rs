//! The decoder: field sections in, by the dynamic table that the peer's encoder fills (RFC 9204 §2.2).

use super::dynamic_table::DynamicTable;
use super::errors::{EncoderStreamError, SectionError};
use super::integers::{Input, ReadFailure, put_integer};
use super::section::{Prefix, Reader};
use super::static_table::FIELDS;
use super::{Field, Limits};
use bytes::{Buf, Bytes, BytesMut};
use std::collections::BTreeMap;

/// A field section that is whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Section {
    /// Its lines.
    Fields(Vec<Field>),
    /// It refers to insertions that did not arrive yet: to be read again once [`Decoder::receive`] names its stream.
    Blocked,
}

/// A decoder of field sections. It holds at most the [capacity](Limits::max_table_capacity) that it was made with, one
/// instruction that is not whole, and a number for each blocked stream.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    pub(super) table: DynamicTable,
    /// The insertions that the streams with a blocked section wait for.
    pub(super) blocked: BTreeMap<u64, u64>,
    /// The beginning of an instruction of the peer's encoder.
    pub(super) instruction: BytesMut,
    /// Instructions to the peer's encoder that were not sent.
    pending: BytesMut,
    /// The insertions that the peer's encoder was told of.
    told: u64,
}

impl Decoder {
    /// Makes a decoder that announces `limits` in SETTINGS (RFC 9204 §5).
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            table: DynamicTable::default(),
            blocked: BTreeMap::new(),
            instruction: BytesMut::new(),
            pending: BytesMut::new(),
            told: 0,
        }
    }

    /// The capacity that the peer's encoder set, in bytes.
    pub fn capacity(&self) -> u64 {
        self.table.capacity()
    }

    /// Follows instructions of the peer's encoder, and returns the streams that are not blocked any more.
    ///
    /// # Errors
    /// An instruction is none, or asks for what may not be: the connection ends with QPACK_ENCODER_STREAM_ERROR.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Vec<u64>, EncoderStreamError> {
        let mut waiting = std::mem::take(&mut self.instruction);
        waiting.extend_from_slice(bytes);
        let mut input = Input(waiting.freeze());
        while let Some(first) = input.first() {
            let before = input.0.clone();
            match self.follow(first, &mut input) {
                Ok(()) => {}
                Err(Refusal::ReadFailure(ReadFailure::Incomplete)) => {
                    self.instruction = BytesMut::from(&before[..]);
                    break;
                }
                Err(Refusal::ReadFailure(_)) => {
                    return Err(EncoderStreamError("an instruction that is none, or an entry without room"));
                }
                Err(Refusal::Wrong(reason)) => return Err(EncoderStreamError(reason)),
            }
        }
        let inserted = self.table.inserted();
        if inserted > self.told {
            // RFC 9204 §4.4.3: told at once, for an encoder that blocks nobody waits for it.
            put_integer(inserted - self.told, 6, 0, &mut self.pending);
            self.told = inserted;
        }
        let unblocked: Vec<u64> = self
            .blocked
            .iter()
            .filter(|(_, required)| **required <= inserted)
            .map(|(stream, _)| *stream)
            .collect();
        self.blocked.retain(|_, required| *required > inserted);
        Ok(unblocked)
    }

    /// Reads the field section `block` of `stream`, whose names and values and 32 bytes for each line are together no more than
    /// `limit` bytes.
    ///
    /// # Errors
    /// See [`SectionError`].
    pub fn section(&mut self, stream: u64, block: Bytes, limit: u64) -> Result<Section, SectionError> {
        let mut input = Input(block);
        let prefix = Prefix::read(&mut input, self.limits.max_table_capacity, self.table.inserted())?;
        if prefix.required > self.table.inserted() {
            self.block(stream, prefix.required)?;
            return Ok(Section::Blocked);
        }
        self.blocked.remove(&stream);
        let fields = Reader::new(input, limit, Some((&self.table, prefix))).lines()?;
        //= https://www.rfc-editor.org/rfc/rfc9204#section-2.2.2.1
        //# it MUST emit a Section Acknowledgment instruction (Section 4.4.1).
        if prefix.required > 0 {
            // RFC 9204 §4.4.1: an acknowledgement tells of the insertions, too.
            put_integer(stream, 7, 0b1000_0000, &mut self.pending);
            self.told = self.told.max(prefix.required);
        }
        Ok(Section::Fields(fields))
    }

    /// Tells the peer that no more sections of `stream` are read (RFC 9204 §2.2.2.2). Of no effect without a dynamic table.
    pub fn cancel(&mut self, stream: u64) {
        self.blocked.remove(&stream);
        if self.limits.max_table_capacity > 0 {
            put_integer(stream, 6, 0b0100_0000, &mut self.pending);
        }
    }

    /// Bytes of the decoder stream that were not sent.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// Notes that `bytes` of [what was pending](Self::pending) are sent.
    pub fn on_sent(&mut self, bytes: usize) {
        self.pending.advance(bytes.min(self.pending.len()));
        if self.pending.is_empty() {
            self.pending = BytesMut::new();
        }
    }

    /// Notes that `stream` waits for `required` insertions.
    fn block(&mut self, stream: u64, required: u64) -> Result<(), SectionError> {
        let most = usize::try_from(self.limits.max_blocked_streams).unwrap_or(usize::MAX);
        // RFC 9204 §2.1.2: an encoder that blocks more breaks its word.
        //= https://www.rfc-editor.org/rfc/rfc9204#section-2.1.2
        //# If a decoder encounters more blocked streams than it promised to support, it MUST treat this
        //# as a connection error of type QPACK_DECOMPRESSION_FAILED.
        if !self.blocked.contains_key(&stream) && self.blocked.len() >= most {
            return Err(SectionError::Malformed);
        }
        self.blocked.insert(stream, required);
        Ok(())
    }

    /// Follows the instruction that begins with the byte `first` (RFC 9204 §4.3), if it is whole.
    fn follow(&mut self, first: u8, input: &mut Input) -> Result<(), Refusal> {
        let most = self.limits.max_table_capacity;
        let field = match first {
            0b1000_0000.. => {
                let index = input.integer(6)?;
                let value = input.string(7, most)?;
                let name = self.name(index, first & 0b0100_0000 != 0)?;
                own(name, &value.decode(most)?)
            }
            0b0100_0000..=0b0111_1111 => {
                let name = input.string(5, most)?;
                let value = input.string(7, most)?;
                let (name, value) = (name.decode(most)?, value.decode(most)?);
                own(Bytes::copy_from_slice(&name), &value)
            }
            0b0010_0000..=0b0011_1111 => {
                let capacity = input.integer(5)?;
                //= https://www.rfc-editor.org/rfc/rfc9204#section-4.3.1
                //# The decoder MUST treat a new dynamic table capacity value that exceeds this limit as
                //# a connection error of type QPACK_ENCODER_STREAM_ERROR.
                if capacity > most {
                    return Err(Refusal::Wrong("a capacity above the limit"));
                }
                self.table.set_capacity(capacity);
                return Ok(());
            }
            _ => {
                let index = input.integer(5)?;
                //= https://www.rfc-editor.org/rfc/rfc9204#section-3.2
                //# duplicate entries MUST NOT be treated as an error by the decoder.
                self.relative(index)?.clone()
            }
        };
        match self.table.insert(field) {
            Ok(_) => Ok(()),
            //= https://www.rfc-editor.org/rfc/rfc9204#section-3.2.2
            //# the decoder MUST treat this as a connection error of type QPACK_ENCODER_STREAM_ERROR.
            Err(_) => Err(Refusal::Wrong("an entry that is larger than the table")),
        }
    }

    /// The name of an entry of the static or the dynamic table.
    fn name(&self, index: u64, is_static: bool) -> Result<Bytes, Refusal> {
        if !is_static {
            return Ok(self.relative(index)?.name.clone());
        }
        let known = usize::try_from(index).ok().and_then(|index| FIELDS.get(index));
        //= https://www.rfc-editor.org/rfc/rfc9204#section-3.1
        //# this MUST be treated as a connection error of type QPACK_ENCODER_STREAM_ERROR.
        let (name, _) = known.ok_or(Refusal::Wrong("an index beyond the static table"))?;
        Ok(Bytes::from_static(name.as_bytes()))
    }

    /// The entry before the next by so many more (RFC 9204 §3.2.5).
    fn relative(&self, index: u64) -> Result<&Field, Refusal> {
        let absolute = self.table.inserted().checked_sub(1).and_then(|newest| newest.checked_sub(index));
        let entry = absolute.and_then(|absolute| self.table.get(absolute));
        //= https://www.rfc-editor.org/rfc/rfc9204#section-2.2.3
        //# it MUST treat this as a connection error of type QPACK_ENCODER_STREAM_ERROR.
        entry.ok_or(Refusal::Wrong("an index of an entry that is not there"))
    }
}

/// A field of the table: it keeps nothing else that came with its value.
fn own(name: Bytes, value: &[u8]) -> Field {
    Field { name, value: Bytes::copy_from_slice(value) }
}

/// The reason for which an instruction is not followed.
enum Refusal {
    ReadFailure(ReadFailure),
    Wrong(&'static str),
}

impl From<ReadFailure> for Refusal {
    fn from(unread: ReadFailure) -> Self {
        Self::ReadFailure(unread)
    }
}
