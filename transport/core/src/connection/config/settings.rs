//! The settings of connections, each with its unit, default and range.

use super::{ChannelHint, Multipath, SchedulerFactory, TransportConfig};
use crate::congestion::Congestion;
use crate::connection::ack_frequency::AckRequests;
use crate::connection::paths::migration::Migration;
use crate::connection::paths::preferred::{Preference, PreferredAddresses};
use crate::connection::queue_bound::QueueBound;
use crate::crypto::one_rtt::AeadLimits;
use crate::handshake::negotiation::Versions;
use crate::knowledge::PathMemory;
use crate::path::dscp::Dscp;
use crate::path::mtu::DatagramSizing;
use crate::path::rotation::Rotation;
use crate::path::spin::SpinBit;
use crate::recovery::ecn::EcnMarking;
use crate::space::received::AckPolicy;
use crate::stream::StreamLimits;
use crate::trace::TracerFactory;
use crate::wire::grease::Greasing;
use crate::wire::transport_parameters::{HintExchange, PartialDelivery};
use std::net::SocketAddr;
use std::time::Duration;

/// Makes a setter of each setting.
macro_rules! settings {
    ($config:ident: $($(#[$about:meta])* $set:ident($name:ident: $type:ty);)*) => {
        impl $config {
            $(
                $(#[$about])*
                pub fn $set(&mut self, $name: $type) -> &mut Self {
                    self.$name = $name;
                    self
                }
            )*
        }
    };
}
pub(crate) use settings;

settings! { TransportConfig:
    /// The policy that places frames on paths.
    set_scheduler(scheduler: SchedulerFactory);

    /// The congestion control of each path whose channel names no other (see [`ChannelHint`]): a built-in algorithm or a
    /// factory of the program's. Default: CUBIC (RFC 9438).
    set_congestion(congestion: Congestion);

    /// The versions of QUIC that are spoken, the preferred one first. Default: 1 (RFC 9000) and 2 (RFC 9369).
    set_versions(versions: Versions);

    /// Greasing: values that mean nothing vary, such as reserved versions and transport parameters, and the QUIC bit if
    /// the peer agrees (RFC 9287). Default: on.
    set_greasing(greasing: Greasing);

    /// The multipath extension (RFC 10069). Default: path IDs 0 to 3.
    set_multipath(multipath: Multipath);

    /// Permission for clients to move their paths to other addresses (RFC 9000 §9), at a server. Default: allowed.
    set_migration(migration: Migration);

    /// The silence after which the connection ends (RFC 9000 §10.1); zero disables the timeout. The lower value of both
    /// ends holds. Default: 30 s.
    set_idle_timeout(idle_timeout: Duration);

    /// The longest time that a handshake may take; then the connection ends. Above zero. Default: 10 s.
    set_handshake_timeout(handshake_timeout: Duration);

    /// The silence of the connection after which a PING is sent (RFC 9000 §10.1.2), above zero; `None` sends none. Default: `None`.
    set_keep_alive(keep_alive: Option<Duration>);

    /// The silence of a path after which a PING is sent on it, above zero; `None` sends none. A backup path that is kept warm is
    /// found out when it dies, and its NAT binding lives on. The PING comes after half of the idle timeout of either end at the latest.
    /// [`Connection::set_path_keep_alive`](crate::connection::Connection::set_path_keep_alive) changes it for one path.
    /// Default: `None`.
    set_path_keep_alive(path_keep_alive: Option<Duration>);

    /// The longest silence of a path after which a PING is sent on it, if it may become longer than
    /// [`path_keep_alive`](Self::set_path_keep_alive). A client tries longer silences until a NAT has forgotten the path meanwhile,
    /// which the server shows by validating the new address (RFC 9000 §9.3), and stays below that; it begins anew where the path
    /// moves. Data of the server that comes while the NAT does not know the path waits for the next PING. No silence is longer than
    /// half of the idle timeout of either end. `None` keeps to `path_keep_alive`. Above zero. Default: `None`.
    set_path_keep_alive_limit(path_keep_alive_limit: Option<Duration>);

    /// The spin bit, by which observers of the network may measure round-trip times (RFC 9000 §17.4). Default: it spins
    /// on all paths but one in sixteen.
    set_spin_bit(spin_bit: SpinBit);

    /// The limits after which paths change the peer's connection ID that they use (RFC 9000 §5.1.2). Default: none.
    set_rotation(rotation: Rotation);

    /// A server's addresses that clients shall move to after the handshake (RFC 9000 §9.6); the endpoint must receive
    /// there. Default: none.
    set_preferred_addresses(preferred_addresses: PreferredAddresses);

    /// Tells whether a client moves to the server's preferred address. Default: it does.
    set_preference(preference: Preference);

    /// The Differentiated Services codepoints of paths, by local address; others have 0. Default: none.
    set_codepoints(codepoints: Vec<(SocketAddr, Dscp)>);

    /// The limits of streams and their flow control: at most 2^60 streams (RFC 9000 §4.6) and 2^62 - 1 bytes (§16). Default:
    /// those of [`StreamLimits`].
    set_streams(streams: StreamLimits);

    /// The maximum number of bytes that a connection holds for its peer and its application together: stream data that
    /// was not sent, acknowledged or read, and datagrams. Default: 32 MiB. While the endpoint's
    /// [quota](crate::endpoint::EndpointConfig::set_memory) is short it holds less. Data that the peer was granted to send
    /// is taken in even so, unless the quota is nearly used up.
    set_memory(memory: usize);

    /// The largest DATAGRAM frame accepted (max_datagram_frame_size, RFC 9221 §3), in bytes, up to 2^62 - 1; 0 refuses them.
    /// Default: 65,535.
    set_max_datagram_frame(max_datagram_frame: u64);

    /// The maximum number of bytes of datagrams that wait for sending, and as many for the application. Default: 1 MiB.
    set_datagram_queue(datagram_queue: usize);

    /// The size of UDP datagrams sent: a fixed one, or path MTU discovery (RFC 8899); from 1200 to 65,527 bytes.
    /// Default: discovery up to 1452 bytes.
    set_datagram_size(datagram_size: DatagramSizing);

    /// The largest UDP payload accepted (max_udp_payload_size, RFC 9000 §18.2), in bytes, from 1200. Default: 65,527.
    set_max_udp_payload(max_udp_payload: u64);

    /// The policy by which packets are acknowledged, unless the peer asks for something else. Default: every second
    /// ack-eliciting packet, after 25 ms at most. The delay is below 2^14 ms (RFC 9000 §18.2).
    set_acknowledge(acknowledge: AckPolicy);

    /// The exchange of requests for acknowledgements: tells whether the ends tell each other how often they want them
    /// (draft-ietf-quic-ack-frequency-14). Default: they do.
    set_ack_requests(ack_requests: AckRequests);

    /// Explicit congestion notification: tells whether packets are marked as ECN-capable (RFC 9000 §13.4). Default:
    /// they are, on paths that carry the marks.
    set_ecn(ecn: EcnMarking);

    /// The time for which a path may be validated before the attempt fails (RFC 9000 §8.2.4), above zero. Default: 3 s.
    set_validation_timeout(validation_timeout: Duration);

    /// Hints about channels, by local address. Default: none.
    set_channels(channels: Vec<ChannelHint>);

    /// The exchange of hints about paths: tells whether the peer is told this end's, and believed its own
    /// (docs/spec/path-hints.md). Default: both, if the peer takes part.
    set_path_hints(path_hints: HintExchange);

    /// The support for streams that the peer resets without giving up their first bytes (RESET_STREAM_AT,
    /// draft-ietf-quic-reliable-stream-reset). This end may reset its own so if the peer supports it, whatever is set here.
    /// Default: off.
    set_partial_delivery(partial_delivery: PartialDelivery);

    /// Tells whether the queue of a path that is quicker and narrower than others is bounded, whatever the policy and the
    /// controller do. Default: it is. Off, experiments have other transports' policies as their authors have them.
    set_queue_bound(queue_bound: QueueBound);

    /// The memory of paths that the endpoint keeps beyond the connection: rates, round trips and windows, with which a later
    /// connection begins on the same path (Careful Resume, RFC 9959). Default: for ten minutes.
    set_path_memory(path_memory: PathMemory);

    /// The number of full datagrams that the client sends to open a path, so that the server may answer with more than
    /// three before the address is validated (RFC 9000 §8.1), and so that it shows what the path carries; none where the hinted
    /// rate makes one take more than a millisecond, and none on one of more than four connections of the endpoint, which together would fill
    /// a slow link. Default: 4.
    set_opening_datagrams(opening_datagrams: u8);

    /// The maximum number of segments of one datagram batch (UDP generic segmentation offload), from 1 to 64. Default: 64.
    set_segments(segments: usize);

    /// The limits on the use of keys, if lower than those of the cipher suite (RFC 9001 §6.6). Keys are updated when
    /// half of the packets that one key may seal are sealed. Default: `None`, those of the suite.
    set_aead_limits(aead_limits: Option<AeadLimits>);

    /// The packet number at which a connection is over (RFC 9000 §12.3). Tests cannot wait for 2^62 packets.
    #[doc(hidden)]
    set_last_packet_number(last_packet_number: u64);

    /// The factory of tracers, which watch each connection from its first moment on. Default: `None`, nobody watches.
    set_tracer(tracer: Option<TracerFactory>);
}

impl TransportConfig {
    /// Adds a hint about the channel behind a local address to those there are.
    pub fn add_channel(&mut self, channel: ChannelHint) -> &mut Self {
        self.channels.push(channel);
        self
    }

    /// Adds hints about channels to those there are.
    pub fn add_channels(&mut self, channels: impl IntoIterator<Item = ChannelHint>) -> &mut Self {
        self.channels.extend(channels);
        self
    }

    /// The size of UDP datagrams sent, as it was set.
    pub fn datagram_size(&self) -> DatagramSizing {
        self.datagram_size
    }

    /// The hints about channels.
    pub fn channels(&self) -> &[ChannelHint] {
        &self.channels
    }

    /// Adds the Differentiated Services codepoint of paths from `local` to those there are.
    pub fn add_codepoint(&mut self, local: SocketAddr, dscp: Dscp) -> &mut Self {
        self.codepoints.push((local, dscp));
        self
    }

    /// The limits of streams and their flow control, to be changed one by one.
    pub fn streams_mut(&mut self) -> &mut StreamLimits {
        &mut self.streams
    }
}

/// Makes a method of each setting that others read.
macro_rules! readable {
    ($config:ident: $($name:ident: $type:ty;)*) => {
        impl $config {
            $(
                #[doc = concat!("The value that [`Self::set_", stringify!($name), "`] sets.")]
                pub fn $name(&self) -> $type {
                    self.$name
                }
            )*
        }
    };
}
pub(crate) use readable;

readable! { TransportConfig:
    multipath: Multipath;
    idle_timeout: Duration;
    handshake_timeout: Duration;
    keep_alive: Option<Duration>;
    path_keep_alive: Option<Duration>;
    path_keep_alive_limit: Option<Duration>;
    streams: StreamLimits;
    max_datagram_frame: u64;
    datagram_queue: usize;
    max_udp_payload: u64;
    acknowledge: AckPolicy;
    validation_timeout: Duration;
    path_memory: PathMemory;
    opening_datagrams: u8;
}
