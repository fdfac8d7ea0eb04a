//! Async multipath QUIC endpoints on tokio, with several local addresses a connection.
//!
//! An [`Endpoint`] owns UDP sockets and one driver task; [`Connection`]s, [`SendStream`]s and [`RecvStream`]s are handles
//! on state that the driver moves. The protocol itself is in [`transport`], which does no I/O.
//!
//! All types are to be used within a tokio runtime with I/O and time enabled. Every future is cancel-safe: dropping one
//! loses no data, except where its documentation says so.

mod address;
mod connection;
mod destination;
mod dialer;
mod driver;
mod endpoint;
mod error;
mod handle_state;
mod links;
mod migration;
mod options;
mod path_manager;
mod paths;
mod race;
mod receive_queue;
mod recv_stream;
mod send_stream;
mod sessions;
mod shared;
mod socket;
mod sockets;
mod steering;
mod timer;
mod workers;

pub use address::{LinkAddress, LocalAddress, LocalAddressError};
pub use connection::Connection;
pub use destination::{Destination, DestinationError};
pub use dialer::{DialAttempt, DialError, Dialed, Dialer};
pub use endpoint::{Connecting, EarlyDataAccepted, Endpoint, EndpointOptions};
pub use error::{
    ConnectError, ConnectionError, MigratePathError, OpenPathError, PathCommandError, ReadError,
    ReadToEndError, SendDatagramError, WriteError,
};
pub use links::{Link, LinkKind, LinkRoute, LinkState, Links, UnknownLinkKind};
pub use options::{ChannelOptions, ConnectOptions, OptionsError, PathOptions, parse_hints};
pub use path_manager::{
    Budget, BudgetError, Condition, LinkStatus, LinkUse, PathManager, PathManagerBuilder, PathManagerError,
    PathManagerEvent, PathManagerEvents, PathManagerStatus, Period, Reason, Rule, RuleError, Rules,
    RulesError, Spending, Use,
};
pub use paths::{PathEvents, PathInfo, PathState};
pub use recv_stream::RecvStream;
pub use send_stream::{Ending, SendStream};
pub use sessions::MemorySessions;
pub use shared::IoStats;
pub use workers::{SteeredBy, Succession};

pub use hvq_qlog as qlog;
pub use hvq_transport as transport;
pub use hvq_transport::congestion;
pub use hvq_transport::connection::{
    ConnectionStats, Dscp, Greasing, Migration, Multipath, PathEvent, PathStats, Preference,
    PreferredAddresses, Replay, Rotation, SpinBit, TransportConfig,
};
pub use hvq_transport::crypto::keys::Suite;
pub use hvq_transport::crypto::one_rtt::UpdateNotPermitted;
pub use hvq_transport::crypto::session::{
    CertificateHolder, ClientTls, EarlyData, Identity, ServerTls, SessionStore, SessionTicket,
    TlsConfigError, Verify,
};
pub use hvq_transport::endpoint::ids::ConnectionIds;
pub use hvq_transport::endpoint::quic_lb::{FirstOctet, QuicLb, QuicLbConfig, QuicLbError};
pub use hvq_transport::endpoint::steering::Generation;
pub use hvq_transport::endpoint::{
    Admission, Candidate, ClientConfig, Decision, EndpointConfig, EndpointStats, RetryPolicy, ServerConfig,
};
pub use hvq_transport::scheduler::{Hints, Metering, PerMille, Policy, Priority, Sharing};
pub use hvq_transport::stream::{Direction, StreamId};
pub use hvq_transport::wire::frame::Status;
pub use hvq_transport::{Bandwidth, PathId};

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
