//! The memory that the connection holds, as its account with the endpoint's accounts of memory has it.

use crate::connection::hibernation::QUIET;
use crate::connection::{Connection, Role};
use crate::datagram::Datagrams;
use crate::error::{Dropped, ErrorCode, PacketError};
use crate::memory::MemoryAccount;
use crate::stream::Streams;
use crate::time::Instant;
use crate::wire::frame::{Frame, FrameReader};
use bytes::Bytes;

/// The account of a connection, and what its application holds for it.
#[derive(Debug)]
pub(super) struct Memory {
    account: MemoryAccount,
    /// Bytes that the application holds and has charged to the connection.
    charged: usize,
    /// Bytes that may lie unread before the connection is overdrawn, as of the last review.
    most_unread: usize,
}

/// Tells whether the credit of the peer counts as granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CreditUse {
    /// The peer makes use of it.
    Active,
    /// The connection is idle, or a stranger's: many of those share what one of them may need at a time.
    Idle,
}

impl Memory {
    /// An account of which nothing is used.
    pub(super) fn new(account: MemoryAccount) -> Self {
        Self { most_unread: account.most_unread(), account, charged: 0 }
    }

    /// The application holds `bytes` more.
    fn charge(&mut self, bytes: usize) {
        self.charged += bytes;
    }

    /// The application holds `bytes` less.
    fn discharge(&mut self, bytes: usize) {
        self.charged = self.charged.saturating_sub(bytes);
    }

    /// Bytes that the connection holds for its peer and its application.
    fn held(&self, streams: &Streams, datagrams: &Datagrams) -> usize {
        streams.held() + datagrams.held() + self.charged
    }

    /// Streams take from the application what there is room for beside all else.
    fn allow(&self, streams: &mut Streams, datagrams: &Datagrams) {
        streams.set_allowance(self.account.allowance(), datagrams.held() + self.charged);
    }

    /// Datagrams wait within the bound of their queues, and within what there is memory for.
    pub(super) fn bound_datagrams(&self, streams: &Streams, datagrams: &mut Datagrams) {
        datagrams.set_memory_room(self.account.room(self.held(streams, datagrams)));
    }

    /// Tells the account what is held now.
    #[inline]
    pub(super) fn note(&mut self, streams: &Streams, datagrams: &Datagrams) {
        let held = self.held(streams, datagrams);
        self.account.note(held);
    }

    /// Returns true if the packet with these frames would add to what lies unread, while the connection has too much of that.
    #[inline]
    pub(super) fn refuses(&self, streams: &Streams, datagrams: &Datagrams, payload: &Bytes) -> bool {
        streams.unread() + datagrams.unread() > self.most_unread && would_wait(streams, payload)
    }

    /// A packet was refused.
    pub(super) fn on_dropped(&self) -> PacketError {
        self.account.on_dropped();
        Dropped::MemoryShort.into()
    }

    /// Runs a command that takes bytes from the application, as many as there is room for.
    pub(super) fn within<T>(
        &mut self,
        streams: &mut Streams,
        datagrams: &Datagrams,
        command: impl FnOnce(&mut Streams) -> T,
    ) -> T {
        self.allow(streams, datagrams);
        let result = command(streams);
        if streams.was_held_back() {
            self.account.on_held_back();
        }
        self.note(streams, datagrams);
        result
    }

    /// Takes account of the credit that the peer has left, and grants it what there is memory for.
    #[inline]
    fn review_credit(&mut self, streams: &mut Streams, credit: CreditUse) {
        let granted = match credit {
            CreditUse::Active => usize::try_from(streams.credit_granted()).unwrap_or(usize::MAX),
            CreditUse::Idle => 0,
        };
        self.account.note_credit(granted);
        if streams.wants_credit() {
            streams.set_credit(self.account.credit() as u64);
        }
        self.most_unread = self.account.most_unread();
    }
}

/// Returns true if a frame among those of `payload` carries data that would wait behind other data.
fn would_wait(streams: &Streams, payload: &Bytes) -> bool {
    FrameReader::new(payload.clone())
        .map_while(Result::ok)
        .any(|frame| matches!(frame, Frame::Stream(frame) if streams.would_wait(&frame)))
}

/// Returns the bytes that arrived on `connection` and that the application has not read.
pub(crate) fn unread(connection: &Connection) -> usize {
    connection.streams.unread() + connection.datagrams.unread()
}

impl Connection {
    /// Charges `bytes` that the application holds for the peer to the connection's account, until they are
    /// [discharged](Self::discharge_memory). False if there is no room for them: then nothing is charged.
    pub fn charge_memory(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.memory.account.room(self.held_memory());
        if fits {
            self.memory.charge(bytes);
            self.memory.note(&self.streams, &self.datagrams);
        }
        fits
    }

    /// The application does not hold `bytes` any more that it had charged.
    pub fn discharge_memory(&mut self, bytes: usize) {
        self.memory.discharge(bytes);
        self.memory.note(&self.streams, &self.datagrams);
    }

    /// Bytes that the connection holds for its peer and its application.
    pub fn held_memory(&self) -> usize {
        self.memory.held(&self.streams, &self.datagrams)
    }

    /// Takes account of what arrived and what left: those write again that were held back, as far as there is room for it.
    #[inline]
    pub(super) fn review_memory(&mut self, now: Instant) {
        self.memory.note(&self.streams, &self.datagrams);
        // Strangers that begin a handshake with a server take no credit from others.
        let is_known = self.role == Role::Client || self.lifecycle.is_connected();
        let is_active = is_known && self.lifecycle.is_open() && !self.activity.is_quiet(QUIET, now);
        let credit = if is_active { CreditUse::Active } else { CreditUse::Idle };
        self.memory.review_credit(&mut self.streams, credit);
        if self.streams.has_starved() {
            self.memory.allow(&mut self.streams, &self.datagrams);
            self.streams.wake_starved();
        }
    }

    /// Ends the connection, whose application does not read what its peer sent while memory is short. The peer was permitted to
    /// send all that, but somebody has to give way, and nobody with more reason.
    pub(crate) fn give_up_memory(&mut self, now: Instant) {
        self.memory.account.on_refused();
        self.fail(ErrorCode::INTERNAL_ERROR.because("no memory is left for what the peer sends"), now);
        self.streams = Streams::new(self.role, self.config.streams);
        self.datagrams.clear();
        self.memory.note(&self.streams, &self.datagrams);
    }

    /// Returns the bytes of the peer that had arrived at the last call and were not read since, of a connection that is open.
    pub(crate) fn review_backlog(&mut self) -> usize {
        if self.lifecycle.is_open() { self.streams.review_backlog() } else { 0 }
    }
}
