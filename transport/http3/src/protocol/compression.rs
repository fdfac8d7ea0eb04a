//! Field compression of a connection (RFC 9204): encoder and decoder, and the streams that carry their instructions.

use super::control::Violation;
use super::own_stream::OwnStream;
use crate::Code;
use crate::qpack::{self, Decoder, Encoder, Field, Limits, Line, Policy, Section, SectionError};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::task::{Context, Poll, Waker};

/// Instructions to the peer's encoder that may wait to be sent, in bytes: a peer that makes for more of them and takes none
/// loses its connection.
const MOST_PENDING: usize = 4 << 10;
/// Bytes of memory that an entry takes at most for each byte that it counts in the capacity of a table (RFC 9204 §3.2.1).
const MEMORY_FACTOR: u64 = 4;

/// Encoder and decoder, without I/O.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The encoder, once the peer offers a table or speaks of one: most connections that rest have none.
    encoder: Option<Box<Encoder>>,
    policy: Policy,
    decoder: Decoder,
    /// Streams whose sections can be read now.
    unblocked: Vec<u64>,
}

impl Tables {
    pub(crate) fn new(limits: Limits, policy: Policy) -> Self {
        Self { encoder: None, policy, decoder: Decoder::new(limits), unblocked: Vec::new() }
    }

    fn encoder(&mut self) -> &mut Encoder {
        let policy = self.policy;
        self.encoder.get_or_insert_with(|| Box::new(Encoder::new(policy)))
    }

    /// Follows bytes of the peer's encoder stream.
    pub(crate) fn on_encoder_stream(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let unblocked = self.decoder.receive(bytes);
        let unblocked = unblocked.map_err(|error| Violation(Code::QPACK_ENCODER_STREAM_ERROR, error.0))?;
        self.unblocked.extend(unblocked);
        Ok(())
    }

    /// Follows bytes of the peer's decoder stream.
    pub(crate) fn on_decoder_stream(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        let followed = self.encoder().receive(bytes);
        followed.map_err(|error| Violation(Code::QPACK_DECODER_STREAM_ERROR, error.0))
    }

    /// The memory that both tables may take, in bytes.
    fn memory(&self) -> usize {
        let capacity = self.encoder.as_ref().map_or(0, |encoder| encoder.capacity());
        let capacity = capacity.saturating_add(self.decoder.capacity());
        usize::try_from(capacity.saturating_mul(MEMORY_FACTOR)).unwrap_or(usize::MAX)
    }
}

/// Encoder and decoder with their streams.
#[derive(Debug)]
pub(crate) struct Compression {
    pub(crate) tables: Tables,
    encoder_stream: OwnStream,
    decoder_stream: OwnStream,
    /// Those who wait for insertions, by stream.
    waiting: BTreeMap<u64, Waker>,
    /// The task that watches the connection, and sends what could not be sent at once.
    watch: Option<Waker>,
    /// Bytes that were charged to the connection's account of memory.
    charged: usize,
}

impl Compression {
    pub(crate) fn new(limits: Limits, policy: Policy) -> Self {
        Self {
            tables: Tables::new(limits, policy),
            encoder_stream: OwnStream::new(0x02),
            decoder_stream: OwnStream::new(0x03),
            waiting: BTreeMap::new(),
            watch: None,
            charged: 0,
        }
    }

    /// Notices a peer that wants none of a stream of instructions (RFC 9204 §4.2).
    pub(crate) fn check_wanted(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.encoder_stream.check_wanted(context)?;
        self.decoder_stream.check_wanted(context)
    }

    /// The task that watches the connection, if one does.
    pub(crate) fn watcher(&self) -> Option<Waker> {
        self.watch.clone()
    }

    /// Remembers the task that watches the connection.
    pub(crate) fn watched_by(&mut self, waker: &Waker) {
        match &mut self.watch {
            Some(watch) => watch.clone_from(waker),
            watch => *watch = Some(waker.clone()),
        }
    }

    /// Uses a table within the limits that the peer announced, if there is memory for it.
    pub(crate) fn set_peer_limits(&mut self, limits: Limits, connection: &hvq::Connection) {
        if limits.max_table_capacity == 0 {
            return;
        }
        self.tables.encoder().set_peer_limits(limits);
        if self.account(connection).is_err() {
            // Nothing of it was sent yet.
            self.tables.encoder = None;
        }
    }

    /// Writes a field section of `stream`; the instructions that belong to it are sent before it is.
    pub(crate) fn section<'a>(
        &mut self,
        stream: u64,
        lines: impl Iterator<Item = Line<'a>>,
        to: &mut BytesMut,
        connection: &hvq::Connection,
    ) -> Result<(), Violation> {
        match &mut self.tables.encoder {
            Some(encoder) => encoder.section(stream, lines, to),
            None => {
                qpack::write(lines, to);
                return Ok(());
            }
        }
        self.flush(connection)
    }

    /// Reads a field section of `stream`; ready once all insertions that it needs are there.
    pub(crate) fn poll_section(
        &mut self,
        stream: u64,
        block: Bytes,
        limit: u64,
        context: &mut Context<'_>,
    ) -> Poll<Result<Vec<Field>, SectionError>> {
        match self.tables.decoder.section(stream, block, limit) {
            Ok(Section::Fields(fields)) => Poll::Ready(Ok(fields)),
            Ok(Section::Blocked) => {
                self.waiting.insert(stream, context.waker().clone());
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// No more sections of `stream` are read.
    pub(crate) fn cancel(&mut self, stream: u64, connection: &hvq::Connection) -> Result<(), Violation> {
        self.waiting.remove(&stream);
        self.tables.decoder.cancel(stream);
        self.flush(connection)
    }

    /// Charges the tables to the connection's account of memory.
    fn account(&mut self, connection: &hvq::Connection) -> Result<(), Violation> {
        let memory = self.tables.memory();
        if memory < self.charged {
            connection.discharge_memory(self.charged - memory);
        } else if memory > self.charged
            && !connection.charge_memory(memory - self.charged)
            && connection.close_reason().is_none()
        {
            return Err(Violation(Code::H3_EXCESSIVE_LOAD, "no memory for a dynamic table"));
        }
        self.charged = memory;
        Ok(())
    }

    /// Wakes those whose sections can be read, accounts for the tables, and sends instructions as far as the peer takes them.
    pub(crate) fn flush(&mut self, connection: &hvq::Connection) -> Result<(), Violation> {
        for stream in self.tables.unblocked.drain(..) {
            if let Some(waker) = self.waiting.remove(&stream) {
                waker.wake();
            }
        }
        self.account(connection)?;
        // Until somebody watches, there are no instructions: the peer's settings and tables are unknown.
        let Some(watch) = &self.watch else { return Ok(()) };
        let mut context = Context::from_waker(watch);
        let Tables { encoder, decoder, .. } = &mut self.tables;
        if let Some(encoder) = encoder {
            let sent = self.encoder_stream.send(encoder.pending(), connection, &mut context)?;
            encoder.on_sent(sent);
        }
        let sent = self.decoder_stream.send(decoder.pending(), connection, &mut context)?;
        decoder.on_sent(sent);
        if decoder.pending().len() > MOST_PENDING {
            return Err(Violation(Code::H3_EXCESSIVE_LOAD, "a decoder stream that is not taken"));
        }
        Ok(())
    }
}
