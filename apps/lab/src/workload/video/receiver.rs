//! The client: it opens the paths, and notes when it has all of a layer.

use super::Arrival;
use crate::workload::page_load::Paths;
use crate::world::Net;
use hvq_scheduler::PathId;
use hvq_transport::connection::{Connection, Event, FourTuple, PathEvent};
use hvq_transport::stream::{ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use hvq_video::message::LayerHeader;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Receiver {
    paths: Paths,
    /// The path to open beside the first one.
    second: Option<FourTuple>,
    begin: Option<Instant>,
    /// The beginning of each layer that is not complete.
    partial: BTreeMap<StreamId, Vec<u8>>,
    pub(super) arrivals: Vec<Arrival>,
}

impl Receiver {
    pub(super) fn new(paths: Paths) -> Self {
        Self {
            second: paths.second,
            paths,
            begin: Some(Net::START),
            partial: BTreeMap::new(),
            arrivals: Vec::new(),
        }
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        self.begin
    }

    pub(super) fn on_wake(&mut self, net: &mut Net) {
        if self.begin.is_some_and(|at| at <= net.now) {
            self.begin = None;
            self.paths.begin(net);
        }
    }

    pub(super) fn on_event(&mut self, event: &Event, connection: &mut Connection, now: Instant) {
        match event {
            Event::Connected | Event::Confirmed | Event::Path(PathEvent::Available) => {
                self.open_second(connection, now);
            }
            Event::Stream(StreamEvent::Opened { direction }) => {
                while let Some(id) = connection.accept(*direction) {
                    self.partial.insert(id, Vec::new());
                    self.read(id, connection, now.since(Net::START));
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(*id, connection, now.since(Net::START)),
            _ => {}
        }
    }

    /// Opens the path on which the connection did not begin, unless that is done or cannot be yet.
    fn open_second(&mut self, connection: &mut Connection, now: Instant) {
        let begun = connection.path_stats(PathId::ZERO).map(|path| path.tuple);
        let other = |second| if begun == Some(second) { self.paths.first } else { second };
        if self.second.is_some_and(|tuple| connection.open_path(other(tuple), now).is_ok()) {
            self.second = None;
        }
    }

    fn read(&mut self, id: StreamId, connection: &mut Connection, at: Duration) {
        loop {
            match connection.read(id, usize::MAX) {
                Ok(ReadOutcome::Data(data)) => {
                    if let Some(start) = self.partial.get_mut(&id) {
                        let room = LayerHeader::SIZE.saturating_sub(start.len());
                        start.extend_from_slice(&data[..data.len().min(room)]);
                    }
                }
                Ok(ReadOutcome::Finished) => {
                    let start = self.partial.remove(&id).unwrap_or_default();
                    let header = LayerHeader::decode(&start).map(|(header, _)| header);
                    self.arrivals.push((at, header.expect("nobody sends anything but layers here")));
                    return;
                }
                Ok(ReadOutcome::Blocked) => return,
                // It was taken back.
                Err(_) => {
                    self.partial.remove(&id);
                    return;
                }
            }
        }
    }
}
