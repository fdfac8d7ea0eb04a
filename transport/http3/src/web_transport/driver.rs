//! The work of a session: streams are handed on, and the stream of the request is listened to (draft-ietf-webtrans-http3 §6).

use super::SessionState;
use super::capsule::SessionCapsule;
use super::end::SessionEnd;
use super::flow::FlowViolation;
use super::limits::SessionStreams;
use super::streams::{ReceiveHalf, SendHalf};
use crate::protocol::sessions::Arrival;
use crate::{Capsules, Code, ReceiveError, Receiving, Sending};
use bytes::Bytes;
use hvq::ReadError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::timeout;

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
        let mut capsules = SessionCapsule::reader();
        let (end, last) = loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(Command::Drain) => {
                        // A peer that takes nothing is noticed when it sends nothing, either.
                        let _stalled = self.sending.data(SessionCapsule::Drain.encode()).await;
                    }
                    Some(Command::Close { code, reason }) => {
                        break (SessionEnd::ClosedHere, LastWord::Close(SessionCapsule::Close { code, reason }.encode()));
                    }
                    None => break (SessionEnd::ClosedHere, LastWord::Finish),
                },
                Some(arrival) = self.arrivals.recv() => {
                    let counted = self.count(&arrival);
                    self.queues.take(arrival, &self.state);
                    if let Err(violation) = counted {
                        break violated(violation);
                    }
                }
                reviewed = review(&self.state) => match reviewed {
                    Ok(said) => {
                        // As above.
                        let _stalled = self.sending.data(said).await;
                    }
                    Err(violation) => break violated(violation),
                },
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

    /// Counts a stream of the peer.
    fn count(&self, arrival: &Arrival) -> Result<(), FlowViolation> {
        let kind = match arrival {
            Arrival::Uni(..) => SessionStreams::Unidirectional,
            Arrival::Bi(..) => SessionStreams::Bidirectional,
        };
        self.state.flow.as_ref().map_or(Ok(()), |flow| flow.on_arrival(kind))
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
        while let Some(capsule) = SessionCapsule::next(capsules) {
            match capsule {
                Ok(SessionCapsule::Drain) => self.state.drain(),
                Ok(SessionCapsule::Close { code, reason }) => {
                    return Some((SessionEnd::ClosedByPeer { code, reason }, LastWord::Answer));
                }
                // §5.1: without flow control in force, its capsules are ignored.
                Ok(limit) => match self.state.flow.as_ref().map_or(Ok(()), |flow| flow.on_capsule(&limit)) {
                    Ok(()) => {}
                    Err(violation) => return Some(violated(violation)),
                },
                Err(error) => return Some(broken(error.reason())),
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

fn violated(FlowViolation(reason): FlowViolation) -> (SessionEnd, LastWord) {
    (SessionEnd::Broken(reason), LastWord::Reset(Code::WT_FLOW_CONTROL_ERROR))
}

/// Waits for capsules that the peer is to get: for ever if flow control is not in force.
async fn review(state: &SessionState) -> Result<Bytes, FlowViolation> {
    let Some(flow) = &state.flow else { return std::future::pending().await };
    loop {
        flow.due().await;
        let capsules = flow.review()?;
        if !capsules.is_empty() {
            return Ok(capsules.iter().map(SessionCapsule::encode).collect::<Vec<_>>().concat().into());
        }
    }
}
