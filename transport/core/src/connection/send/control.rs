//! Control frames: taken from their owners, as long as there is space for them.

use crate::connection::paths::hints::exchanges_hints;
use crate::connection::send::Sender;
use crate::recovery_token::{RecoveryToken, Tracked};
use crate::time::Instant;
use crate::wire::frame::Frame;

impl Sender<'_> {
    /// Takes control frames from their owners, as long as there is space for them.
    #[inline]
    pub(in crate::connection) fn collect_control(&mut self, now: Instant) {
        if self.may_have_control() {
            self.collect_some_control(now);
        } else {
            debug_assert!(self.next_control(now).is_none(), "a frame was left out");
        }
    }

    /// Returns true if an owner may have a control frame. Most polls find none.
    #[inline]
    fn may_have_control(&self) -> bool {
        self.streams.has_control()
            || self.paths.may_have_frame()
            || self.control.may_have_frame(self.paths)
            || !self.lifecycle.is_confirmed()
    }

    fn collect_some_control(&mut self, now: Instant) {
        while self.control.has_space()
            && let Some((frame, token)) = self.next_control(now)
        {
            debug_assert!(Tracked::of(&frame).is(&token), "{token:?} is not that of {frame:?}");
            self.control.push(frame, Some(token));
        }
    }

    fn next_control(&mut self, now: Instant) -> Option<(Frame, RecoveryToken)> {
        if !self.lifecycle.is_connected() {
            //= https://www.rfc-editor.org/rfc/rfc10069#section-4
            //= type=implication
            //= reason=Frames about paths come from the queues below, which are read for 1-RTT packets after
            //= reason=the handshake only.
            //# All frames defined in this document MUST only be sent in 1-RTT packets
            // What the handshake has not settled yet is not talked about.
            return self.streams.next_control(now);
        }
        if let Some(done) = self.control.next_handshake_done() {
            return Some(done);
        }
        if self.lifecycle.is_confirmed()
            && let Some(token) = self.control.tokens.next_frame_for(self.paths, self.handshake.version(), now)
        {
            return Some(token);
        }
        let exchanges_hints = exchanges_hints(self.config, self.peer);
        let paths = &mut *self.paths;
        paths
            .next_frame()
            .or_else(|| exchanges_hints.then(|| paths.next_hints()).flatten())
            .or_else(|| self.control.ack_frequencies.next_frame())
            .or_else(|| self.streams.next_control(now))
    }
}
