//! The runner's test cases, and what each asks of an endpoint.

use crate::settings::Settings;
use hvq::admission::RetryPolicy;
use hvq::config::{StreamLimits, Version, VersionChoice, Versions};
use hvq::tls::Suite;
use hvq::{EarlyData, Multipath, Policy, TransportConfig};
use std::sync::Arc;
use std::time::Duration;

/// The ALPN of HTTP/0.9 over QUIC.
pub(crate) const HQ: &[u8] = b"hq-interop";

/// The time that a handshake may take: with a third of all packets lost it takes long.
const HANDSHAKE: Duration = Duration::from_secs(60);
/// The longest silence; and that after which a client asks whether the server is there, so that a server whose answer was
/// lost learns of it from the acknowledgement that comes along.
const IDLE: Duration = Duration::from_secs(60);
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// The first flow control windows, of a stream and of a connection: files are larger, so that windows have to grow.
const STREAM_WINDOW: u64 = 128 << 10;
const CONNECTION_WINDOW: u64 = 256 << 10;

/// A test case as `TESTCASE` names it. Several of the runner's cases share one, as only the network differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TestCase {
    /// A small file.
    Handshake,
    /// Files over one connection.
    Transfer,
    /// The same, with ChaCha20-Poly1305 as the only suite.
    ChaCha20,
    /// The same, and the client updates the keys early.
    KeyUpdate,
    /// The server sends a Retry.
    Retry,
    /// The second connection resumes the session of the first.
    Resumption,
    /// The second connection asks in 0-RTT packets.
    ZeroRtt,
    /// HTTP/3 instead of HTTP/0.9.
    Http3,
    /// A connection for each file.
    Multiconnect,
    /// Packets are marked as ECN-capable.
    Ecn,
    /// The server moves the connection to QUIC version 2.
    Version2,
    /// The server prefers another address.
    ConnectionMigration,
}

impl TestCase {
    /// The case of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "handshake" => Self::Handshake,
            "transfer" => Self::Transfer,
            "chacha20" => Self::ChaCha20,
            "keyupdate" => Self::KeyUpdate,
            "retry" => Self::Retry,
            "resumption" => Self::Resumption,
            "zerortt" => Self::ZeroRtt,
            "http3" => Self::Http3,
            "multiconnect" => Self::Multiconnect,
            "ecn" => Self::Ecn,
            "v2" => Self::Version2,
            "connectionmigration" => Self::ConnectionMigration,
            _ => return None,
        })
    }

    /// The application protocols that a client offers.
    pub(crate) fn protocol(self) -> &'static [u8] {
        if self == Self::Http3 { hvq_h3::ALPN } else { HQ }
    }

    /// The only cipher suites that may be used; none means all.
    pub(crate) fn suites(self) -> &'static [Suite] {
        if self == Self::ChaCha20 { &[Suite::ChaCha20Poly1305] } else { &[] }
    }

    /// Returns the setting of early data: on if requests go before the handshake is complete.
    pub(crate) fn early_data(self) -> EarlyData {
        if self == Self::ZeroRtt { EarlyData::On } else { EarlyData::Off }
    }

    /// Returns the policy for Retry, by which clients have to prove their address. All but one case are to go without.
    pub(crate) fn retry(self) -> RetryPolicy {
        if self == Self::Retry { RetryPolicy::Always } else { RetryPolicy::Never }
    }

    /// Returns the configuration of the transport in this case.
    pub(crate) fn transport(self, settings: &Settings) -> TransportConfig {
        let mut config = TransportConfig::new(Arc::new(|| Policy::default().scheduler()));
        config
            .set_versions(self.versions())
            .set_handshake_timeout(HANDSHAKE)
            .set_idle_timeout(IDLE)
            .set_keep_alive((!settings.is_server()).then_some(KEEP_ALIVE))
            .set_preferred_addresses(hvq_program::listen::preferred(&settings.preferred_address))
            .set_streams(StreamLimits {
                max_data: CONNECTION_WINDOW,
                stream_data_bidi_local: STREAM_WINDOW,
                stream_data_bidi_remote: STREAM_WINDOW,
                ..StreamLimits::default()
            });
        if !settings.multipath {
            // The runner reads captures with a program that knows no frames of multipath.
            config.set_multipath(Multipath::Off);
        }
        config
    }

    /// A client always begins with version 1 and could speak version 2. In one case both sides like that better; where
    /// packets are damaged there is no other, so that damage never looks like a server that speaks only that.
    fn versions(self) -> Versions {
        let versions = match self {
            Self::Version2 => Versions::new(&[Version::V2, Version::V1], VersionChoice::OwnPreference)
                .and_then(|versions| versions.beginning_with(Version::V1)),
            Self::Multiconnect => Versions::new(&[Version::V1], VersionChoice::AsOffered),
            _ => None,
        };
        versions.unwrap_or_default()
    }

    /// Returns the number of times that a client tries each address. Damage to a version makes the server answer with
    /// Version Negotiation, and damage to that ends the attempt (RFC 9000 §6.2).
    pub(crate) fn attempts(self) -> usize {
        if self == Self::Multiconnect { 3 } else { 1 }
    }
}
