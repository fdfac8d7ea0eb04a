//! Control frames that wait for a path.

use crate::connection::ack_frequency::AckFrequencies;
use crate::connection::new_token::NewTokens;
use crate::path::paths::Paths;
use crate::recovery_token::RecoveryToken;
use crate::wire::frame::Frame;
use hvq_scheduler::History;
use std::collections::VecDeque;

/// Frames kept at most. Owners keep the rest to themselves, in constant space.
const LIMIT: usize = 64;
/// Frames that there stays room for when none waits.
const KEPT: usize = 4;

/// A control frame that its owner handed over.
#[derive(Debug)]
pub struct ControlFrame {
    /// The frame.
    pub frame: Frame,
    /// The token by which the owner learns of its fate.
    pub token: Option<RecoveryToken>,
    /// The earlier transmission of the frame, if there was one.
    pub history: History,
}

/// A bounded queue of control frames, and the owners of those that belong to the connection as a whole.
pub(in crate::connection) struct ControlFrames {
    waiting: VecDeque<ControlFrame>,
    /// ACK_FREQUENCY.
    pub ack_frequencies: AckFrequencies,
    /// NEW_TOKEN.
    pub tokens: NewTokens,
    handshake_done: HandshakeDone,
}

/// HANDSHAKE_DONE on a server (RFC 9000 §19.20).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandshakeDone {
    /// Not to be sent (yet), or already in flight or acknowledged.
    Quiet,
    /// To be sent.
    Wanted,
}

impl ControlFrames {
    /// An empty queue.
    pub fn new(ack_frequencies: AckFrequencies, tokens: NewTokens) -> Self {
        Self { waiting: VecDeque::new(), ack_frequencies, tokens, handshake_done: HandshakeDone::Quiet }
    }

    /// HANDSHAKE_DONE is to be sent, again or for the first time.
    pub fn want_handshake_done(&mut self) {
        self.handshake_done = HandshakeDone::Wanted;
    }

    /// HANDSHAKE_DONE, if it is to be sent.
    pub fn next_handshake_done(&mut self) -> Option<(Frame, RecoveryToken)> {
        if std::mem::replace(&mut self.handshake_done, HandshakeDone::Quiet) == HandshakeDone::Quiet {
            return None;
        }
        Some((Frame::HandshakeDone, RecoveryToken::HandshakeDone))
    }

    /// Returns true if one of the owners here may have a frame, with the peer's address proven on `paths`.
    #[inline]
    pub fn may_have_frame(&self, paths: &Paths) -> bool {
        self.handshake_done == HandshakeDone::Wanted
            || self.ack_frequencies.is_due()
            || self.tokens.may_have_frame(paths)
    }

    /// Returns true if owners may hand over more.
    pub fn has_space(&self) -> bool {
        self.waiting.len() < LIMIT
    }

    /// Returns true if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Appends a frame.
    pub fn push(&mut self, frame: Frame, token: Option<RecoveryToken>) {
        self.waiting.push_back(ControlFrame { frame, token, history: History::Fresh });
    }

    /// Takes the first frame.
    pub fn pop(&mut self) -> Option<ControlFrame> {
        let first = self.waiting.pop_front();
        if self.waiting.is_empty() && self.waiting.capacity() > KEPT {
            // Bursts are rare: one opens the connection, and then each path.
            self.waiting = VecDeque::new();
        }
        first
    }

    /// Puts back frames that found no path, in front and in their order.
    pub fn put_back(&mut self, frames: impl DoubleEndedIterator<Item = ControlFrame>) {
        for control in frames.rev() {
            self.waiting.push_front(control);
        }
    }
}

#[cfg(test)]
impl crate::connection::Connection {
    /// Has the connection send `frame`, whatever it is: hostile peers of tests.
    pub(crate) fn force(&mut self, frame: Frame) {
        self.control.push(frame, None);
    }
}
