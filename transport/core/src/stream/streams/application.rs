//! Commands of the application.

use super::writers::Held;
use super::{Control, StreamEvent, StreamLimits, Streams};
use crate::stream::meter::{HalfProgress, MeteredHalf, StreamMeter};
use crate::stream::receive::ReceiveHalf;
use crate::stream::send::{Reset, ResetBy, SendHalf};
use crate::time::Instant;
use crate::wire::stream_id::{Direction, StreamId};
use bytes::Bytes;
use hvq_scheduler::{Priority, StreamPriority};

/// The reason for which nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// There is no such stream, it is done, or it cannot be written.
    #[error("no such stream to write to")]
    UnknownStream,
    /// The peer wants no more, and said so with this code.
    #[error("the peer stopped reading (code {0:#x})")]
    Stopped(u64),
    /// The stream was finished or reset here.
    #[error("the stream is already finished or reset")]
    Finished,
    /// The buffer is full; [`Writable`](super::StreamEvent::Writable) follows.
    #[error("the send buffer is full")]
    Blocked,
}

/// The reason for which nothing can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such stream, it is done, or it cannot be read.
    #[error("no such stream to read from")]
    UnknownStream,
    /// The peer reset the stream with this code.
    #[error("the peer reset the stream (code {0:#x})")]
    Reset(u64),
    /// The stream was stopped here.
    #[error("reading was stopped")]
    Stopped,
}

/// The result of a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadOutcome {
    /// The next bytes.
    Data(Bytes),
    /// Nothing yet; [`Readable`](super::StreamEvent::Readable) follows.
    Blocked,
    /// The end.
    Finished,
}

impl Streams {
    /// Opens a stream, `None` if the peer's limit is reached; then [`Available`](super::StreamEvent::Available) follows when it rises.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        match self.local.of_mut(direction).open() {
            Ok(index) => {
                let id = StreamId::new(self.role, direction, index);
                self.create(id);
                Some(id)
            }
            Err(first) => {
                if first {
                    self.control.insert(Control::StreamsBlocked(direction));
                }
                None
            }
        }
    }

    /// The next stream that the peer opened, in the order of IDs.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        let index = self.remote.of_mut(direction).accept()?;
        let id = StreamId::new(self.role.peer(), direction, index);
        if !self.map.contains(id) {
            self.create(id);
        }
        self.notify_reader(id);
        // The peer may have stopped it before anybody here knew of it.
        if let Some(code) = self.send_half(id).and_then(|send| send.stopped()) {
            self.events.push(StreamEvent::Stopped { id, code });
        }
        Some(id)
    }

    /// Returns the number of `wanted` bytes that a write would take now, never 0 unless `wanted` is;
    /// [`Writable`](super::StreamEvent::Writable) follows if it is less.
    pub fn writable(&mut self, id: StreamId, wanted: usize) -> Result<usize, WriteError> {
        self.writer(id)?;
        self.permit(id, wanted)
    }

    /// Appends a copy of the first part of `data` that fits; returns its length, never 0 unless `data` is empty.
    pub fn write(&mut self, id: StreamId, data: &[u8]) -> Result<usize, WriteError> {
        let length = self.writable(id, data.len())?;
        let part = data.get(..length).unwrap_or(data);
        let Some(send) = self.map.get_mut(id).and_then(|stream| stream.send.as_mut()) else { return Ok(0) };
        let before = Held::of(send);
        send.write(part, &mut self.blocks);
        let after = Held::of(send);
        self.writers.on_change(before, after);
        self.relist_if_due(id);
        Ok(length)
    }

    /// Appends the first part of `data` that fits, like [`Self::write`], without copying it unless it is small.
    pub fn write_bytes(&mut self, id: StreamId, mut data: Bytes) -> Result<usize, WriteError> {
        let length = self.writable(id, data.len())?;
        data.truncate(length);
        self.change(id, |send| send.write_bytes(data));
        self.relist_if_due(id);
        Ok(length)
    }

    /// Marks the end of a message at what was written so far. It should arrive by `deadline`, if there is one.
    pub fn end_message(&mut self, id: StreamId, deadline: Option<Instant>) -> Result<(), WriteError> {
        self.writer(id)?.end_message(deadline)
    }

    /// Ends the stream behind what was written so far.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.writer(id)?.finish()?;
        self.relist_if_due(id);
        Ok(())
    }

    /// Abandons the sending half with `code`, but for the first `reliable_size` bytes if the peer supports that. What is
    /// behind them is dropped if it was not sent, and not repeated. Returns the bytes that the peer gets. Does nothing if
    /// all data has arrived or the stream was reset before with as few bytes.
    pub fn reset(&mut self, id: StreamId, code: u64, reliable_size: u64) -> Result<u64, WriteError> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-11.2
        //# RESET_STREAM MUST only be instigated by the application protocol that uses QUIC.
        self.writer(id)?;
        let reliable_size = self.peer.reliable_size(reliable_size);
        let reset = Reset { code, by: ResetBy::Application, reliable_size };
        if self.change(id, |send| send.reset(reset)) == Some(true) {
            self.control.insert(Control::ResetStream(id));
            self.relist(id);
        }
        Ok(self.send_half(id).map_or(0, |send| send.reliable_size()))
    }

    /// Reads at most `max` contiguous bytes.
    ///
    /// Once the end or a reset was reported, the stream may be gone at the next call.
    pub fn read(&mut self, id: StreamId, max: usize) -> Result<ReadOutcome, ReadError> {
        let reader = self.reader(id)?;
        let outcome = reader.read(max);
        match &outcome {
            Ok(ReadOutcome::Data(data)) => {
                let due = reader.renewable().is_some_and(|window| window.renewal_is_due());
                self.window.consume(data.len() as u64);
                self.meters.on_consumed(id, data.len() as u64);
                self.renew(id, due);
            }
            Ok(ReadOutcome::Finished) | Err(_) => self.free_if_done(id),
            Ok(ReadOutcome::Blocked) => {}
        }
        outcome
    }

    /// Reads at most `max` bytes in the order in which they arrived, with their offset.
    pub fn read_unordered(&mut self, id: StreamId, max: usize) -> Result<(u64, ReadOutcome), ReadError> {
        let reader = self.reader(id)?;
        let offset = reader.begin_unordered();
        let outcome = self.read(id, max)?;
        Ok((offset, outcome))
    }

    /// Changes limits, of which those that rose are told to the peer.
    pub fn change_limits(&mut self, change: impl FnOnce(&mut StreamLimits)) {
        let before = self.limits;
        let mut limits = before;
        change(&mut limits);
        self.set_max_streams(Direction::Bidirectional, limits.max_streams_bidi);
        self.set_max_streams(Direction::Unidirectional, limits.max_streams_uni);
        if limits.max_window != before.max_window {
            self.set_receive_window(limits.max_window);
        }
        if limits.send_buffer != before.send_buffer {
            self.set_send_buffer(limits.send_buffer);
        }
        self.limits = limits;
    }

    /// Changes how many streams of `direction` the peer may have open at a time.
    fn set_max_streams(&mut self, direction: Direction, most: u64) {
        if self.remote.of_mut(direction).set_concurrent(most) {
            self.control.insert(Control::MaxStreams(direction));
        }
    }

    /// Changes the largest window of the connection, in bytes.
    fn set_receive_window(&mut self, bytes: u64) {
        self.window.set_max(bytes);
        if self.window.renewal_is_due() {
            self.control.insert(Control::MaxData);
        }
    }

    /// Changes how many bytes of a stream may wait before writing blocks.
    fn set_send_buffer(&mut self, bytes: usize) {
        self.limits.send_buffer = bytes;
        self.send_capacity = self.limits.send_capacity(self.windows);
        let ids: Vec<StreamId> = self.map.ids().collect();
        ids.into_iter().for_each(|id| self.notify_idle_writer(id));
    }

    /// Discards the rest of the stream, and asks the peer to stop sending it, with `code` (RFC 9000 §3.5).
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), ReadError> {
        let discarded = self.reader(id)?.stop(code)?;
        self.on_consumed(id, discarded);
        if self.receive_half(id).is_some_and(|receive| receive.wants_stop().is_some()) {
            self.control.insert(Control::StopSending(id));
        }
        self.free_if_done(id);
        Ok(())
    }

    /// Has `meter` count the bytes of a half of a stream, but for the first `header`. Returns false if the half is gone.
    pub fn meter(&mut self, id: StreamId, half: MeteredHalf, meter: &StreamMeter, header: u64) -> bool {
        let stream = self.map.get(id);
        let so_far = stream.and_then(|stream| match half {
            MeteredHalf::Receive => {
                let window = stream.receive.as_ref()?.window();
                Some(HalfProgress { passed: window.received(), consumed: window.consumed() })
            }
            MeteredHalf::Send => Some(HalfProgress { passed: stream.send.as_ref()?.sent(), consumed: 0 }),
        });
        if let Some(so_far) = so_far {
            self.meters.attach((id, half), meter, header, so_far);
        }
        so_far.is_some()
    }

    /// Sets the priority of what is sent on a stream; an urgency above 7 counts as 7. Ignored for streams that are gone.
    pub fn set_priority(&mut self, id: StreamId, priority: impl Into<StreamPriority>) {
        let StreamPriority { priority, order } = priority.into();
        if let Some(send) = self.send_half(id) {
            send.priority = Priority { urgency: priority.urgency.min(7), ..priority };
            send.order = order;
            self.relist(id);
        }
    }

    /// The priority of what is sent on a stream, the default for streams that are gone.
    pub fn priority(&self, id: StreamId) -> Priority {
        self.map.get(id).and_then(|stream| stream.send.as_ref()).map(|send| send.priority).unwrap_or_default()
    }

    fn writer(&mut self, id: StreamId) -> Result<&mut SendHalf, WriteError> {
        if !self.is_known(id) {
            return Err(WriteError::UnknownStream);
        }
        self.send_half(id).ok_or(WriteError::UnknownStream)
    }

    fn reader(&mut self, id: StreamId) -> Result<&mut ReceiveHalf, ReadError> {
        if !self.is_known(id) {
            return Err(ReadError::UnknownStream);
        }
        self.receive_half(id).ok_or(ReadError::UnknownStream)
    }
}
