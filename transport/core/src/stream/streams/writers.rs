//! The room of streams for the application's data: within the send buffer, the peer's limits, and the free memory.

use super::{Interest, StreamEvent, Streams, WriteError};
use crate::memory::Allowance;
use crate::stream::send::SendHalf;
use crate::wire::stream_id::StreamId;

/// Bytes that a stream takes beyond what the peer permits, so that there is something to send at once when it permits more.
const AHEAD: u64 = 4 << 10;
/// Bytes that all streams together take beyond what the peer permits the connection, so that one does not keep out others.
const AHEAD_TOGETHER: u64 = 512 << 10;
/// Bytes that a stream may hold whatever the others do, so that it gets on: those of a packet.
const LEAST: usize = 1200;
/// Bytes that a stream which waits is expected to take of what there is room for.
const TURN: usize = 64 << 10;

/// The bytes that the streams of a connection hold together, and the streams that wait for room that they share.
#[derive(Debug, Default)]
pub(super) struct Writers {
    /// Bytes written and not acknowledged.
    held: usize,
    /// Bytes written and never sent.
    unsent: u64,
    /// Bytes written beyond what the peer permits on their streams.
    beyond: u64,
    /// Bytes that the connection may hold, and what of them others than streams hold.
    allowance: Option<Allowance>,
    elsewhere: usize,
    /// Tells whether the peer's limits are known: before that, applications write within the send buffer.
    limits: PeerLimits,
    /// Streams that would have taken more if it were not for what others hold.
    starved: Vec<StreamId>,
    /// Tells whether the last command was held back because of memory.
    short: Shortage,
}

/// Tells whether the peer's limits are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum PeerLimits {
    #[default]
    Unknown,
    Known,
}

/// Tells whether memory is short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Shortage {
    #[default]
    None,
    Memory,
}

/// The bytes that a stream may write.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Within its own bounds.
    own: usize,
    /// Within those that it shares, too.
    shared: usize,
}

/// The bytes that a sending half holds, before and after a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Held {
    bytes: usize,
    unsent: u64,
    beyond: u64,
}

impl Held {
    pub(super) fn of(send: &SendHalf) -> Self {
        Self { bytes: send.held(), unsent: send.unsent(), beyond: send.beyond() }
    }
}

impl Writers {
    /// A sending half that held `before` holds `after` now.
    #[inline]
    pub(super) fn on_change(&mut self, before: Held, after: Held) {
        self.held = (self.held + after.bytes).saturating_sub(before.bytes);
        self.unsent = (self.unsent + after.unsent).saturating_sub(before.unsent);
        self.beyond = (self.beyond + after.beyond).saturating_sub(before.beyond);
    }

    /// The peer's limits are known from here on.
    pub(super) fn on_limits(&mut self) {
        self.limits = PeerLimits::Known;
    }

    /// The peer's limits are not known any more.
    pub(super) fn forget_limits(&mut self) {
        self.limits = PeerLimits::Unknown;
    }

    /// Returns the bytes that all sending halves hold together.
    pub(super) fn totals(&self) -> Held {
        Held { bytes: self.held, unsent: self.unsent, beyond: self.beyond }
    }

    fn allowance(&self) -> Allowance {
        self.allowance.unwrap_or(Allowance::UNLIMITED)
    }
}

impl Streams {
    /// Bytes that the streams hold: written and not acknowledged, or received and not read.
    #[inline]
    pub fn held(&self) -> usize {
        self.writers.held + self.unread()
    }

    /// Bytes that were received and not read.
    #[inline]
    pub fn unread(&self) -> usize {
        size(self.window.received() - self.window.consumed())
    }

    /// The connection may hold `allowance`, and others than streams hold `elsewhere` of it.
    pub fn set_allowance(&mut self, allowance: Allowance, elsewhere: usize) {
        self.writers.allowance = Some(allowance);
        self.writers.elsewhere = elsewhere;
        self.writers.short = Shortage::None;
    }

    /// Returns true if a command since [`Self::set_allowance`] took less than it would have if there were more memory.
    pub fn was_held_back(&self) -> bool {
        self.writers.short == Shortage::Memory
    }

    /// Returns true if a stream waits for room that it shares with others.
    pub fn has_starved(&self) -> bool {
        !self.writers.starved.is_empty()
    }

    /// Tells those that wait for room that they share, in the order of urgency, as far as there is any.
    pub fn wake_starved(&mut self) {
        let mut starved = std::mem::take(&mut self.writers.starved);
        let send = |id: &StreamId| self.map.get(*id).and_then(|stream| stream.send.as_ref());
        starved.sort_by_key(|id| (send(id).map(|send| (send.priority.urgency, !send.order)), *id));
        let mut left = usize::MAX;
        starved.retain(|id| {
            let Some(send) = self.map.get(*id).and_then(|stream| stream.send.as_ref()) else { return false };
            if send.interest == Interest::Told {
                return false;
            }
            let Ok(room) = self.room(send) else { return false };
            left = left.min(self.shared_room());
            let usable = room.shared.min(left.max(LEAST.saturating_sub(send.held())));
            if !is_worth_a_call(send, usable, self.send_capacity) {
                return true;
            }
            left = left.saturating_sub(usable.min(TURN));
            let id = *id;
            self.tell_writer(id);
            false
        });
        self.writers.starved = starved;
    }

    /// Returns the number of `wanted` bytes that a stream takes now; who gets less is told when there is more.
    pub(super) fn permit(&mut self, id: StreamId, wanted: usize) -> Result<usize, WriteError> {
        let send =
            self.map.get(id).and_then(|stream| stream.send.as_ref()).ok_or(WriteError::UnknownStream)?;
        if self.is_little(send, wanted)? {
            return Ok(wanted);
        }
        let Room { own, shared } = self.room(send)?;
        if shared < wanted {
            if shared < own {
                let by_memory = self.memory_room() <= shared;
                self.writers.short = if by_memory { Shortage::Memory } else { Shortage::None };
                if !self.writers.starved.contains(&id) {
                    self.writers.starved.push(id);
                }
            }
            if let Some(send) = self.send_half(id) {
                send.interest = Interest::Waiting;
            }
        }
        if shared == 0 && wanted > 0 { Err(WriteError::Blocked) } else { Ok(shared.min(wanted)) }
    }

    /// Changes a sending half, and keeps the books.
    #[inline]
    pub(super) fn change<T>(&mut self, id: StreamId, change: impl FnOnce(&mut SendHalf) -> T) -> Option<T> {
        let send = self.map.get_mut(id)?.send.as_mut()?;
        let before = Held::of(send);
        let result = change(send);
        let after = Held::of(send);
        self.writers.on_change(before, after);
        Some(result)
    }

    /// Tells the application, once, that a stream takes data again, now that the peer has more of it.
    pub(super) fn notify_writer(&mut self, id: StreamId) {
        let capacity = self.send_capacity;
        let waits = |send: &SendHalf| {
            // A little room is not worth a call, unless the stream has nothing more to wait for.
            let is_worth = |room: usize| room > capacity / 8 || room > 0 && send.held() == 0;
            send.interest == Interest::Waiting
                && send.writable(capacity).is_ok_and(is_worth)
                && self.room(send).is_ok_and(|room| is_worth(room.shared))
        };
        if self.map.get(id).and_then(|stream| stream.send.as_ref()).is_some_and(waits) {
            self.tell_writer(id);
        }
    }

    /// Tells the application, once, that a stream takes data again, if it will soon have nothing to send.
    pub(super) fn notify_idle_writer(&mut self, id: StreamId) {
        let waits = |send: &SendHalf| {
            send.interest == Interest::Waiting
                && self.may_be_worth_a_call(send)
                && self.room(send).is_ok_and(|room| is_worth_a_call(send, room.shared, self.send_capacity))
        };
        if self.map.get(id).and_then(|stream| stream.send.as_ref()).is_some_and(waits) {
            self.tell_writer(id);
        }
    }

    /// Returns true unless the buffer of the stream alone is too full for a call: what else limits it need not be looked at then.
    #[inline]
    fn may_be_worth_a_call(&self, send: &SendHalf) -> bool {
        let capacity = self.send_capacity;
        send.writable(capacity).is_ok_and(|room| is_worth_a_call(send, room, capacity))
    }

    fn tell_writer(&mut self, id: StreamId) {
        if let Some(send) = self.send_half(id) {
            send.interest = Interest::Told;
            self.events.push(StreamEvent::Writable(id));
        }
    }

    /// Returns true if there is room for `wanted` bytes whatever other streams hold: a stream may hold as much as [`LEAST`].
    #[inline]
    fn is_little(&self, send: &SendHalf, wanted: usize) -> Result<bool, WriteError> {
        let is_due = self.writers.limits == PeerLimits::Known && send.held() + wanted <= LEAST;
        Ok(send.writable(self.send_capacity)? >= wanted && is_due && size(send.room_ahead(0)) >= wanted)
    }

    fn room(&self, send: &SendHalf) -> Result<Room, WriteError> {
        let buffer = send.writable(self.send_capacity)?;
        if self.writers.limits == PeerLimits::Unknown {
            let shared = buffer.min(self.memory_room().max(LEAST.saturating_sub(send.held())));
            return Ok(Room { own: buffer, shared });
        }
        let others = self.writers.beyond - send.beyond().min(self.writers.beyond);
        let own = buffer.min(size(send.room_ahead(AHEAD.min(self.ahead().saturating_sub(others)))));
        // What the connection permits is for whoever sends first, so that no stream fills its buffer with more.
        let of_connection = size((self.credit.available() + AHEAD).saturating_sub(send.unsent()));
        let shared = of_connection.min(self.shared_room()).max(LEAST.saturating_sub(send.held()));
        Ok(Room { own, shared: own.min(shared) })
    }

    /// Bytes that the streams together may take beyond what the peer permits.
    fn ahead(&self) -> u64 {
        AHEAD_TOGETHER.min(self.writers.allowance().unpermitted as u64)
    }

    /// Bytes that any stream may take, as far as others are concerned.
    fn shared_room(&self) -> usize {
        let permitted = (self.credit.available() + self.ahead()).saturating_sub(self.writers.unsent);
        size(permitted).min(self.memory_room())
    }

    /// Bytes for which there is memory.
    fn memory_room(&self) -> usize {
        let Allowance { most, waiting, .. } = self.writers.allowance();
        let in_all = most.saturating_sub(self.held()).saturating_sub(self.writers.elsewhere);
        let useful = self.windows.saturating_mul(2).max(waiting);
        in_all.min(useful.saturating_sub(self.writers.held))
    }
}

/// Returns true if `room` bytes are worth a call of the application: they are many, or the stream would have nothing to
/// send otherwise.
fn is_worth_a_call(send: &SendHalf, room: usize, capacity: usize) -> bool {
    room > capacity / 8
        || room > 0 && (room as u64 >= AHEAD / 2 || send.held() == 0) && send.unsent() <= AHEAD
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
