//! The work of a session: streams are handed on, and the stream of the request is listened to (draft-ietf-webtrans-http3 §6).

use super::SessionState;
use super::end::SessionEnd;
use super::streams::{ReceiveHalf, SendHalf};
use crate::capsules::RawCapsule;
use crate::protocol::sessions::Arrival;
use crate::{Capsules, Code, ReceiveError, Receiving, Sending};
use bytes::Bytes;
use hvq::ReadError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

/// The end of a session (§6).
const WT_CLOSE_SESSION: u64 = 0x2843;
/// The session is to end soon (§4.7).
const WT_DRAIN_SESSION: u64 = 0x78ae;
/// Limits of single streams, which the transport has (§5.4).
const WT_MAX_STREAM_DATA: u64 = 0x190b_4d3e;
const WT_STREAM_DATA_BLOCKED: u64 = 0x190b_4d42;
/// The longest reason (§6), with its code in front.
const LONGEST: u64 = 4 + LONGEST_REASON as u64;
const LONGEST_REASON: usize = 1024;
/// The time in which the peer has to take, or to follow, the end of a session.
const PATIENCE: Duration = Duration::from_secs(10);

/// A command of the application.
#[derive(Debug)]
pub(super) enum Command {
    Drain,
    Close { code: u32, reason: String },
}

/// The places where streams wait until they are accepted. Their number is that which the transport permits the peer to open.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) uni: UnboundedSender<ReceiveHalf>,
    pub(super) bi: UnboundedSender<(SendHalf, ReceiveHalf)>,
}

impl Queues {
    fn take(&self, arrival: Arrival, state: &Arc<SessionState>) {
        // Streams that nobody will accept end when they are dropped.
        match arrival {
            Arrival::Uni(receive, begun) => {
                let _unwanted = self.uni.send(ReceiveHalf::new(receive, begun, state));
            }
            Arrival::Bi(send, receive, begun) => {
                let halves = (SendHalf::new(send, 0, state), ReceiveHalf::new(receive, begun, state));
                let _unwanted = self.bi.send(halves);
            }
        }
    }
}

/// A session at work.
pub(super) struct Driver {
    pub(super) state: Arc<SessionState>,
    pub(super) sending: Sending,
    pub(super) receiving: Receiving,
    pub(super) commands: UnboundedReceiver<Command>,
    pub(super) arrivals: UnboundedReceiver<Arrival>,
    pub(super) queues: Queues,
}

/// The last word on the stream of the request.
enum LastWord {
    /// The application closes the session.
    Close(Bytes),
    /// The peer closed it: nothing may follow.
    Answer,
    /// The stream ended.
    Finish,
    /// The peer broke the protocol.
    Reset(Code),
    /// The stream is gone.
    Nothing,
}

impl Driver {
    /// Runs until the session has ended.
    pub(super) async fn run(mut self) {
        self.sending.may_pause(PATIENCE);
        let mut capsules = Capsules::of(
            &[WT_CLOSE_SESSION, WT_DRAIN_SESSION, WT_MAX_STREAM_DATA, WT_STREAM_DATA_BLOCKED],
            LONGEST,
        );
        let (end, last) = loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(Command::Drain) => {
                        // A peer that takes nothing is noticed when it sends nothing, either.
                        let _stalled = self.sending.data(capsule(WT_DRAIN_SESSION, Bytes::new())).await;
                    }
                    Some(Command::Close { code, reason }) => {
                        break (SessionEnd::ClosedHere, LastWord::Close(close_capsule(code, &reason)));
                    }
                    None => break (SessionEnd::ClosedHere, LastWord::Finish),
                },
                Some(arrival) = self.arrivals.recv() => self.queues.take(arrival, &self.state),
                piece = self.receiving.data() => {
                    if let Some(end) = self.hear(piece, &mut capsules) {
                        break end;
                    }
                }
            }
        };
        self.state.finish(end);
        self.arrivals.close();
        while let Ok(late) = self.arrivals.try_recv() {
            // The session has ended, and ends what is noted with it.
            self.queues.take(late, &self.state);
        }
        self.say(last, &capsules).await;
    }

    /// Takes what came on the stream of the request; returns the end of the session, if that is it.
    fn hear(
        &self,
        piece: Result<Option<Bytes>, ReceiveError>,
        capsules: &mut Capsules,
    ) -> Option<(SessionEnd, LastWord)> {
        match piece {
            Ok(Some(piece)) => {
                capsules.push(&piece);
                self.obey(capsules)
            }
            // §6: as if it was closed with code 0 and no reason.
            Ok(None) if capsules.is_complete() => {
                Some((SessionEnd::ClosedByPeer { code: 0, reason: String::new() }, LastWord::Finish))
            }
            Ok(None) => Some(broken("the stream ended within a capsule")),
            Err(ReceiveError::Lost(ReadError::ConnectionLost(lost))) => {
                Some((SessionEnd::ConnectionLost(lost), LastWord::Nothing))
            }
            Err(ReceiveError::Lost(ReadError::Reset(code))) => {
                Some((SessionEnd::Reset(code.into()), LastWord::Reset(Code::WT_SESSION_GONE)))
            }
            Err(_) => Some(broken("the message of the request is malformed")),
        }
    }

    fn obey(&self, capsules: &mut Capsules) -> Option<(SessionEnd, LastWord)> {
        while let Some(capsule) = capsules.next_capsule() {
            match capsule {
                Ok(RawCapsule { kind: WT_DRAIN_SESSION, .. }) => self.state.drain(),
                Ok(RawCapsule { kind: WT_CLOSE_SESSION, value }) => return Some(closed(&value)),
                // §5.4: the transport has these limits.
                Ok(_) => return Some(broken("limits of a stream in a capsule")),
                Err(_) => return Some(broken("a capsule that is too long")),
            }
        }
        None
    }

    /// Ends the stream of the request.
    async fn say(mut self, last: LastWord, capsules: &Capsules) {
        match last {
            LastWord::Close(capsule) => {
                if self.sending.data(capsule).await.is_ok() {
                    let _gone = self.sending.finish().await;
                }
                // The peer closes or resets its half in response.
                let _late =
                    timeout(PATIENCE, async { while let Ok(Some(_)) = self.receiving.data().await {} }).await;
            }
            LastWord::Answer => {
                let more = capsules.buffered() > 0
                    || matches!(timeout(PATIENCE, self.receiving.data()).await, Ok(Ok(Some(_))));
                if more {
                    // §6: nothing may follow.
                    self.give_up(Code::H3_MESSAGE_ERROR);
                } else {
                    let _gone = self.sending.finish().await;
                }
            }
            LastWord::Finish => {
                let _gone = self.sending.finish().await;
            }
            LastWord::Reset(code) => self.give_up(code),
            LastWord::Nothing => {}
        }
    }

    fn give_up(&mut self, code: Code) {
        self.receiving.stop(code);
        self.sending.reset(code);
    }
}

fn broken(reason: &'static str) -> (SessionEnd, LastWord) {
    (SessionEnd::Broken(reason), LastWord::Reset(Code::H3_MESSAGE_ERROR))
}

/// The end that a WT_CLOSE_SESSION capsule with this value says (§6).
fn closed(value: &[u8]) -> (SessionEnd, LastWord) {
    let parts = value.split_first_chunk().map(|(code, reason)| (*code, std::str::from_utf8(reason)));
    match parts {
        Some((code, Ok(reason))) => {
            let (code, reason) = (u32::from_be_bytes(code), reason.to_owned());
            (SessionEnd::ClosedByPeer { code, reason }, LastWord::Answer)
        }
        Some((_, Err(_))) => broken("the reason is no UTF-8"),
        None => broken("a close without a code"),
    }
}

/// The capsule that closes a session, with as much of the reason as it may have.
fn close_capsule(code: u32, reason: &str) -> Bytes {
    let mut length = reason.len().min(LONGEST_REASON);
    while !reason.is_char_boundary(length) {
        length -= 1;
    }
    let reason = reason.get(..length).unwrap_or_default();
    capsule(WT_CLOSE_SESSION, [&code.to_be_bytes(), reason.as_bytes()].concat().into())
}

fn capsule(kind: u64, value: Bytes) -> Bytes {
    let mut bytes = Vec::with_capacity(16 + value.len());
    RawCapsule { kind, value }.put(&mut bytes);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_at_a_character_and_comes_back() {
        let reason = format!("{}ü", "a".repeat(LONGEST_REASON - 1));
        let mut capsules = Capsules::of(&[WT_CLOSE_SESSION], LONGEST);
        capsules.push(&close_capsule(7, &reason));
        let value = capsules.next_capsule().unwrap().unwrap().value;
        let (end, _) = closed(&value);
        let kept = reason[..LONGEST_REASON - 1].to_owned();
        assert_eq!(end, SessionEnd::ClosedByPeer { code: 7, reason: kept });
        assert_eq!(closed(&[0, 0, 0]).0, SessionEnd::Broken("a close without a code"));
        assert_eq!(closed(&[0, 0, 0, 0, 0xff]).0, SessionEnd::Broken("the reason is no UTF-8"));
    }
}
