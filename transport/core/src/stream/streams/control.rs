//! Frames about streams that carry no data.

use super::Streams;
use crate::recovery_token::RecoveryToken;
use crate::stream::send::ResetToSend;
use crate::time::Instant;
use crate::wire::frame::{Frame, ResetStream, ResetStreamAt, StopSending};
use crate::wire::stream_id::{Direction, StreamId};

/// A frame that is due; its content is looked up when it is sent. In the order of sending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Control {
    MaxData,
    MaxStreams(Direction),
    ResetStream(StreamId),
    StopSending(StreamId),
    MaxStreamData(StreamId),
    DataBlocked,
    StreamsBlocked(Direction),
    StreamDataBlocked(StreamId),
}

impl Streams {
    /// The next control frame. Each is returned once, and again after [`Self::on_lost`] while it still matters.
    #[inline]
    pub fn next_control(&mut self, now: Instant) -> Option<(Frame, RecoveryToken)> {
        if self.control.is_empty() { None } else { self.next_of_some(now) }
    }

    fn next_of_some(&mut self, now: Instant) -> Option<(Frame, RecoveryToken)> {
        while let Some(control) = self.control.pop_first() {
            if let Some(built) = self.build_control(control, now) {
                return Some(built);
            }
        }
        None
    }

    /// Returns true if [`Self::next_control`] may have something.
    pub fn has_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// Returns true if the credit of the connection is about to be renewed.
    #[inline]
    pub fn wants_credit(&self) -> bool {
        self.control.first() == Some(&Control::MaxData)
    }

    /// The frame that is due, `None` if it is no use any more: its stream may be gone.
    fn build_control(&mut self, control: Control, now: Instant) -> Option<(Frame, RecoveryToken)> {
        let rtt = self.rtt;
        match control {
            Control::MaxData => {
                let limit = self.window.renew(self.credit_left, now, rtt);
                Some((Frame::MaxData(limit), RecoveryToken::MaxData(limit)))
            }
            Control::MaxStreams(direction) => {
                let limit = self.remote.of_mut(direction).announce();
                Some((Frame::MaxStreams { direction, limit }, RecoveryToken::MaxStreams(direction, limit)))
            }
            Control::ResetStream(id) => {
                let ResetToSend { code: error, final_size, reliable_size } =
                    self.send_half(id)?.reset_to_send()?;
                let frame = match reliable_size {
                    0 => Frame::ResetStream(ResetStream { id, error, final_size }),
                    _ => Frame::ResetStreamAt(ResetStreamAt { id, error, final_size, reliable_size }),
                };
                Some((frame, reset_token(id, reliable_size)))
            }
            Control::StopSending(id) => {
                let error = self.receive_half(id)?.wants_stop()?;
                Some((Frame::StopSending(StopSending { id, error }), RecoveryToken::StopSending(id)))
            }
            Control::MaxStreamData(id) => {
                let window = self.receive_half(id)?.renewable()?;
                let (limit, size) = (window.renew(u64::MAX, now, rtt), window.window());
                // The window of the connection leaves room for others beside the stream with the largest.
                self.window.ensure(size.saturating_add(size / 2));
                if self.window.renewal_is_due() {
                    self.control.insert(Control::MaxData);
                }
                Some((Frame::MaxStreamData { id, limit }, RecoveryToken::MaxStreamData(id, limit)))
            }
            Control::DataBlocked => {
                let limit = self.credit.limit();
                self.is_blocked().then_some((Frame::DataBlocked(limit), RecoveryToken::DataBlocked(limit)))
            }
            Control::StreamsBlocked(direction) => {
                let local = self.local.of(direction);
                let limit = local.limit();
                let frame = Frame::StreamsBlocked { direction, limit };
                local.is_blocked_at(limit).then_some((frame, RecoveryToken::StreamsBlocked(direction, limit)))
            }
            Control::StreamDataBlocked(id) => {
                let send = self.send_half(id)?;
                let limit = send.blocked_limit()?;
                send.on_frame_sent();
                Some((Frame::StreamDataBlocked { id, limit }, RecoveryToken::StreamDataBlocked(id, limit)))
            }
        }
    }
}

/// The token of the frame that resets a stream.
fn reset_token(id: StreamId, reliable_size: u64) -> RecoveryToken {
    match reliable_size {
        0 => RecoveryToken::ResetStream(id),
        _ => RecoveryToken::ResetStreamAt(id, reliable_size),
    }
}
