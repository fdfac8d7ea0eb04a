//! An application that writes a little at both ends all the time, and notes when what it reads moves on.

use hvq_lab::world::{Application, Net, Side};
use hvq_transport::connection::{Connection, Event, FourTuple, PathEvent};
use hvq_transport::error::ConnectionError;
use hvq_transport::stream::{Direction, ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use std::time::Duration;

/// Between two pieces.
pub const INTERVAL: Duration = Duration::from_millis(20);
const PIECE: [u8; 400] = [7; 400];

/// The application.
#[derive(Debug)]
pub struct Talk {
    wanted: Vec<FourTuple>,
    streams: [Option<StreamId>; 2],
    next: Instant,
    /// The times at which each side read something, since the start.
    pub progress: [Vec<Duration>; 2],
    /// The reason for its end, if it ended.
    pub failure: Option<String>,
}

impl Talk {
    /// One whose client opens paths over `wanted` beside the first.
    pub fn new(wanted: Vec<FourTuple>) -> Self {
        Self {
            wanted,
            streams: [None; 2],
            next: Net::START,
            progress: [Vec::new(), Vec::new()],
            failure: None,
        }
    }

    fn open_paths(&mut self, connection: &mut Connection, now: Instant) {
        let open: Vec<FourTuple> = connection.stats().paths.iter().map(|path| path.tuple).collect();
        let missing = self.wanted.iter().filter(|tuple| !open.contains(tuple));
        for tuple in missing {
            // What the server does not permit yet is tried again when it says so.
            let _opened = connection.open_path(*tuple, now);
        }
    }

    fn read(&mut self, side: Side, id: StreamId, connection: &mut Connection, now: Instant) {
        while let Ok(ReadOutcome::Data(_)) = connection.read(id, usize::MAX) {
            self.progress[side as usize].push(now.since(Net::START));
        }
    }
}

impl Application for Talk {
    fn on_event(&mut self, side: Side, event: &Event, connection: &mut Connection, now: Instant) {
        match event {
            Event::Connected => self.streams[side as usize] = connection.open(Direction::Unidirectional),
            Event::Path(PathEvent::Available | PathEvent::ValidationFailed(_)) if side == Side::Client => {
                self.open_paths(connection, now);
            }
            Event::Stream(StreamEvent::Opened { direction }) => {
                while let Some(id) = connection.accept(*direction) {
                    self.read(side, id, connection, now);
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(side, *id, connection, now),
            _ => {}
        }
    }

    fn on_closed(&mut self, side: Side, error: &ConnectionError) {
        self.failure = Some(format!("{side:?} closed: {error}"));
    }

    fn wake(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn on_wake(&mut self, net: &mut Net) {
        self.next = net.now + INTERVAL;
        for side in Side::BOTH {
            if let Some(id) = self.streams[side as usize] {
                // What does not fit is not written: all that counts is that something moves.
                let _taken = net.end(side).connection().write(id, &PIECE);
            }
        }
    }

    fn is_done(&self) -> bool {
        self.failure.is_some()
    }
}
