//! The way of sent frames back to their owners, when the packet that carried them was acknowledged or lost.

use crate::PathId;
use crate::connection::control::ControlFrames;
use crate::connection::send::scheduler_slot::SchedulerSlot;
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::handshake::zero_rtt::ZeroRtt;
use crate::path::paths::Paths;
use crate::recovery::sent_packet::SentPacket;
use crate::recovery_token::RecoveryToken;
use crate::space::sent::Sent;
use crate::stream::Streams;
use crate::time::Instant;
use hvq_scheduler::{Content, Observation};
use std::time::Duration;

/// The owners of frames: each recovery token goes back to one of them.
pub(in crate::connection) struct FrameOwners<'a> {
    pub handshake: &'a mut Handshake,
    pub paths: &'a mut Paths,
    pub streams: &'a mut Streams,
    pub datagrams: &'a mut Datagrams,
    pub control: &'a mut ControlFrames,
    pub scheduler: &'a mut SchedulerSlot,
}

/// The [`FrameOwners`] of a connection, or of a part of one that borrows them.
macro_rules! frame_owners {
    ($of:expr) => {
        $crate::connection::frame_owners::FrameOwners {
            handshake: &mut $of.handshake,
            paths: &mut $of.paths,
            streams: &mut $of.streams,
            datagrams: &mut $of.datagrams,
            control: &mut $of.control,
            scheduler: &mut $of.scheduler,
        }
    };
}
pub(in crate::connection) use frame_owners;

impl FrameOwners<'_> {
    /// `packet`, sent on path `on`, was acknowledged: tells the policy, and hands the tokens back to their owners. Those of
    /// content go to `deferred`, if there is one: another connection may still take the place of this one and send it again.
    pub fn on_packet_acknowledged(
        &mut self,
        on: PathId,
        packet: &SentPacket,
        mut deferred: Option<&mut ZeroRtt>,
        now: Instant,
    ) {
        let delay = now.since(packet.sent_at);
        for token in &packet.tokens {
            let (content, bytes) = (content_of(token), bytes_of(token));
            self.scheduler.observe(&Observation::Acknowledged { path: on, content, bytes, delay });
            let is_own = matches!(token, RecoveryToken::Crypto { .. } | RecoveryToken::Ack { .. });
            match deferred.as_mut().filter(|_| !is_own) {
                Some(deferred) => deferred.defer(token),
                None => self.on_token_acknowledged(token),
            }
        }
    }

    /// `packet`, sent on path `on`, counts as lost: tells the policy, and hands the tokens back to their owners, which alone
    /// decide what is sent again (RFC 9000 §13.3).
    pub fn on_packet_lost(&mut self, on: PathId, packet: &SentPacket, now: Instant) {
        let delay = now.since(packet.sent_at);
        for token in &packet.tokens {
            let (content, bytes) = (content_of(token), bytes_of(token));
            self.scheduler.observe(&Observation::Lost { path: on, content, bytes, delay });
            self.on_token_lost(token, on);
        }
    }

    pub fn on_token_acknowledged(&mut self, token: &RecoveryToken) {
        match token {
            RecoveryToken::Crypto { level, offset, length } => {
                if let Some(crypto) = self.handshake.crypto(*level) {
                    crypto.on_acknowledged(*offset, *length);
                }
            }
            RecoveryToken::Ack { of, largest } => {
                if let Some(path) = self.paths.any_mut(*of) {
                    path.received.on_ack_acknowledged(*largest);
                }
            }
            RecoveryToken::Datagram(number) => self.datagrams.on_acknowledged(*number),
            RecoveryToken::HandshakeDone | RecoveryToken::NewToken(_) | RecoveryToken::AckFrequency(_) => {}
            RecoveryToken::Stream { .. } => self.streams.on_acknowledged(token),
            token => {
                if !self.paths.on_acknowledged(token) {
                    self.streams.on_acknowledged(token);
                }
            }
        }
    }

    pub fn on_token_lost(&mut self, token: &RecoveryToken, on: PathId) {
        match token {
            RecoveryToken::Crypto { level, offset, length } => {
                if let Some(crypto) = self.handshake.crypto(*level) {
                    crypto.on_lost(*offset, *length);
                }
            }
            RecoveryToken::Ack { .. } => {}
            RecoveryToken::NewToken(number) => self.control.tokens.on_lost(*number),
            RecoveryToken::Datagram(number) => self.datagrams.on_lost(*number),
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.3
            //# The HANDSHAKE_DONE frame MUST be retransmitted until it is acknowledged.
            RecoveryToken::HandshakeDone => self.control.want_handshake_done(),
            RecoveryToken::AckFrequency(sequence) => self.control.ack_frequencies.on_lost(*sequence),
            token => {
                if !self.paths.on_lost(token) {
                    self.streams.on_lost(token, on);
                }
            }
        }
    }

    /// Reports to the owner of `token` that its frame was sent on path `on`, which is silent for `age`.
    pub fn on_token_late(&mut self, token: &RecoveryToken, on: PathId, age: Duration) {
        match token {
            RecoveryToken::Stream { .. } => self.streams.on_silent(token, on, age),
            RecoveryToken::Ack { .. } | RecoveryToken::Datagram(_) => {}
            // Control frames are small: a second copy costs less than waiting (RFC 9002 §6.2.4).
            _ => self.on_token_lost(token, on),
        }
    }

    /// Hands the packets that `drain` takes out of path `id` back to their owners, without a word to the controller.
    pub fn resend(&mut self, id: PathId, drain: impl FnOnce(&mut Sent) -> Vec<SentPacket>, now: Instant) {
        let drained = self.paths.get_mut(id).map(|path| drain(&mut path.sent));
        for packet in drained.into_iter().flatten() {
            self.on_packet_lost(id, &packet, now);
        }
    }

    /// Nothing that was sent on streams or in datagrams ever was, for the peer.
    pub fn restart_streams(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2
        //# The client therefore MUST reset the state of all streams, including application state bound to
        //# those streams.
        // Control frames that still wait were made from that state, such as the final size of a stream: they are made anew.
        while let Some(control) = self.control.pop() {
            if let Some(token) = control.token {
                self.on_token_lost(&token, PathId::ZERO);
            }
        }
        self.streams.restart();
        self.datagrams.set_peer_limit(0);
    }

    /// 0-RTT packets that were sent are given up, and their contents sent again: after a Retry the server knows nothing
    /// of them (RFC 9000 §17.2.5.3).
    pub fn repeat_zero_rtt(&mut self, now: Instant) {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.4
        //# The sender MUST discard all recovery state associated with those packets and MUST remove them from
        //# the count of bytes in flight.
        self.resend(PathId::ZERO, Sent::drain_all, now);
    }

    /// The contents that `tokens` stand for were acknowledged some time ago.
    pub fn on_tokens_acknowledged(&mut self, tokens: &[RecoveryToken]) {
        for token in tokens {
            self.on_token_acknowledged(token);
        }
    }

    /// Counts everything that was sent as lost, and forgets what the peer permitted.
    pub fn withdraw(&mut self, now: Instant) {
        for id in self.paths.ids() {
            self.resend(id, Sent::drain_all, now);
        }
        self.restart_streams();
    }

    /// Path `id`, which was silent, answers again: what it holds is offered to no other path any more.
    pub fn on_answering(&mut self, id: PathId, now: Instant) {
        self.resend(id, Sent::drain_probes, now);
        if let Some(path) = self.paths.get_mut(id) {
            path.copies.withdraw();
        }
        self.paths.advise(id);
        self.streams.on_answer(id);
    }

    /// Offers what paths carry that do not answer to those that do, oldest first and no more than they have room for:
    /// it may only be late, and the oldest data is what receivers wait for. Each packet is offered once in a silence.
    pub fn offer_late_data(&mut self, now: Instant) {
        if !self.paths.open().any(|path| path.liveness.is_silent()) {
            return;
        }
        for id in self.paths.ids() {
            let quiet = self.paths.get(id).is_some_and(|path| path.liveness.is_silent());
            let mut room = if quiet { self.paths.room_beside(id, now) } else { 0 };
            while room > 0 {
                let late = self.paths.get_mut(id).and_then(|path| path.next_late(now));
                let Some(late) = late else { break };
                room = room.saturating_sub(late.bytes);
                for token in &late.tokens {
                    self.on_token_late(token, id, late.age);
                }
            }
        }
    }
}

fn content_of(token: &RecoveryToken) -> Content {
    match token {
        RecoveryToken::Crypto { .. } => Content::Handshake,
        RecoveryToken::Stream { id, .. } => Content::Stream { id: id.0 },
        RecoveryToken::Ack { of, .. } => Content::Acknowledgement { of: *of },
        RecoveryToken::Datagram(_) => Content::Datagram,
        _ => Content::Control,
    }
}

fn bytes_of(token: &RecoveryToken) -> usize {
    match token {
        RecoveryToken::Crypto { length, .. } | RecoveryToken::Stream { length, .. } => {
            usize::try_from(*length).unwrap_or(usize::MAX)
        }
        _ => 0,
    }
}
