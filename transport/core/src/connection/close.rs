//! The end of a connection: closing, draining, and the packets that say so (RFC 9000 §10.2).

use crate::connection::lifecycle::{Lifecycle, Milestone};
use crate::connection::{Connection, Event};
use crate::error::{ConnectionError, ErrorCode, TransportError};
use crate::time::Instant;
use crate::wire::frame::ConnectionClose;
use bytes::Bytes;

/// Bytes of a reason that are sent at most, so that the frame fits everywhere.
const REASON_LIMIT: usize = 500;

/// The state of a closing connection: the frame, and the time at which it is due again.
#[derive(Debug)]
pub(in crate::connection) struct Closing {
    frame: ConnectionClose,
    /// Datagrams that arrived since the close was last sent.
    arrived: u32,
    /// Datagrams that must arrive before it is sent again: 1, 2, 4 … (RFC 9000 §10.2.1 asks for a limited rate).
    threshold: u32,
    due: bool,
    /// Nothing that arrives before shows whether the peer has the close: it was on its way already.
    answers_from: Instant,
}

impl Closing {
    fn new(frame: ConnectionClose) -> Self {
        Self { frame, arrived: 0, threshold: 1, due: true, answers_from: Instant::ZERO }
    }

    /// The frame, if it is due. What arrives before `answers_from` does not make it due again.
    pub fn take_due(&mut self, answers_from: Instant) -> Option<ConnectionClose> {
        if !std::mem::take(&mut self.due) {
            return None;
        }
        self.answers_from = answers_from;
        Some(self.frame.clone())
    }

    /// A datagram of the peer arrived: it may not have seen the close.
    pub(super) fn on_datagram(&mut self, now: Instant) {
        if now < self.answers_from {
            return;
        }
        self.arrived += 1;
        if self.arrived >= self.threshold {
            self.arrived = 0;
            //= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.1
            //# To avoid being used for an amplification attack, such endpoints MUST limit the cumulative size
            //# of packets it sends to three times the cumulative size of the packets that are received and
            //# attributed
            self.threshold = self.threshold.saturating_mul(2);
            self.due = true;
        }
    }
}

impl Connection {
    /// Closes because of a violation or failure found here.
    pub(super) fn fail(&mut self, error: TransportError, now: Instant) {
        if !self.lifecycle.is_open() {
            return;
        }
        let reason = truncated(error.reason.as_bytes());
        let frame = ConnectionClose::Transport { code: error.code, frame_type: error.frame_type, reason };
        self.events.push(Event::Closed(ConnectionError::Transport(error)));
        self.start_closing(frame, now);
    }

    /// Closes because others need its slot more (RFC 9000 §20.1: the server refuses the connection).
    pub(crate) fn give_way(&mut self, now: Instant) {
        self.fail(ErrorCode::CONNECTION_REFUSED.because("too many connections from this network"), now);
    }

    /// Closes for the application, with its code and a reason for people (RFC 9000 §10.2, §19.19).
    pub fn close(&mut self, code: u64, reason: &[u8], now: Instant) {
        if !self.lifecycle.is_open() {
            return;
        }
        let code = code.min(crate::wire::varint::MAX);
        let frame = ConnectionClose::Application { code, reason: truncated(reason) };
        self.events.push(Event::Closed(ConnectionError::LocallyClosed { code }));
        self.start_closing(frame, now);
    }

    fn start_closing(&mut self, frame: ConnectionClose, now: Instant) {
        let until = now + self.paths.longest_probe_timeout(self.peer.max_ack_delay(self.lifecycle)) * 3;
        self.lifecycle = self.lifecycle.after(Milestone::LocalClose(until));
        self.closing = Some(Box::new(Closing::new(frame)));
        self.queue.clear();
    }

    /// The peer closed.
    pub(super) fn end_by_peer(&mut self, error: ConnectionError, now: Instant) {
        if self.lifecycle.is_open() {
            self.events.push(Event::Closed(error));
        }
        if !matches!(self.lifecycle, Lifecycle::Draining(_) | Lifecycle::Closed) {
            let until = now + self.paths.longest_probe_timeout(self.peer.max_ack_delay(self.lifecycle)) * 3;
            self.lifecycle = self.lifecycle.after(Milestone::PeerClose(until));
            self.queue.clear();
        }
    }
}

fn truncated(reason: &[u8]) -> Bytes {
    Bytes::copy_from_slice(reason.get(..REASON_LIMIT).unwrap_or(reason))
}
