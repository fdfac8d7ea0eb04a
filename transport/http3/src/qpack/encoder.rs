//! The encoder: field sections out, by a dynamic table at the peer (RFC 9204 §2.1).

use super::dynamic_table::{DynamicTable, size};
use super::errors::DecoderStreamError;
use super::index::Index;
use super::integers::{Input, ReadFailure, put_integer, put_string};
use super::references::{Reference, References};
use super::static_table::{Known, find};
use super::write::{self, Line};
use super::{FIELD_OVERHEAD, Field, Limits};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Instructions that may wait to be sent, in bytes: with more, nothing is inserted.
const MOST_PENDING: usize = 16 << 10;
/// A cookie of fewer bytes is not put into the table, nor are credentials: who sees sizes could guess them (RFC 9204 §7.1).
const GUESSABLE_COOKIE: usize = 20;

/// Permission for sections to refer to insertions that the peer did not acknowledge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Blocking {
    /// None: no section ever waits for the encoder stream, on whatever path its bytes are.
    #[default]
    Never,
    /// References to insertions that are under way, on up to the number of streams that the peer permits to wait (RFC 9204 §2.1.2).
    Permitted,
}

/// The choices of an encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// The largest capacity of the table that is made use of, in bytes. Default: 4096.
    pub max_capacity: u64,
    /// References to what was not acknowledged. Default: none.
    pub blocking: Blocking,
}

impl Default for Policy {
    /// A table of 4096 bytes; no stream is ever blocked.
    fn default() -> Self {
        Self { max_capacity: 4096, blocking: Blocking::Never }
    }
}

/// An encoder of field sections. It holds the table, the references of 256 sections, and 16 KiB and a section of
/// instructions at most.
#[derive(Debug)]
pub struct Encoder {
    policy: Policy,
    peer: Limits,
    pub(super) table: DynamicTable,
    index: Index,
    pub(super) references: References,
    /// The insertions that the peer acknowledged (Known Received Count).
    pub(super) known: u64,
    /// Instructions that were not sent.
    pending: BytesMut,
    /// The beginning of an instruction of the peer's decoder.
    pub(super) instruction: BytesMut,
}

/// The section that is being written.
struct Open {
    /// The absolute index that relative ones count from: the insertions when it began.
    base: u64,
    /// The insertions that it may refer to.
    usable: u64,
    reference: Option<Reference>,
}

impl Open {
    fn refer(&mut self, absolute: u64) {
        let reference = self.reference.get_or_insert(Reference { required: 0, least: absolute });
        reference.required = reference.required.max(absolute + 1);
        reference.least = reference.least.min(absolute);
    }

    /// Writes a line that is the entry `absolute` (RFC 9204 §4.5.2, §4.5.3).
    fn indexed(&mut self, absolute: u64, to: &mut BytesMut) {
        self.refer(absolute);
        match absolute.checked_sub(self.base) {
            Some(post_base) => put_integer(post_base, 4, 0b0001_0000, to),
            None => put_integer(self.base - 1 - absolute, 6, 0b1000_0000, to),
        }
    }

    /// Writes a line with the name of the entry `absolute` (RFC 9204 §4.5.4, §4.5.5).
    fn named(&mut self, absolute: u64, value: &[u8], to: &mut BytesMut) {
        self.refer(absolute);
        match absolute.checked_sub(self.base) {
            Some(post_base) => put_integer(post_base, 3, 0, to),
            None => put_integer(self.base - 1 - absolute, 4, 0b0100_0000, to),
        }
        put_string(value, 7, 0, to);
    }
}

impl Encoder {
    /// Makes an encoder that does without a table until the peer's [limits](Self::set_peer_limits) are known.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            peer: Limits::default(),
            table: DynamicTable::default(),
            index: Index::default(),
            references: References::default(),
            known: 0,
            pending: BytesMut::new(),
            instruction: BytesMut::new(),
        }
    }

    /// The capacity of the table, in bytes.
    pub fn capacity(&self) -> u64 {
        self.table.capacity()
    }

    /// Uses a table within the limits of the peer's SETTINGS from now on; to be called once.
    pub fn set_peer_limits(&mut self, peer: Limits) {
        //= https://www.rfc-editor.org/rfc/rfc9204#section-3.2.3
        //# The encoder MUST NOT set a dynamic table capacity that exceeds this maximum,
        //= https://www.rfc-editor.org/rfc/rfc9204#section-4.3.1
        //# The new capacity MUST be lower than or equal to the limit described in Section 3.2.3.
        let capacity = self.policy.max_capacity.min(peer.max_table_capacity);
        if capacity < FIELD_OVERHEAD || self.table.capacity() > 0 {
            return;
        }
        self.peer = peer;
        //= https://www.rfc-editor.org/rfc/rfc9204#section-4.3.1
        //= type=implication
        //= reason=The table is empty: a capacity is set once, and never changed.
        //# This MUST NOT cause the eviction of entries that are not evictable;
        self.table.set_capacity(capacity);
        put_integer(capacity, 5, 0b0010_0000, &mut self.pending);
    }

    /// Writes a field section of `stream`, prefix included.
    pub fn section<'a>(&mut self, stream: u64, lines: impl IntoIterator<Item = Line<'a>>, to: &mut BytesMut) {
        //= https://www.rfc-editor.org/rfc/rfc9204#section-3.2.3
        //# the encoder MUST NOT insert entries into the dynamic table and MUST NOT send any encoder
        //# instructions on the encoder stream.
        if self.table.capacity() == 0 || self.references.is_full() {
            return write::write(lines, to);
        }
        let usable = if self.may_block(stream) { u64::MAX } else { self.known };
        let mut open = Open { base: self.table.inserted(), usable, reference: None };
        let mut written = BytesMut::with_capacity(256);
        //= https://www.rfc-editor.org/rfc/rfc9204#section-2.1
        //# An encoder MUST emit field representations in the order they appear in the input field
        //# section.
        for line in lines {
            self.line(line, &mut open, &mut written);
        }
        self.prefix(&open, to);
        to.put_slice(&written);
        if let Some(reference) = open.reference {
            self.references.add(stream, reference);
        }
    }

    /// Follows instructions of the peer's decoder.
    ///
    /// # Errors
    /// An instruction is none, or is about what was not sent: the connection ends with QPACK_DECODER_STREAM_ERROR.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), DecoderStreamError> {
        let mut waiting = std::mem::take(&mut self.instruction);
        waiting.extend_from_slice(bytes);
        let mut input = Input(waiting.freeze());
        while let Some(first) = input.first() {
            let before = input.0.clone();
            // RFC 9204 §4.4.
            let bits = if first & 0b1000_0000 != 0 { 7 } else { 6 };
            match input.integer(bits) {
                Ok(value) => self.follow(first, value)?,
                Err(ReadFailure::Incomplete) => {
                    self.instruction = BytesMut::from(&before[..]);
                    break;
                }
                //= https://www.rfc-editor.org/rfc/rfc9204#section-7.4
                //# this MUST be treated as a stream error of type QPACK_DECOMPRESSION_FAILED if on a
                //# request stream or a connection error of the appropriate type if on the encoder or
                //# decoder stream.
                Err(_) => return Err(DecoderStreamError("an instruction that is none")),
            }
        }
        Ok(())
    }

    /// Bytes of the encoder stream that were not sent.
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

    fn follow(&mut self, first: u8, value: u64) -> Result<(), DecoderStreamError> {
        match first {
            0b1000_0000.. => {
                let required = self.references.acknowledge(value);
                //= https://www.rfc-editor.org/rfc/rfc9204#section-4.4.1
                //# this MUST be treated as a connection error of type QPACK_DECODER_STREAM_ERROR.
                let required = required.ok_or(DecoderStreamError("a section that nobody waits for"))?;
                self.known = self.known.max(required);
            }
            0b0100_0000..=0b0111_1111 => self.references.cancel(value),
            _ => {
                //= https://www.rfc-editor.org/rfc/rfc9204#section-4.4.3
                //# An encoder that receives an Increment field equal to zero, or one that increases the
                //# Known Received Count beyond what the encoder has sent, MUST treat this as a
                //# connection error of type QPACK_DECODER_STREAM_ERROR.
                let known = self.known.checked_add(value).filter(|known| *known <= self.table.inserted());
                self.known = known
                    .filter(|_| value > 0)
                    .ok_or(DecoderStreamError("an increment of nothing, or of more than was inserted"))?;
            }
        }
        Ok(())
    }

    /// Returns true if a section of `stream` may wait for insertions (RFC 9204 §2.1.2).
    fn may_block(&self, stream: u64) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9204#section-2.1.2
        //# An encoder MUST limit the number of streams that could become blocked to the value of
        //# SETTINGS_QPACK_BLOCKED_STREAMS at all times.
        self.policy.blocking == Blocking::Permitted
            && (self.references.is_blocked(stream, self.known)
                || self.references.blocked(self.known) < self.peer.max_blocked_streams)
    }

    /// Writes the prefix of a section (RFC 9204 §4.5.1).
    fn prefix(&self, open: &Open, to: &mut BytesMut) {
        let Some(Reference { required, .. }) = open.reference else { return write::begin(to) };
        let range = 2 * (self.peer.max_table_capacity / FIELD_OVERHEAD);
        put_integer(required % range + 1, 8, 0, to);
        match open.base.checked_sub(required) {
            Some(delta) => put_integer(delta, 7, 0, to),
            None => put_integer(required - open.base - 1, 7, 0b1000_0000, to),
        }
    }

    fn line(&mut self, line: Line<'_>, open: &mut Open, to: &mut BytesMut) {
        if is_secret(line) {
            //= https://www.rfc-editor.org/rfc/rfc9204#section-4.5.4
            //# When the 'N' bit is set, the encoded field line MUST always be encoded with a literal
            //# representation.
            return write::line(Line { is_sensitive: true, ..line }, to);
        }
        let known = find(line.name, line.value);
        if let Some(Known::Field(index)) = known {
            return write::indexed(index, to);
        }
        let name = line.name.as_bytes();
        if let Some(place) = self.index.field(&self.table, name, line.value) {
            let original = place.original.filter(|original| *original >= self.table.oldest());
            let usable = [Some(place.newest), original].into_iter().flatten();
            if let Some(absolute) = usable.into_iter().find(|absolute| *absolute < open.usable) {
                open.indexed(absolute, to);
                if absolute == place.newest {
                    self.refresh(absolute, open);
                }
                return;
            }
        } else if self.index.is_worth(&self.table, line.name, line.value)
            && let Some(absolute) = self.insert(line, known, open)
            && absolute < open.usable
        {
            return open.indexed(absolute, to);
        }
        if let Some(Known::Name(index)) = known {
            return write::with_static_name(index, line, to);
        }
        match self.index.name(&self.table, name).filter(|absolute| *absolute < open.usable) {
            Some(absolute) => open.named(absolute, line.value, to),
            None => write::literal(line, to),
        }
    }

    /// Inserts a field, if that is possible without evicting what is in use; returns its absolute index.
    fn insert(&mut self, line: Line<'_>, known: Option<Known>, open: &Open) -> Option<u64> {
        let name = line.name.as_bytes();
        let oldest = self.room(size(name, line.value), open)?;
        let dynamic = self.index.name(&self.table, name).filter(|absolute| *absolute >= oldest);
        match (known, dynamic) {
            (Some(Known::Name(index) | Known::Field(index)), _) => {
                put_integer(index.into(), 6, 0b1100_0000, &mut self.pending);
            }
            (None, Some(absolute)) => {
                let relative = self.table.inserted() - 1 - absolute;
                put_integer(relative, 6, 0b1000_0000, &mut self.pending);
            }
            (None, None) => put_string(name, 5, 0b0100_0000, &mut self.pending),
        }
        put_string(line.value, 7, 0, &mut self.pending);
        let field = Field { name: Bytes::copy_from_slice(name), value: Bytes::copy_from_slice(line.value) };
        self.put(field, oldest, None)
    }

    /// Inserts the entry `absolute` again if it is among the oldest, so that it can be referred to further (RFC 9204 §2.1.1.1).
    fn refresh(&mut self, absolute: u64, open: &Open) {
        let Some(field) = self.table.get(absolute).cloned() else { return };
        let size = size(&field.name, &field.value);
        // Early enough that nothing has to give way for it: an entry that is in use keeps its place.
        let is_full = self.table.size() > self.table.capacity() / 4 * 3;
        let entries = self.table.inserted() - self.table.oldest();
        if !is_full || absolute - self.table.oldest() >= entries / 4 {
            return;
        }
        if let Some(oldest) = self.room(size, open) {
            put_integer(self.table.inserted() - 1 - absolute, 5, 0, &mut self.pending);
            self.put(field, oldest, Some(absolute));
        }
    }

    /// The absolute index that will be the oldest once there is room for an entry of `size`; `None` if something is in the way
    /// that was not acknowledged or is referred to (RFC 9204 §2.1.1).
    fn room(&self, size: u64, open: &Open) -> Option<u64> {
        // What takes more than half of the table drives everything else out.
        if size > self.table.capacity() / 2 || self.pending.len() > MOST_PENDING {
            return None;
        }
        let least = open.reference.map(|reference| reference.least);
        let bound = [self.references.least(), least].into_iter().flatten().fold(self.known, u64::min);
        let (mut oldest, mut taken) = (self.table.oldest(), self.table.size());
        while taken + size > self.table.capacity() {
            //= https://www.rfc-editor.org/rfc/rfc9204#section-2.1.1
            //# the encoder MUST NOT insert that entry into the dynamic table (including duplicates of
            //# existing entries).
            //= https://www.rfc-editor.org/rfc/rfc9204#section-3.2.2
            //# The encoder MUST NOT cause a dynamic table entry to be evicted unless that entry is
            //# evictable;
            let evicted = self.table.get(oldest).filter(|_| oldest < bound)?;
            taken -= self::size(&evicted.name, &evicted.value);
            oldest += 1;
        }
        Some(oldest)
    }

    /// Puts `field` into the table, in which the entries before `oldest` give way.
    fn put(&mut self, field: Field, oldest: u64, original: Option<u64>) -> Option<u64> {
        while self.table.oldest() < oldest {
            let absolute = self.table.oldest();
            let evicted = self.table.evict()?;
            self.index.remove(&evicted, absolute);
        }
        let absolute = self.table.insert(field.clone()).ok()?;
        self.index.add(&field, absolute, original);
        Some(absolute)
    }
}

/// Returns true for what somebody might guess who sees the sizes of sections.
fn is_secret(line: Line<'_>) -> bool {
    match line.name {
        "authorization" | "proxy-authorization" => true,
        "cookie" => line.is_sensitive || line.value.len() < GUESSABLE_COOKIE,
        _ => line.is_sensitive,
    }
}
