//! Control frames that wait for a path.

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
pub struct Control {
    /// The frame.
    pub frame: Frame,
    /// The token by which the owner learns of its fate.
    pub token: Option<RecoveryToken>,
    /// The earlier transmission of the frame, if there was one.
    pub history: History,
}

/// A bounded queue of control frames.
#[derive(Debug, Default)]
pub struct ControlQueue {
    waiting: VecDeque<Control>,
}

impl ControlQueue {
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
        self.waiting.push_back(Control { frame, token, history: History::Fresh });
    }

    /// Takes the first frame.
    pub fn pop(&mut self) -> Option<Control> {
        let first = self.waiting.pop_front();
        if self.waiting.is_empty() && self.waiting.capacity() > KEPT {
            // Bursts are rare: one opens the connection, and then each path.
            self.waiting = VecDeque::new();
        }
        first
    }

    /// Puts back frames that found no path, in front and in their order.
    pub fn put_back(&mut self, frames: impl DoubleEndedIterator<Item = Control>) {
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
