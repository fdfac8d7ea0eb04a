//! Real-time video: a server that sends each layer of each frame as a message on a stream of its own, and a client that
//! notes when it has them (HotNets 2023, §3.3).

mod receiver;
mod sender;

use crate::workload::page_load::{LEAD, Paths};
use crate::world::{Application, Net, Side};
use hvq_transport::connection::{Connection, Event};
use hvq_transport::error::ConnectionError;
use hvq_transport::time::Instant;
use hvq_video::clip::Clip;
use hvq_video::message::{Deadlines, LayerHeader};
use receiver::Receiver;
use sender::Sender;
use std::sync::Arc;
use std::time::Duration;

/// The information about messages that the sender gives the transport.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MessageHints {
    /// The ends of messages alone.
    #[default]
    Silent,
    /// Their priorities too (RFC 9218): the base layer first.
    Priorities,
    /// Priorities and deadlines: what is of no use any more is taken back.
    Deadlines,
}

/// The video that is sent.
#[derive(Clone, Debug)]
pub struct Program {
    /// The clip, which is repeated.
    pub clip: Arc<Clip>,
    /// The number of frames.
    pub frames: u32,
    /// The information that the transport gets.
    pub voice: MessageHints,
    /// The times until which layers are of use, counted from the capture of the picture.
    pub deadlines: Deadlines,
}

impl Program {
    /// Returns the time at which frame `number` is captured, counted from the start of the world; the first follows
    /// [`LEAD`].
    pub fn captured(number: u32) -> Duration {
        LEAD + Clip::INTERVAL * number
    }

    /// Returns the header before the bytes of a layer.
    pub fn header(&self, number: u32, layer: usize) -> LayerHeader {
        let reference = match self.clip.frame(number).fresh.contains(layer) {
            true => hvq_video::message::Reference::Fresh,
            false => hvq_video::message::Reference::Earlier,
        };
        LayerHeader { frame: number, layer, captured: Self::captured(number), reference }
    }
}

/// A layer that was complete at a time, counted from the start of the world.
pub type Arrival = (Duration, LayerHeader);

/// The video and what is known of it.
#[derive(Debug)]
pub struct Video {
    sender: Sender,
    receiver: Receiver,
    failure: Option<String>,
}

impl Video {
    /// A video over `paths`.
    pub fn new(program: Program, paths: Paths) -> Self {
        Self { sender: Sender::new(program), receiver: Receiver::new(paths), failure: None }
    }

    /// The layers that arrived, in the order in which they did.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.receiver.arrivals
    }

    /// Layers that were taken back because they were late.
    pub fn withdrawn(&self) -> u64 {
        self.sender.withdrawn
    }

    /// Returns the reason for which it cannot go on, if there is one.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

impl Application for Video {
    fn on_event(&mut self, side: Side, event: &Event, connection: &mut Connection, now: Instant) {
        match side {
            Side::Client => self.receiver.on_event(event, connection, now),
            Side::Server => self.sender.on_event(event, connection, now),
        }
    }

    fn on_closed(&mut self, side: Side, error: &ConnectionError) {
        self.failure.get_or_insert_with(|| format!("the {side:?} closed: {error}"));
    }

    fn wake(&self) -> Option<Instant> {
        [self.receiver.wake(), self.sender.wake()].into_iter().flatten().min()
    }

    fn on_wake(&mut self, net: &mut Net) {
        self.receiver.on_wake(net);
        self.sender.on_wake(net);
    }

    fn is_done(&self) -> bool {
        self.failure.is_some()
    }
}
