//! The configuration of connections: an application's decisions before they start.

mod check;
pub(crate) mod settings;

pub use check::TransportConfigError;

use crate::PathId;
use crate::Role;
use crate::congestion::Congestion;
use crate::connection::ack_frequency::{AckRequests, MIN_ACK_DELAY};
use crate::connection::paths::migration::Migration;
use crate::connection::paths::preferred::{Preference, PreferredAddresses};
use crate::connection::queue_bound::QueueBound;
use crate::crypto::one_rtt::AeadLimits;
use crate::handshake::negotiation::Versions;
use crate::knowledge::PathMemory;
use crate::path::amplification::Amplification;
use crate::path::dscp::Dscp;
use crate::path::keep_alive::KeepAlive;
use crate::path::mtu::DatagramSizing;
use crate::path::path::{Path, PathSettings};
use crate::path::rotation::Rotation;
use crate::path::route::{FourTuple, Route};
use crate::path::spin::{Spin, SpinBit};
use crate::recovery::ecn::{EcnMarking, EcnValidation};
use crate::space::received::AckPolicy;
use crate::stream::StreamLimits;
use crate::time::Instant;
use crate::trace::TracerFactory;
use crate::wire::grease::Greasing;
use crate::wire::transport_parameters::{HintExchange, PartialDelivery, TransportParameters};
use hvq_scheduler::{Hints, Scheduler};
use rand::rngs::StdRng;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Makes a fresh scheduler for each connection.
pub type SchedulerFactory = Arc<dyn Fn() -> Box<dyn Scheduler> + Send + Sync>;

/// Hints about the channel behind a local address, so that a server too can tell its channels apart.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelHint {
    /// The local address whose paths the hint describes.
    pub local: SocketAddr,
    /// The hints.
    pub hints: Hints,
    /// The congestion control of these paths, if not that of the connection.
    pub congestion: Option<Congestion>,
    /// The name of the link behind the address, at most 64 bytes: what is remembered of its paths is found by it in later
    /// connections ([`TransportConfig::set_path_memory`]). `None` has it found by the IP address.
    pub link: Option<Arc<str>>,
}

impl ChannelHint {
    /// `hints` about the paths from `local`, which are under the connection's congestion controller.
    pub fn new(local: SocketAddr, hints: Hints) -> Self {
        Self { local, hints, congestion: None, link: None }
    }
}

/// The multipath extension that a connection offers (RFC 10069 §2), and the number of paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Multipath {
    /// Plain QUIC v1.
    Off,
    /// Path IDs from 0 to this one, inclusive; 0 offers the extension with path 0 only.
    UpTo(PathId),
}

/// Limits and choices of a connection. All have defaults but the scheduler. Setters can be chained, and say units, defaults and
/// ranges.
#[derive(Clone)]
pub struct TransportConfig {
    pub(crate) scheduler: SchedulerFactory,
    pub(crate) congestion: Congestion,
    pub(crate) versions: Versions,
    pub(crate) greasing: Greasing,
    pub(crate) multipath: Multipath,
    pub(crate) migration: Migration,
    pub(crate) idle_timeout: Duration,
    pub(crate) handshake_timeout: Duration,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) path_keep_alive: Option<Duration>,
    pub(crate) path_keep_alive_limit: Option<Duration>,
    pub(crate) spin_bit: SpinBit,
    pub(crate) rotation: Rotation,
    pub(crate) preferred_addresses: PreferredAddresses,
    pub(crate) preference: Preference,
    pub(crate) codepoints: Vec<(SocketAddr, Dscp)>,
    pub(crate) streams: StreamLimits,
    pub(crate) memory: usize,
    pub(crate) max_datagram_frame: u64,
    pub(crate) datagram_queue: usize,
    pub(crate) datagram_size: DatagramSizing,
    pub(crate) max_udp_payload: u64,
    pub(crate) acknowledge: AckPolicy,
    pub(crate) ack_requests: AckRequests,
    pub(crate) ecn: EcnMarking,
    pub(crate) validation_timeout: Duration,
    pub(crate) channels: Vec<ChannelHint>,
    pub(crate) path_hints: HintExchange,
    pub(crate) partial_delivery: PartialDelivery,
    pub(crate) queue_bound: QueueBound,
    pub(crate) path_memory: PathMemory,
    pub(crate) opening_datagrams: u8,
    pub(crate) segments: usize,
    pub(crate) aead_limits: Option<AeadLimits>,
    pub(crate) last_packet_number: u64,
    pub(crate) tracer: Option<TracerFactory>,
}

impl TransportConfig {
    /// The defaults, with connections scheduled by what `scheduler` makes.
    pub fn new(scheduler: SchedulerFactory) -> Self {
        Self {
            scheduler,
            congestion: Congestion::default(),
            versions: Versions::default(),
            greasing: Greasing::default(),
            multipath: Multipath::UpTo(PathId(3)),
            migration: Migration::Allowed,
            idle_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            keep_alive: None,
            path_keep_alive: None,
            path_keep_alive_limit: None,
            spin_bit: SpinBit::default(),
            rotation: Rotation::default(),
            preferred_addresses: PreferredAddresses::default(),
            preference: Preference::default(),
            codepoints: Vec::new(),
            streams: StreamLimits::default(),
            memory: 32 << 20,
            max_datagram_frame: 65_535,
            datagram_queue: 1 << 20,
            datagram_size: DatagramSizing::default(),
            max_udp_payload: 65_527,
            acknowledge: AckPolicy::default(),
            ack_requests: AckRequests::default(),
            ecn: EcnMarking::default(),
            validation_timeout: Duration::from_secs(3),
            channels: Vec::new(),
            path_hints: HintExchange::On,
            partial_delivery: PartialDelivery::Off,
            queue_bound: QueueBound::On,
            path_memory: PathMemory::default(),
            opening_datagrams: 4,
            segments: 64,
            aead_limits: None,
            last_packet_number: crate::wire::varint::MAX,
            tracer: None,
        }
    }

    /// The hints for paths from `local`, or none.
    pub fn hints_for(&self, local: SocketAddr) -> Hints {
        self.channel(local).map(|channel| channel.hints).unwrap_or_default()
    }

    /// The congestion control of paths from `local`.
    pub fn congestion_for(&self, local: SocketAddr) -> &Congestion {
        self.channel(local).and_then(|channel| channel.congestion.as_ref()).unwrap_or(&self.congestion)
    }

    /// The name of the link behind `local`, if it has one.
    pub(crate) fn link_of(&self, local: SocketAddr) -> Option<&Arc<str>> {
        self.channel(local).and_then(|channel| channel.link.as_ref())
    }

    fn channel(&self, local: SocketAddr) -> Option<&ChannelHint> {
        self.channels.iter().find(|channel| channel.local == local)
    }

    /// A new route over `tuple`, as the configuration has routes (RFC 9000 §9.4: nothing of another one holds).
    pub(crate) fn route(&self, tuple: FourTuple, amplification: Amplification, now: Instant) -> Route {
        let congestion = self.congestion_for(tuple.local).clone();
        let mut route = Route::new(tuple, congestion, amplification, self.datagram_size, now);
        route.set_ecn(EcnValidation::new(self.ecn));
        route
    }

    /// Has a new `path` used as configured; what is left to chance comes from `rng`.
    pub(super) fn configure(&self, path: &mut Path, role: Role, rng: &mut StdRng, now: Instant) {
        let spin = Spin::draw(self.spin_bit, rng);
        path.sent.begin_at_random(rng);
        let dscp = self.dscp_for(path.route.tuple.local);
        let keep_alive = self.keep_alive_of(self.path_keep_alive, role);
        path.configure(PathSettings { spin, keep_alive, dscp }, now);
    }

    /// The keep-alive of a path with PINGs after each `period`, or after more where a client may learn what its NATs bear. A server is
    /// behind no NAT that would forget its client's address and show it.
    pub(crate) fn keep_alive_of(&self, period: Option<Duration>, role: Role) -> KeepAlive {
        KeepAlive::new(period, self.path_keep_alive_limit.filter(|_| role == Role::Client))
    }

    /// The codepoint of paths from `local`.
    pub fn dscp_for(&self, local: SocketAddr) -> Dscp {
        self.codepoints.iter().find(|(of, _)| *of == local).map(|(_, dscp)| *dscp).unwrap_or_default()
    }

    /// The transport parameters that say all this to the peer (RFC 9000 §18.2); connection IDs are added by the handshake.
    pub fn parameters(&self) -> TransportParameters {
        TransportParameters {
            max_idle_timeout: self.idle_timeout,
            max_udp_payload_size: self.max_udp_payload,
            initial_max_data: self.streams.max_data,
            initial_max_stream_data_bidi_local: self.streams.stream_data_bidi_local,
            initial_max_stream_data_bidi_remote: self.streams.stream_data_bidi_remote,
            initial_max_stream_data_uni: self.streams.stream_data_uni,
            initial_max_streams_bidi: self.streams.max_streams_bidi,
            initial_max_streams_uni: self.streams.max_streams_uni,
            max_ack_delay: self.acknowledge.max_delay,
            disable_active_migration: self.migration == Migration::Refused,
            // Draft-ietf-quic-ack-frequency-14 §3: not above max_ack_delay.
            min_ack_delay: (self.ack_requests == AckRequests::Exchanged
                && self.acknowledge.max_delay >= MIN_ACK_DELAY)
                .then_some(MIN_ACK_DELAY),
            //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
            //# The value of the active_connection_id_limit parameter MUST be at least 2
            active_connection_id_limit: 4,
            max_datagram_frame_size: self.max_datagram_frame,
            initial_max_path_id: match self.multipath {
                Multipath::Off => None,
                Multipath::UpTo(highest) => Some(highest),
            },
            quic_bit: self.greasing.quic_bit(),
            path_hints: self.path_hints,
            partial_delivery: self.partial_delivery,
            ..TransportParameters::default()
        }
    }
}

impl fmt::Debug for TransportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportConfig")
            .field("congestion", &self.congestion)
            .field("multipath", &self.multipath)
            .field("idle_timeout", &self.idle_timeout)
            .field("datagram_size", &self.datagram_size)
            .finish_non_exhaustive()
    }
}
