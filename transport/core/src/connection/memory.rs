//! The memory that the connection holds, as its account with the endpoint's accounts of memory has it.

use crate::connection::Connection;
use crate::datagram::Datagrams;
use crate::error::ErrorCode;
use crate::memory::MemoryAccount;
use crate::stream::Streams;
use crate::time::Instant;

/// The account of a connection, and what its application holds for it.
#[derive(Debug)]
pub(super) struct Memory {
    account: MemoryAccount,
    /// Bytes that the application holds and has charged to the connection.
    charged: usize,
}

impl Memory {
    /// An account of which nothing is used.
    pub(super) fn new(account: MemoryAccount) -> Self {
        Self { account, charged: 0 }
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
}

impl Connection {
    /// Charges `bytes` that the application holds for the peer to the connection's account, until they are
    /// [discharged](Self::discharge_memory). False if there is no room for them: then nothing is charged.
    pub fn charge_memory(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.memory.account.room(self.held_memory());
        if fits {
            self.memory.charged += bytes;
            self.memory.note(&self.streams, &self.datagrams);
        }
        fits
    }

    /// The application does not hold `bytes` any more that it had charged.
    pub fn discharge_memory(&mut self, bytes: usize) {
        self.memory.charged = self.memory.charged.saturating_sub(bytes);
        self.memory.note(&self.streams, &self.datagrams);
    }

    /// Bytes that the connection holds for its peer and its application.
    pub fn held_memory(&self) -> usize {
        self.memory.held(&self.streams, &self.datagrams)
    }

    /// Runs a command that takes bytes from the application, as many as there is room for.
    pub(super) fn with_memory<T>(&mut self, command: impl FnOnce(&mut Streams) -> T) -> T {
        self.memory.allow(&mut self.streams, &self.datagrams);
        let result = command(&mut self.streams);
        if self.streams.was_held_back() {
            self.memory.account.on_held_back();
        }
        self.memory.note(&self.streams, &self.datagrams);
        result
    }

    /// Takes account of what arrived and what left: those write again that were held back, as far as there is room for it.
    #[inline]
    pub(super) fn review_memory(&mut self, now: Instant) {
        self.memory.note(&self.streams, &self.datagrams);
        if self.memory.account.is_overdrawn(self.streams.unread() + self.datagrams.unread()) {
            self.give_up_memory(now);
        }
        if self.streams.has_starved() {
            self.memory.allow(&mut self.streams, &self.datagrams);
            self.streams.wake_starved();
        }
    }

    /// Ends the connection, whose peer fills more than its share of a memory that is full. It was permitted to send all that,
    /// but somebody has to give way, and nobody with more reason.
    fn give_up_memory(&mut self, now: Instant) {
        if !self.lifecycle.is_open() {
            return;
        }
        self.memory.account.on_refused();
        self.fail(ErrorCode::INTERNAL_ERROR.because("no memory is left for what the peer sends"), now);
        self.streams = Streams::new(self.role, self.config.streams);
        self.datagrams.clear();
        self.memory.note(&self.streams, &self.datagrams);
    }
}
