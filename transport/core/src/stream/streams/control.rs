//! Frames about streams that carry no data.

use super::Streams;
use crate::delivery::Receipt;
use crate::stream::id::{Direction, StreamId};
use crate::time::Instant;
use crate::wire::frame::{Frame, ResetStream, StopSending};

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
    pub fn next_control(&mut self, now: Instant) -> Option<(Frame, Receipt)> {
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

    /// The frame that is due, `None` if it is no use any more: its stream may be gone.
    fn build_control(&mut self, control: Control, now: Instant) -> Option<(Frame, Receipt)> {
        let rtt = self.rtt;
        match control {
            Control::MaxData => {
                let limit = self.window.renew(now, rtt);
                Some((Frame::MaxData(limit), Receipt::MaxData(limit)))
            }
            Control::MaxStreams(direction) => {
                let limit = self.remote.of_mut(direction).announce();
                Some((Frame::MaxStreams { direction, limit }, Receipt::MaxStreams(direction, limit)))
            }
            Control::ResetStream(id) => {
                let (error, final_size) = self.send_half(id)?.reset_to_send()?;
                Some((Frame::ResetStream(ResetStream { id, error, final_size }), Receipt::ResetStream(id)))
            }
            Control::StopSending(id) => {
                let error = self.receive_half(id)?.wants_stop()?;
                Some((Frame::StopSending(StopSending { id, error }), Receipt::StopSending(id)))
            }
            Control::MaxStreamData(id) => {
                let window = self.receive_half(id)?.renewable()?;
                let (limit, size) = (window.renew(now, rtt), window.window());
                // The window of the connection leaves room for others beside the stream with the largest.
                self.window.ensure(size.saturating_add(size / 2));
                Some((Frame::MaxStreamData { id, limit }, Receipt::MaxStreamData(id, limit)))
            }
            Control::DataBlocked => {
                let limit = self.credit.limit();
                self.is_blocked().then_some((Frame::DataBlocked(limit), Receipt::DataBlocked(limit)))
            }
            Control::StreamsBlocked(direction) => {
                let local = self.local.of(direction);
                let limit = local.limit();
                let frame = Frame::StreamsBlocked { direction, limit };
                local.is_blocked_at(limit).then_some((frame, Receipt::StreamsBlocked(direction, limit)))
            }
            Control::StreamDataBlocked(id) => {
                let send = self.send_half(id)?;
                let limit = send.blocked_limit()?;
                send.on_frame_sent();
                Some((Frame::StreamDataBlocked { id, limit }, Receipt::StreamDataBlocked(id, limit)))
            }
        }
    }
}
