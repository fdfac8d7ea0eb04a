//! The applications' work on streams, and the result that must come of it: every byte once, in order, and the end that
//! was meant.

use super::{Player, index, peer};
use hvq_lab::workload::pattern;
use hvq_lab::world::Side;
use hvq_transport::connection::{Connection, Role};
use hvq_transport::stream::{ReadError, ReadOutcome, StreamId, WriteError};

/// The progress of the sending half of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// It goes on.
    Open,
    /// It is to be finished once all is written.
    Meant,
    /// It was finished.
    Finished,
    /// The peer is known to have all of it.
    Delivered,
    /// It was reset with a code before it was finished.
    Reset(u64),
    /// It was reset after it was finished: either may win (RFC 9000 §3.1).
    FinishedAndReset(u64),
    /// The peer wanted no more.
    Stopped(u64),
}

/// The sending half of a stream.
#[derive(Debug)]
pub(super) struct Outgoing {
    wanted: u64,
    written: u64,
    end: End,
}

/// The end of the receiving half of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    Finished,
    Reset(u64),
    Stopped(u64),
}

/// The receiving half of a stream.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    read: u64,
    outcome: Option<Outcome>,
}

impl Outgoing {
    /// A half to which `wanted` bytes are to be written.
    pub(super) fn new(wanted: u64) -> Self {
        Self { wanted, written: 0, end: End::Open }
    }

    /// Returns a description of the part that is missing of the end that this half and that of its receiver should come
    /// to.
    pub(super) fn missing(&self, incoming: Option<&Incoming>) -> Option<&'static str> {
        let Some(incoming) = incoming else { return Some("the peer does not know it") };
        match (self.end, incoming.outcome) {
            (End::Open | End::Meant, _) => Some("it is not written"),
            (_, None) => Some("the peer does not know its end"),
            // The peer's wish may arrive when everything else has, and does not matter then.
            (End::Finished, Some(_)) => Some("the sender does not know that it arrived"),
            (End::Stopped(_), Some(Outcome::Finished | Outcome::Reset(_))) => {
                Some("the peer never stopped it")
            }
            (End::Delivered | End::Reset(_) | End::FinishedAndReset(_) | End::Stopped(_), Some(_)) => None,
        }
    }

    /// Returns true if the receiver may see this `outcome` after it read `read` bytes.
    fn permits(&self, outcome: Outcome, read: u64) -> bool {
        match (self.end, outcome) {
            (_, Outcome::Stopped(_)) => true,
            (End::Finished | End::Delivered | End::FinishedAndReset(_), Outcome::Finished) => {
                read == self.written
            }
            (End::Reset(meant) | End::FinishedAndReset(meant), Outcome::Reset(code)) => meant == code,
            _ => false,
        }
    }
}

/// The pattern's number for one direction of a stream.
fn label(id: StreamId, sender: Side) -> u64 {
    id.0 * 2 + u64::from(sender == Side::Client)
}

/// Returns true if `side` opened the stream.
pub(super) fn opened(side: Side, id: StreamId) -> bool {
    (id.initiator() == Role::Client) == (side == Side::Client)
}

impl Player {
    /// `bytes` more are to be written.
    pub(in super::super) fn write(
        &mut self,
        side: Side,
        id: StreamId,
        bytes: u64,
        connection: &mut Connection,
    ) {
        if let Some(outgoing) =
            self.halves[index(side)].outgoing.get_mut(&id).filter(|it| it.end == End::Open)
        {
            outgoing.wanted += bytes;
            self.push(side, id, connection);
        }
    }

    /// Writes what can be written of what is to be, and finishes the stream if that was all and it is to be finished.
    pub(super) fn push(&mut self, side: Side, id: StreamId, connection: &mut Connection) {
        if self.halves[index(side)].closed.is_some() {
            return;
        }
        let Some(outgoing) = self.halves[index(side)].outgoing.get_mut(&id) else {
            return self.fail(side, format!("stream {id} is told to be writable"));
        };
        let mut result = Ok(());
        while result.is_ok()
            && matches!(outgoing.end, End::Open | End::Meant)
            && outgoing.written < outgoing.wanted
        {
            let length = (outgoing.wanted - outgoing.written).min(4_096) as usize;
            result = connection
                .write(id, pattern::bytes(label(id, side), outgoing.written, length))
                .map(|taken| outgoing.written += taken as u64);
        }
        if result.is_ok() && outgoing.end == End::Meant {
            result = connection.finish(id).map(|()| outgoing.end = End::Finished);
        }
        match result {
            Ok(()) | Err(WriteError::Blocked) => {}
            Err(WriteError::Stopped(code)) => self.on_stopped(side, id, code),
            Err(error) => self.fail(side, format!("writing to stream {id}: {error}")),
        }
    }

    /// The stream is finished once all is written.
    pub(in super::super) fn finish(&mut self, side: Side, id: StreamId, connection: &mut Connection) {
        if let Some(outgoing) =
            self.halves[index(side)].outgoing.get_mut(&id).filter(|it| it.end == End::Open)
        {
            outgoing.end = End::Meant;
            self.push(side, id, connection);
        }
    }

    /// The stream is abandoned.
    pub(in super::super) fn reset(
        &mut self,
        side: Side,
        id: StreamId,
        code: u64,
        connection: &mut Connection,
    ) {
        let Some(outgoing) = self.halves[index(side)].outgoing.get_mut(&id) else { return };
        let end = match outgoing.end {
            End::Open | End::Meant => End::Reset(code),
            End::Finished => End::FinishedAndReset(code),
            _ => return,
        };
        match connection.reset(id, code, 0) {
            Ok(_) => outgoing.end = end,
            Err(WriteError::Stopped(code)) => self.on_stopped(side, id, code),
            Err(error) => self.fail(side, format!("resetting stream {id}: {error}")),
        }
    }

    /// The receiver wants no more.
    pub(in super::super) fn stop(
        &mut self,
        side: Side,
        id: StreamId,
        code: u64,
        connection: &mut Connection,
    ) {
        let Some(incoming) = self.halves[index(side)].incoming.get_mut(&id) else { return };
        if incoming.outcome.is_some() {
            return;
        }
        incoming.outcome = Some(Outcome::Stopped(code));
        if let Err(error) = connection.stop(id, code) {
            self.fail(side, format!("stopping stream {id}: {error}"));
        }
    }

    /// Reads until `most` bytes are there, the stream blocks or ends.
    pub(in super::super) fn read(
        &mut self,
        side: Side,
        id: StreamId,
        most: usize,
        connection: &mut Connection,
    ) {
        let halves = &mut self.halves;
        let Some(incoming) = halves[index(side)].incoming.get_mut(&id) else {
            return self.fail(side, format!("stream {id} is told to be readable"));
        };
        let mut left = most;
        while incoming.outcome.is_none() && left > 0 {
            match connection.read(id, left.min(3_000)) {
                Ok(ReadOutcome::Data(data)) => {
                    if !pattern::matches(label(id, peer(side)), incoming.read, &data) {
                        let at = incoming.read;
                        return self.fail(side, format!("wrong bytes on stream {id} at {at}"));
                    }
                    incoming.read += data.len() as u64;
                    left -= data.len();
                }
                Ok(ReadOutcome::Blocked) => break,
                Ok(ReadOutcome::Finished) => incoming.outcome = Some(Outcome::Finished),
                Err(ReadError::Reset(code)) => incoming.outcome = Some(Outcome::Reset(code)),
                Err(error) => return self.fail(side, format!("reading stream {id}: {error}")),
            }
        }
        let (read, outcome) =
            (self.halves[index(side)].incoming[&id].read, self.halves[index(side)].incoming[&id].outcome);
        self.check_read(side, id, read, outcome);
    }

    fn check_read(&mut self, side: Side, id: StreamId, read: u64, outcome: Option<Outcome>) {
        let Some(outgoing) = self.halves[index(peer(side))].outgoing.get(&id) else {
            // The peer has not heard of a stream that was opened here.
            if !opened(side, id) || read > 0 || !matches!(outcome, None | Some(Outcome::Stopped(_))) {
                self.fail(side, format!("stream {id} gave {read} bytes and {outcome:?}, and has no sender"));
            }
            return;
        };
        let too_much = read > outgoing.written;
        if too_much || outcome.is_some_and(|outcome| !outgoing.permits(outcome, read)) {
            let problem = format!("stream {id} gave {read} bytes and {outcome:?}, sent was {outgoing:?}");
            self.fail(side, problem);
        }
    }

    pub(super) fn on_finished(&mut self, side: Side, id: StreamId) {
        let opened = opened(side, id);
        match self.halves[index(side)].outgoing.get_mut(&id) {
            Some(outgoing) if outgoing.end == End::Finished => outgoing.end = End::Delivered,
            Some(Outgoing { end: End::FinishedAndReset(_), .. }) => {}
            other => {
                let problem =
                    format!("stream {id} (opened here: {opened}) is told to be delivered: {other:?}");
                self.fail(side, problem);
            }
        }
    }

    pub(super) fn on_stopped(&mut self, side: Side, id: StreamId, code: u64) {
        let meant = self.halves[index(peer(side))].incoming.get(&id).and_then(|incoming| incoming.outcome);
        if meant != Some(Outcome::Stopped(code)) {
            return self
                .fail(side, format!("stream {id} is told to be stopped with {code}, the peer: {meant:?}"));
        }
        match self.halves[index(side)].outgoing.get_mut(&id) {
            Some(outgoing) if matches!(outgoing.end, End::Open | End::Meant | End::Finished) => {
                outgoing.end = End::Stopped(code);
            }
            Some(_) => {}
            None => self.fail(side, format!("stream {id} is stopped, which nobody sends on")),
        }
    }
}
