//! Frames of streams that were acknowledged, or count as lost (RFC 9000 §13.3).

use super::writers::Held;
use super::{Control, Interest, StreamEvent, Streams};
use crate::PathId;
use crate::recovery_token::RecoveryToken;
use crate::stream::send_state::SendState;
use crate::wire::stream_id::StreamId;
use std::ops::Range;
use std::time::Duration;

impl Streams {
    /// The frame of `token` arrived. Tokens of others are ignored.
    pub fn on_acknowledged(&mut self, token: &RecoveryToken) {
        match *token {
            RecoveryToken::Stream { id, offset, length, fin } => {
                self.on_data_acknowledged(id, range(offset, length, fin))
            }
            RecoveryToken::ResetStream(id) => {
                if let Some(send) = self.send_half(id) {
                    send.on_reset_acknowledged(0);
                    self.free_if_done(id);
                }
            }
            RecoveryToken::ResetStreamAt(id, reliable_size) => {
                if let Some(send) = self.send_half(id) {
                    send.on_reset_acknowledged(reliable_size);
                    self.free_if_done(id);
                }
            }
            _ => {}
        }
    }

    /// The frame of `token` was lost on path `on`. Tokens of others are ignored.
    ///
    /// Data is offered again unless another copy arrived or is under way. Other frames are due again, with their present
    /// content, unless a later one replaced them or they do not matter any more.
    pub fn on_lost(&mut self, token: &RecoveryToken, on: PathId) {
        match *token {
            RecoveryToken::Stream { id, offset, length, fin } => {
                if let Some(outstanding) = self.send_half(id).and_then(|send| send.outstanding_mut()) {
                    outstanding.on_lost(range(offset, length, fin), on);
                    self.relist(id);
                }
            }
            _ => self.repeat_control(token),
        }
    }

    /// Path `on` carries the frame of `token` and was silent for `age`: it may be sent on another path too.
    ///
    /// Data is offered with [`History::Unacknowledged`](hvq_scheduler::History::Unacknowledged), once for each path that
    /// falls silent with it. The first copy to be acknowledged settles the matter.
    pub fn on_silent(&mut self, token: &RecoveryToken, on: PathId, age: Duration) {
        match *token {
            RecoveryToken::Stream { id, offset, length, fin } => {
                if let Some(outstanding) = self.send_half(id).and_then(|send| send.outstanding_mut()) {
                    outstanding.on_silent(range(offset, length, fin), on, age);
                    self.relist(id);
                }
            }
            _ => self.repeat_control(token),
        }
    }

    /// The data of `token`, which left on a path that answers, left `on` a silent one, too.
    pub fn on_copied(&mut self, token: &RecoveryToken, on: PathId) {
        let RecoveryToken::Stream { id, offset, length, fin } = *token else { return };
        if let Some(outstanding) = self.send_half(id).and_then(|send| send.outstanding_mut()) {
            outstanding.on_copied(range(offset, length, fin), on);
        }
    }

    /// Path `on` answers again: what it carries is offered to no other path any more.
    pub fn on_answer(&mut self, on: PathId) {
        let ids: Vec<StreamId> = self.map.ids().collect();
        for id in ids {
            if let Some(outstanding) = self.send_half(id).and_then(|send| send.outstanding_mut()) {
                outstanding.on_answer(on);
                self.relist(id);
            }
        }
    }

    fn on_data_acknowledged(&mut self, id: StreamId, range: Range<u64>) {
        // What is late may be of a stream that is over and forgotten.
        let Some(send) = self.send_half(id) else { return };
        // Nothing but what is listed can be done with.
        let (before, needed) = (send.state(), send.listed.map(|(_, need)| need));
        let held = Held::of(send);
        send.on_acknowledged(range);
        let after = Held::of(send);
        let finished = before != SendState::DataRecvd && send.state() == SendState::DataRecvd;
        let is_reset = send.is_reset();
        let waits = send.interest == Interest::Waiting;
        let has_other_need = needed.is_some() && send.need() != needed;
        self.writers.on_change(held, after);
        if has_other_need {
            // What counted as lost had arrived.
            self.relist(id);
        }
        if waits {
            self.notify_writer(id);
        }
        if finished {
            // The application knows how a stream ends that it reset.
            if !is_reset {
                self.events.push(StreamEvent::Finished(id));
            }
            self.free_if_done(id);
        }
    }

    /// Makes a control frame due again if it still says what is true.
    fn repeat_control(&mut self, token: &RecoveryToken) {
        let (control, matters) = match *token {
            RecoveryToken::MaxData(limit) => (Control::MaxData, self.window.limit() == limit),
            RecoveryToken::MaxStreamData(id, limit) => {
                let window = self.receive_half(id).and_then(|receive| receive.renewable());
                (Control::MaxStreamData(id), window.is_some_and(|window| window.limit() == limit))
            }
            RecoveryToken::MaxStreams(direction, limit) => {
                (Control::MaxStreams(direction), self.remote.of(direction).announced() == limit)
            }
            // Of several resets the one that promises least says it all.
            RecoveryToken::ResetStream(id) | RecoveryToken::ResetStreamAt(id, _) => {
                let reset = self.send_half(id).and_then(|send| send.reset_to_send());
                (Control::ResetStream(id), reset.is_some())
            }
            RecoveryToken::StopSending(id) => {
                let stop = self.receive_half(id).and_then(|receive| receive.wants_stop());
                (Control::StopSending(id), stop.is_some())
            }
            // These are about a limit; if it rose since, there is nothing to say.
            RecoveryToken::DataBlocked(limit) => (Control::DataBlocked, self.credit.limit() == limit),
            RecoveryToken::StreamDataBlocked(id, limit) => {
                let blocked = self.send_half(id).and_then(|send| send.blocked_limit());
                (Control::StreamDataBlocked(id), blocked == Some(limit))
            }
            RecoveryToken::StreamsBlocked(direction, limit) => {
                (Control::StreamsBlocked(direction), self.local.of(direction).is_blocked_at(limit))
            }
            _ => return,
        };
        if matters {
            self.control.insert(control);
        }
    }
}

/// The range of a STREAM frame, where the end of the stream is the byte after the last one.
fn range(offset: u64, length: u64, fin: bool) -> Range<u64> {
    offset..offset + length + u64::from(fin)
}
