//! A connection: the only place that composes the components, each phase in a file of its own.

mod ack_frequency;
mod activity;
mod audit;
mod close;
mod commands;
pub(crate) mod config;
mod control;
pub(crate) mod event;
pub(crate) mod events;
mod frame_owners;
pub(crate) mod handshake;
mod hibernation;
pub(crate) mod lifecycle;
mod loss_recovery;
pub(crate) mod memory;
mod new_token;
mod observe;
pub(crate) mod paths;
mod queue_bound;
mod receive;
pub(crate) mod send;
pub(crate) mod stats;
mod terms;
#[cfg(test)]
mod tests;
mod timeout;
mod views;

pub use ack_frequency::AckRequests;
pub use commands::{OpenPathError, PathCommandError};
pub use config::{ChannelHint, Multipath, SchedulerFactory, TransportConfig, TransportConfigError};
pub use event::{Event, PathEvent};
pub use handshake::setup::{ClientAddress, ConnectionSetup, IncomingConnection, InitialIds};
pub use handshake::succession::Replay;
pub use handshake::zero_rtt::{EarlyDataState, Resumption};
pub use hvq_scheduler::Role;
pub use lifecycle::Lifecycle;
pub(crate) use new_token::TokenSource;
pub use paths::migration::{MigrateError, Migration, Moving};
pub use paths::preferred::{Preference, PreferredAddresses};
pub use queue_bound::QueueBound;
pub use stats::{ConnectionStats, FrameCounter, PathStats};

use crate::connection::activity::Activity;
use crate::connection::close::Closing;
use crate::connection::control::ControlFrames;
use crate::connection::events::EventQueue;
use crate::connection::handshake::key_update::TrafficKeys;
use crate::connection::memory::Memory;
use crate::connection::observe::Observer;
use crate::connection::send::buffer_pool::BufferPool;
use crate::connection::send::scheduler_slot::SchedulerSlot;
use crate::connection::send::transmit_queue::TransmitQueue;
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::handshake::zero_rtt::ZeroRtt;
use crate::path::paths::Paths;
use crate::seed::Randomness;
use crate::stream::Streams;
use crate::stream::blocks::Blocks;
use crate::time::{Deadline, Instant};
use crate::trace::Tracer;
use crate::wire::transport_parameters::TransportParameters;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use crate::connection::paths::multipath::IdChanges;
pub use crate::handshake::negotiation::{VersionChoice, Versions};
pub use crate::knowledge::PathMemory;
pub use crate::path::dscp::{Dscp, DscpError};
pub use crate::path::mtu::DatagramSizing;
pub use crate::path::rotation::Rotation;
pub use crate::path::route::FourTuple;
pub use crate::path::spin::SpinBit;
pub use crate::recovery::ecn::{Ecn, EcnMarking};
pub use crate::space::received::AckPolicy;
pub use crate::wire::grease::Greasing;
pub use crate::wire::transport_parameters::{HintExchange, PartialDelivery};

/// A datagram from the network.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// The address that it arrived at.
    pub local: SocketAddr,
    /// The address that it came from.
    pub remote: SocketAddr,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// Its UDP payload.
    pub bytes: bytes::BytesMut,
}

/// Datagrams for the network: one, or several of equal size to one address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The address to send from.
    pub local: SocketAddr,
    /// The address to send to.
    pub remote: SocketAddr,
    /// The ECN codepoint to set.
    pub ecn: Ecn,
    /// The Differentiated Services codepoint to set.
    pub dscp: Dscp,
    /// UDP payloads, back to back.
    pub bytes: Vec<u8>,
    /// The size of each payload but the last, if there are several.
    pub segment: Option<usize>,
}

/// The output of a connection that is polled.
#[derive(Debug)]
pub enum Step {
    /// Send this.
    Transmit(Transmit),
    /// Tell the application.
    Event(Event),
    /// Nothing until input arrives or the deadline passes.
    Idle(Option<Deadline>),
}

/// The peer's transport parameters, authenticated with the handshake.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    parameters: TransportParameters,
    known: bool,
}

impl Peer {
    /// The transport parameters; the defaults before they are known.
    pub fn parameters(&self) -> &TransportParameters {
        &self.parameters
    }

    /// The transport parameters, once they are known.
    pub fn known(&self) -> Option<&TransportParameters> {
        self.known.then_some(&self.parameters)
    }

    /// Returns true if the transport parameters are known.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Takes the transport parameters.
    pub fn learn(&mut self, parameters: TransportParameters) {
        self.parameters = parameters;
        self.known = true;
    }

    /// The longest that the peer says it delays acknowledgements; zero while no connection is established.
    pub fn max_ack_delay(&self, lifecycle: Lifecycle) -> Duration {
        if lifecycle.is_connected() { self.parameters.max_ack_delay } else { Duration::ZERO }
    }
}

/// One QUIC connection, sans-IO.
pub struct Connection {
    role: Role,
    config: Arc<TransportConfig>,
    lifecycle: Lifecycle,
    handshake: Handshake,
    keys: TrafficKeys,
    zero_rtt: ZeroRtt,
    peer: Peer,
    paths: Paths,
    streams: Streams,
    datagrams: Datagrams,
    scheduler: SchedulerSlot,
    control: ControlFrames,
    closing: Option<Box<Closing>>,
    activity: Activity,
    events: EventQueue,
    memory: Memory,
    queue: TransmitQueue,
    observer: Observer,
    rng: Randomness,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("role", &self.role)
            .field("lifecycle", &self.lifecycle)
            .field("paths", &self.paths.open().map(|path| path.id).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// The next thing to do at `now`. The rule for callers: after every mutation, poll until [`Step::Idle`].
    pub fn poll(&mut self, now: Instant) -> Step {
        if let Some(event) = self.next_event(now) {
            return Step::Event(event);
        }
        self.serve(now)
    }

    /// The same, after no event was left to tell.
    pub(crate) fn serve(&mut self, now: Instant) -> Step {
        if !self.activity.is_served(now) {
            self.run_timers(now);
            self.review_memory(now);
            self.activity.on_served(now);
            if let Some(event) = self.next_event(now) {
                return Step::Event(event);
            }
        }
        if let Some(transmit) = self.next_transmit(now) {
            return Step::Transmit(transmit);
        }
        // Filling packets may have closed the connection or freed a stream.
        if let Some(event) = self.next_event(now) {
            return Step::Event(event);
        }
        self.activity.on_idle();
        self.hibernate_if_idle(now);
        Step::Idle(timeout::deadline(self, now))
    }

    /// Lends or gives back memory for datagrams and records; see
    /// [`Endpoint::recycle`](crate::endpoint::Endpoint::recycle).
    pub(crate) fn exchange_pool(&mut self, pool: &mut BufferPool) {
        self.queue.exchange_pool(pool);
    }

    /// Lends memory for copies of what is written, unless there is some.
    pub(crate) fn attach_blocks(&mut self, blocks: &mut Blocks) {
        blocks.move_to(self.streams.blocks());
    }

    /// Gives that memory back.
    pub(crate) fn detach_blocks(&mut self, blocks: &mut Blocks) {
        self.streams.blocks().move_to(blocks);
    }

    /// The next event that waits to be told.
    #[inline]
    pub(crate) fn next_event(&mut self, now: Instant) -> Option<Event> {
        if let Some(event) = self.events.pop() {
            self.observer.on_event(&event, &self.paths, now);
            return Some(event);
        }
        if !self.lifecycle.is_open() {
            return None;
        }
        if self.datagrams.take_arrival() {
            return Some(Event::DatagramReceived);
        }
        self.streams.poll_event().map(Event::Stream)
    }

    /// Returns the role of this endpoint: client or server.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the state of the connection.
    pub fn lifecycle(&self) -> Lifecycle {
        self.lifecycle
    }

    /// Returns true if both sides announced the multipath extension and the handshake is complete (RFC 10069 §2).
    pub fn is_multipath(&self) -> bool {
        self.lifecycle.is_connected() && self.paths.limits.is_negotiated()
    }

    /// Has `tracer` told of everything from here on.
    pub fn set_tracer(&mut self, tracer: Box<dyn Tracer>) {
        self.observer.set_tracer(tracer);
    }

    /// The application protocol that TLS agreed on (RFC 7301).
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.handshake.session.alpn()
    }

    /// The name that the client asked for (RFC 6066 §3).
    pub fn server_name(&self) -> Option<String> {
        self.handshake.session.server_name()
    }

    /// The peer's certificate chain, leaf first, each in DER.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        self.handshake.session.peer_certificates()
    }

    /// The peer's transport parameters, once they are authenticated.
    pub fn peer_parameters(&self) -> Option<&TransportParameters> {
        self.peer.known()
    }
}
