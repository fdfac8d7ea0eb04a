//! The configuration of connections: an application's decisions before they start.

use crate::PathId;
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
use crate::wire::transport_parameters::{HintExchange, TransportParameters};
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
    /// connections ([`TransportConfig::path_memory`]). `None` has it found by the IP address.
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

/// Limits and choices of a connection. All have defaults but the scheduler.
#[derive(Clone)]
pub struct TransportConfig {
    /// The policy that places frames on paths.
    pub scheduler: SchedulerFactory,
    /// The congestion control of each path whose channel names no other (see [`ChannelHint`]): a built-in algorithm or a
    /// factory of the program's. Default: CUBIC (RFC 9438).
    pub congestion: Congestion,
    /// The versions of QUIC that are spoken, the preferred one first. Default: 1 (RFC 9000) and 2 (RFC 9369).
    pub versions: Versions,
    /// Greasing: values that mean nothing vary, such as reserved versions and transport parameters, and the QUIC bit if
    /// the peer agrees (RFC 9287). Default: on.
    pub greasing: Greasing,
    /// The multipath extension (RFC 10069). Default: path IDs 0 to 3.
    pub multipath: Multipath,
    /// Permission for clients to move their paths to other addresses (RFC 9000 §9), at a server. Default: allowed.
    pub migration: Migration,
    /// The silence after which the connection ends (RFC 9000 §10.1); zero disables the timeout. The lower value of both
    /// ends holds. Default: 30 s.
    pub idle_timeout: Duration,
    /// The longest time that a handshake may take; then the connection ends. Default: 10 s.
    pub handshake_timeout: Duration,
    /// The silence of the connection after which a PING is sent (RFC 9000 §10.1.2); `None` sends none. Default: `None`.
    pub keep_alive: Option<Duration>,
    /// The silence of a path after which a PING is sent on it; `None` sends none. A backup path that is kept warm is
    /// found out when it dies, and its NAT binding lives on.
    /// [`Connection::set_path_keep_alive`](crate::connection::Connection::set_path_keep_alive) changes it for one path.
    /// Default: `None`.
    pub path_keep_alive: Option<Duration>,
    /// The spin bit, by which observers of the network may measure round-trip times (RFC 9000 §17.4). Default: it spins
    /// on all paths but one in sixteen.
    pub spin_bit: SpinBit,
    /// The limits after which paths change the peer's connection ID that they use (RFC 9000 §5.1.2). Default: none.
    pub rotation: Rotation,
    /// A server's addresses that clients shall move to after the handshake (RFC 9000 §9.6); the endpoint must receive
    /// there. Default: none.
    pub preferred_addresses: PreferredAddresses,
    /// Tells whether a client moves to the server's preferred address. Default: it does.
    pub preference: Preference,
    /// The Differentiated Services codepoints of paths, by local address; others have 0. Default: none.
    pub codepoints: Vec<(SocketAddr, Dscp)>,
    /// The limits of streams and their flow control.
    pub streams: StreamLimits,
    /// The maximum number of bytes that a connection holds for its peer and its application together: stream data that
    /// was not sent, acknowledged or read, and datagrams. Default: 32 MiB. While the endpoint's
    /// [quota](crate::endpoint::EndpointConfig::memory) is short it holds less. Data that the peer was granted to send
    /// is taken in even so, unless the quota is nearly used up.
    pub memory: usize,
    /// The largest DATAGRAM frame accepted (max_datagram_frame_size, RFC 9221 §3), in bytes; 0 refuses them. Default:
    /// 65,535.
    pub max_datagram_frame: u64,
    /// The maximum number of bytes of datagrams that wait for sending, and as many for the application. Default: 1 MiB.
    pub datagram_queue: usize,
    /// The size of UDP datagrams sent: a fixed one, or path MTU discovery (RFC 8899). Default: discovery up to 1452
    /// bytes.
    pub datagram_size: DatagramSizing,
    /// The largest UDP payload accepted (max_udp_payload_size, RFC 9000 §18.2), in bytes. Default: 65,527.
    pub max_udp_payload: u64,
    /// The policy by which packets are acknowledged, unless the peer asks for something else. Default: every second
    /// ack-eliciting packet, after 25 ms at most.
    pub acknowledge: AckPolicy,
    /// The exchange of requests for acknowledgements: tells whether the ends tell each other how often they want them
    /// (draft-ietf-quic-ack-frequency-14). Default: they do.
    pub ack_requests: AckRequests,
    /// Explicit congestion notification: tells whether packets are marked as ECN-capable (RFC 9000 §13.4). Default:
    /// they are, on paths that carry the marks.
    pub ecn: EcnMarking,
    /// The time for which a path may be validated before the attempt fails (RFC 9000 §8.2.4). Default: 3 s.
    pub validation_timeout: Duration,
    /// Hints about channels, by local address. Default: none.
    pub channels: Vec<ChannelHint>,
    /// The exchange of hints about paths: tells whether the peer is told this end's, and believed its own
    /// (docs/spec/path-hints.md). Default: both, if the peer takes part.
    pub path_hints: HintExchange,
    /// Tells whether the queue of a path that is quicker and narrower than others is bounded, whatever the policy and the
    /// controller do. Default: it is. Off, experiments have other transports' policies as their authors have them.
    pub queue_bound: QueueBound,
    /// The memory of paths that the endpoint keeps beyond the connection: rates, round trips and windows, with which a later
    /// connection begins on the same path (Careful Resume, RFC 9959). Default: for ten minutes.
    pub path_memory: PathMemory,
    /// The number of full datagrams that the client sends to open a path, so that the server may answer with more than
    /// three before the address is validated (RFC 9000 §8.1); none where the hinted rate makes one take more than a
    /// millisecond. Default: 4.
    pub opening_datagrams: u8,
    /// The maximum number of segments of one datagram batch (UDP generic segmentation offload). Default: 64.
    pub segments: usize,
    /// The limits on the use of keys, if lower than those of the cipher suite (RFC 9001 §6.6). Keys are updated when
    /// half of the packets that one key may seal are sealed. Default: `None`, those of the suite.
    pub aead_limits: Option<AeadLimits>,
    /// The packet number at which a connection is over (RFC 9000 §12.3). Tests cannot wait for 2^62 packets.
    #[doc(hidden)]
    pub last_packet_number: u64,
    /// The factory of tracers, which watch each connection from its first moment on. Default: `None`, nobody watches.
    pub tracer: Option<TracerFactory>,
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
    pub(super) fn configure(&self, path: &mut Path, rng: &mut StdRng, now: Instant) {
        let spin = Spin::draw(self.spin_bit, rng);
        path.sent.begin_at_random(rng);
        let dscp = self.dscp_for(path.route.tuple.local);
        path.configure(PathSettings { spin, keep_alive: self.path_keep_alive, dscp }, now);
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
