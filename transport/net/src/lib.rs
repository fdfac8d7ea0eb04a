//! Async multipath QUIC endpoints with several local addresses a connection, on tokio or another runtime.
//!
//! An [`Endpoint`] owns UDP sockets and one driver task; [`Connection`]s, [`SendStream`]s and [`RecvStream`]s are handles
//! on state that the driver moves. The protocol itself is in [`transport`], which does no I/O.
//!
//! At the top are the types that a program holds, and those that it begins with. The rest is in modules by subject: the values of
//! configurations ([`config`], [`tls`], [`admission`], [`balancing`]), channels and paths ([`path`], [`links`],
//! [`path_manager`]), names (`dns`), figures ([`stats`], [`trace`], [`qlog`]), and the parts that can be replaced ([`scheduler`],
//! [`congestion`]).
//!
//! Endpoints run on the tokio runtime that they are made in, with I/O and time enabled, or on another one, over sockets of the kernel or
//! of the program: see [`runtime`]. Every future is cancel-safe: dropping one
//! loses no data, except where its documentation says so.

mod address;
mod connection;
mod destination;
mod dialer;
#[cfg(feature = "dns")]
pub mod dns;
mod driver;
mod endpoint;
mod error;
#[cfg(feature = "runtime-smol")]
mod futures_io;
mod handle_state;
mod incoming;
pub mod links;
mod migration;
mod options;
pub mod path_manager;
mod paths;
mod race;
mod receive_queue;
mod recv_stream;
pub mod runtime;
mod send_stream;
mod sessions;
mod shared;
mod socket;
mod sockets;
mod steering;
mod workers;

pub use address::LocalAddress;
pub use connection::Connection;
pub use destination::{Destination, DestinationError};
pub use dialer::{DialAttempt, DialError, Dialed, Dialer};
pub use endpoint::{Connecting, EarlyDataAccepted, Endpoint, EndpointOptions};
pub use error::{
    ConnectError, ConnectionError, MigratePathError, OpenPathError, PathCommandError, ReadError,
    ReadToEndError, SendDatagramError, WriteError,
};
pub use options::{ChannelOptions, ConnectOptions, PathOptions};
pub use path_manager::PathManager;
pub use paths::{PathEvents, PathInfo, PathState};
pub use recv_stream::RecvStream;
pub use send_stream::{Ending, SendStream};

pub use hvq_qlog as qlog;
pub use hvq_transport as transport;
pub use hvq_transport::congestion;
pub use hvq_transport::connection::{Multipath, PathEvent, TransportConfig};
pub use hvq_transport::crypto::session::{
    ClientTls, EarlyData, Identity, ServerTls, SessionStore, SessionTicket, TlsConfigError, Verify,
};
pub use hvq_transport::endpoint::{ClientConfig, EndpointConfig, ServerConfig};
pub use hvq_transport::error::{ErrorCode, TransportError};
pub use hvq_transport::scheduler;
pub use hvq_transport::scheduler::{Hints, Policy, Priority};
pub use hvq_transport::stream::{Direction, StreamId};
pub use hvq_transport::{Bandwidth, PathId, Role};

/// Servers that choose their clients: [`ServerConfig::set_retry`] and [`ServerConfig::set_admission`].
pub mod admission {
    pub use crate::incoming::Incoming;
    pub use hvq_transport::endpoint::{Admission, Candidate, Decision, RetryPolicy};
}

/// Connection IDs that name a worker or a machine, and workers that share addresses or succeed each other.
pub mod balancing {
    pub use crate::workers::{SteeredBy, Succession};
    pub use hvq_transport::endpoint::ids::ConnectionIds;
    pub use hvq_transport::endpoint::quic_lb::{FirstOctet, QuicLb, QuicLbConfig, QuicLbError};
    pub use hvq_transport::endpoint::steering::Generation;
}

/// The values that a [`TransportConfig`] and an [`EndpointConfig`] take.
pub mod config {
    pub use hvq_transport::connection::{
        AckPolicy, AckRequests, ChannelHint, DatagramSizing, Dscp, EcnMarking, Greasing, HintExchange,
        Migration, PartialDelivery, Preference, PreferredAddresses, QueueBound, Rotation, SchedulerFactory,
        SpinBit, TransportConfigError, VersionChoice, Versions,
    };
    pub use hvq_transport::memory::{MemoryQuota, MemoryUse};
    pub use hvq_transport::stream::StreamLimits;
    pub use hvq_transport::wire::version::Version;
}

/// Properties of channels and paths.
pub mod path {
    pub use crate::address::{LinkAddress, LocalAddressError};
    pub use crate::options::{OptionsError, parse_hints};
    pub use hvq_transport::scheduler::{Metering, PerMille, Sharing};
    pub use hvq_transport::wire::frame::Status;
}

/// Counters of connections, paths, endpoints and sockets.
pub mod stats {
    pub use crate::shared::IoStats;
    pub use hvq_transport::connection::{ConnectionStats, FrameCounter, PathStats};
    pub use hvq_transport::datagram::DatagramStats;
    pub use hvq_transport::endpoint::{EndpointStats, SlotStats};
    pub use hvq_transport::stream::StreamMeter;
}

/// Certificates, keys, sessions and early data: the details of [`ClientTls`] and [`ServerTls`].
pub mod tls {
    pub use crate::sessions::MemorySessions;
    pub use hvq_transport::connection::Replay;
    pub use hvq_transport::crypto::keys::Suite;
    pub use hvq_transport::crypto::one_rtt::UpdateNotPermitted;
    pub use hvq_transport::crypto::reset::ResetKey;
    pub use hvq_transport::crypto::session::{
        CertificateHolder, KeyLog, ServerCredential, ServerNames, Ticket, TicketKeys,
    };
    pub use hvq_transport::crypto::token::TokenKey;
}

/// Tracers, which watch every packet and frame of a connection.
pub mod trace {
    pub use hvq_transport::trace::{Payload, TraceEvent, TracedPacket, Tracer, TracerFactory};
}

/// The snippet of the README of this crate, compiled by `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct CrateReadme;

/// The snippets of the README of the repository, compiled by `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// The snippets of the guide, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct Guide;

/// The snippets of the guide to congestion control, likewise.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/congestion.md")]
struct CongestionGuide;
