//! Data to send: which stream is next, what it offers, and taking it.

use super::writers::Held;
use super::{Control, Interest, Streams};
use crate::PathId;
use crate::stream::priority::SendOrder;
use crate::stream::send::{Piece, SendHalf};
use crate::time::Instant;
use crate::wire::frame::{self, Frame};
use crate::wire::stream_id::StreamId;
use hvq_scheduler::{History, Message, Priority};

/// The offer of a stream: the bytes that it would send next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The stream.
    pub id: StreamId,
    /// The first byte.
    pub offset: u64,
    /// Contiguous bytes of one history within flow control, 0 if only the end is to be sent. They may reach beyond the
    /// end of the message.
    pub bytes: usize,
    /// True if the stream ends behind them.
    pub fin: bool,
    /// RFC 9218 urgency and incremental.
    pub priority: Priority,
    /// The part that is left from `offset` on of the message that contains it, if its end is known. The end of the
    /// stream is the end of a message.
    pub message: Option<Message>,
    /// The time at which all that was sent on the stream is expected to have arrived.
    pub arrival: Instant,
    /// The earlier transmission of the bytes, if there was one.
    pub history: History,
    /// Bytes of fresh data that both limits of the peer still admit (RFC 9000 §4.1).
    pub credit: u64,
}

impl Streams {
    /// Returns true if any stream has something to send within flow control.
    pub fn has_sendable(&self) -> bool {
        self.agenda.has_any(self.credit.available())
    }

    /// Returns true if anything that was sent on a stream is not known to have arrived. Looks at every stream.
    pub fn has_unacknowledged(&self) -> bool {
        self.map.iter().filter_map(|(_, stream)| stream.send.as_ref()).any(SendHalf::has_unacknowledged)
    }

    /// Returns the number of bytes of fresh data that the peer's limit for the connection still admits (RFC 9000 §4.1).
    pub fn credit(&self) -> u64 {
        self.credit.available()
    }

    /// The stream whose turn it is, or the one behind `after`, in the order of RFC 9218 §10: by urgency, then streams
    /// that are not incremental by ID, then incremental ones in turns.
    pub fn next_sendable(&self, after: Option<SendOrder>) -> Option<SendOrder> {
        self.agenda.next(after, self.credit.available())
    }

    /// Returns the piece that a stream would send now: lost data first, then data that is late on a silent path, in the
    /// order of offsets, then new data. `None` if it has nothing to send within flow control.
    #[inline]
    pub fn offer(&self, id: StreamId, now: Instant) -> Option<Offer> {
        let send = self.map.get(id)?.send.as_ref()?;
        let piece = send.next_piece(self.credit.available())?;
        Some(Offer {
            id,
            offset: piece.range.start,
            bytes: usize::try_from(piece.range.end - piece.range.start).unwrap_or(usize::MAX),
            fin: piece.fin,
            priority: send.priority,
            message: send.message(&piece, now),
            arrival: send.arrival,
            history: piece.history,
            credit: self.credit.available().min(send.available()),
        })
    }

    /// A STREAM frame with the start of what [`Self::offer`] returns: at most `most` bytes of data, in a frame of at
    /// most `room` bytes, on path `by`. `None` if nothing fits.
    pub fn take(&mut self, id: StreamId, room: usize, most: usize, by: PathId) -> Option<frame::Stream> {
        let credit = self.credit.available();
        let send = self.map.get_mut(id)?.send.as_mut()?;
        let piece = send.next_piece(credit)?;
        let whole = usize::try_from(piece.range.end - piece.range.start).unwrap_or(usize::MAX);
        let is_ample = whole.saturating_add(frame::Stream::LARGEST_HEADER) <= room;
        let most = if is_ample { most } else { most.min(data_room(id, &piece, room)?) };
        if most == 0 && !piece.range.is_empty() {
            return None;
        }
        let before = Held::of(send);
        let (data, piece) = send.take(piece, most, by, &mut self.blocks);
        let (after, waits) = (Held::of(send), send.interest == Interest::Waiting);
        let Piece { range, fin, history } = piece;
        send.turn = self.agenda.next_turn();
        if history == History::Fresh {
            self.credit.consume(range.end - range.start);
            self.meters.on_sent(id, range.end - range.start);
        }
        let resets = send.is_reset() && send.reset_to_send().is_some();
        self.writers.on_change(before, after);
        if resets {
            // All that is promised was sent: its final size is known now.
            self.control.insert(Control::ResetStream(id));
        }
        self.relist_if_due(id);
        if waits {
            self.notify_idle_writer(id);
        }
        Some(frame::Stream { id, offset: range.start, data, fin })
    }

    /// All that was sent on a stream so far, this included, is expected to have arrived at `arrival`.
    pub fn note_arrival(&mut self, id: StreamId, arrival: Instant) {
        if let Some(send) = self.send_half(id) {
            send.arrival = send.arrival.max(arrival);
        }
    }
}

/// Data bytes that a frame with `piece` can have, `None` if not even an empty one fits.
fn data_room(id: StreamId, piece: &Piece, room: usize) -> Option<usize> {
    if piece.range.is_empty() {
        let frame =
            frame::Stream { id, offset: piece.range.start, data: bytes::Bytes::new(), fin: piece.fin };
        return (Frame::Stream(frame).encoded_size() <= room).then_some(0);
    }
    Some(frame::Stream::data_room(id, piece.range.start, room))
}
