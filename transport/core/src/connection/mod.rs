//! A connection: the only place that composes the components, each phase in a file of its own.

mod ack_frequency;
mod audit;
mod close;
mod commands;
pub mod config;
mod control;
pub mod event;
mod events;
#[cfg(test)]
mod forced;
pub(crate) mod handshake;
mod hibernation;
#[cfg(test)]
mod inject;
pub mod lifecycle;
mod memory;
mod new_token;
mod observe;
pub(crate) mod paths;
mod receive;
pub(crate) mod send;
pub mod stats;
mod timeout;
mod views;

pub use ack_frequency::AckRequests;
pub use commands::{OpenPathError, PathCommandError};
pub use config::{ChannelHint, Multipath, SchedulerFactory, TransportConfig};
pub use event::{Event, PathEvent};
pub use handshake::setup::{ClientAddress, ConnectionSetup, IncomingConnection, InitialIds};
pub use handshake::succession::Replay;
pub use handshake::zero_rtt::{EarlyDataState, Resumption};
pub use hvq_scheduler::Role;
pub use new_token::TokenSource;
pub use paths::migration::{MigrateError, Migration, Moving};
pub use paths::preferred::{Preference, PreferredAddresses};
pub use stats::{ConnectionStats, FrameCounter, PathStats};

use crate::connection::close::Closing;
use crate::connection::control::ControlQueue;
use crate::connection::events::Events;
use crate::connection::handshake::key_update::KeyUpdate;
use crate::connection::handshake::zero_rtt::ZeroRtt;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::memory::Memory;
use crate::connection::send::buffer_pool::BufferPool;
use crate::connection::stats::Counters;
use crate::crypto::one_rtt::OneRttKeys;
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::path::local_ids::IdSource;
use crate::path::paths::Paths;
use crate::seed::Randomness;
use crate::stream::Streams;
use crate::stream::blocks::Blocks;
use crate::stream::short_queue::ShortQueue;
use crate::time::{Deadline, Instant};
use crate::trace::Tracer;
use crate::wire::connection_id::ConnectionId;
use crate::wire::header::ProtectedPacket;
use crate::wire::transport_parameters::TransportParameters;
use hvq_scheduler::Scheduler;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) use crate::connection::paths::multipath::IdChanges;
pub use crate::path::dscp::{Dscp, DscpError};
pub use crate::path::mtu::DatagramSizing;
pub use crate::path::rotation::Rotation;
pub use crate::path::route::FourTuple;
pub use crate::path::spin::SpinBit;
pub use crate::recovery::ecn::{Ecn, EcnMarking};
pub use crate::wire::grease::Greasing;
pub use crate::wire::transport_parameters::HintExchange;

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

/// The peer's transport parameters.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Its transport parameters, authenticated with the handshake.
    pub parameters: TransportParameters,
    /// True if `parameters` are there.
    pub known: bool,
}

/// The policy, and what keeps it from stalling the connection.
pub(crate) struct SchedulerSlot {
    /// The policy.
    pub policy: Box<dyn Scheduler>,
    /// The time at which it asked to be asked again.
    pub wake: Option<Instant>,
    /// Passes in a row in which everything waited though nothing was in flight.
    pub stalls: u32,
}

/// Times that the idle timeout and keep-alive count from (RFC 9000 §10.1).
#[derive(Debug)]
pub(crate) struct Activity {
    /// The last packet that authenticated, or the first ack-eliciting packet sent after it.
    pub last: Instant,
    /// True if an ack-eliciting packet was sent since the last packet arrived.
    pub sent_since: bool,
}

/// One QUIC connection, sans-IO.
pub struct Connection {
    role: Role,
    config: Arc<TransportConfig>,
    born: Instant,
    lifecycle: Lifecycle,
    handshake: Handshake,
    keys: Option<OneRttKeys>,
    key_update: KeyUpdate,
    zero_rtt: ZeroRtt,
    /// Packets that arrived before their keys.
    undecryptable: Vec<(ProtectedPacket, FourTuple, Ecn)>,
    peer: Peer,
    paths: Paths,
    /// The addresses of the handshake.
    first_tuple: FourTuple,
    preferred: paths::preferred::PreferredAddressState,
    ids: Box<dyn IdSource + Send>,
    tokens: crate::connection::new_token::NewTokens,
    streams: Streams,
    datagrams: Datagrams,
    scheduler: SchedulerSlot,
    control: ControlQueue,
    ack_frequencies: ack_frequency::AckFrequencies,
    handshake_done: crate::connection::handshake::establish::HandshakeDone,
    closing: Option<Box<Closing>>,
    activity: Activity,
    /// The time at which timers were last looked at, since the connection was idle.
    served_at: Option<Instant>,
    events: Events,
    memory: Memory,
    transmits: ShortQueue<Transmit>,
    /// Memory for datagrams and records, while the endpoint lends its own.
    pool: BufferPool,
    counters: Counters,
    tracer: Option<Box<dyn Tracer>>,
    rng: Randomness,
    /// The time at which it is decided whether the connection may hibernate.
    hibernate_at: Option<Instant>,
    /// The peer's connection ID during the handshake, and ours.
    handshake_ids: HandshakeIds,
}

/// The connection IDs of long headers.
#[derive(Debug)]
pub(crate) struct HandshakeIds {
    /// Ours.
    pub local: ConnectionId,
    /// The peer's, or what the client chose for it.
    pub remote: ConnectionId,
    /// True if the peer's own choice is known.
    pub remote_is_final: bool,
    /// The IDs that the peer chose for this endpoint and the router does not know yet.
    pub chosen_by_peer: Vec<ConnectionId>,
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
        if self.served_at != Some(now) {
            self.run_timers(now);
            self.review_memory(now);
            self.served_at = Some(now);
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
        self.served_at = None;
        self.hibernate_if_idle(now);
        Step::Idle(self.deadline(now))
    }

    /// Lends or gives back memory for datagrams and records; see
    /// [`Endpoint::recycle`](crate::endpoint::Endpoint::recycle).
    pub(crate) fn exchange_pool(&mut self, pool: &mut BufferPool) {
        std::mem::swap(&mut self.pool, pool);
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
    pub(crate) fn next_event(&mut self, now: Instant) -> Option<Event> {
        if let Some(event) = self.events.pop() {
            self.trace_event(&event, now);
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
        self.tracer = Some(tracer);
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
        self.peer.known.then_some(&self.peer.parameters)
    }
}
