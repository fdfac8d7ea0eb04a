//! Arguments about the transport that several commands share.

use super::privacy::{PrivacyArguments, Switch};
use crate::failure::Failure;
use crate::qlog::Logs;
use crate::tls::Secrecy;
use crate::transport::{config, from_environment};
use clap::Args;
use hvq::TransportConfig;
use hvq::config::{AckRequests, DatagramSizing, EcnMarking, HintExchange, Version, VersionChoice, Versions};
use hvq::congestion::Algorithm;
use hvq::tls::Suite;
use hvq_scheduler::{Amendment, Policy};
use std::path::PathBuf;
use std::time::Duration;

/// The scheduling, pacing and logging of packets.
#[derive(Clone, Debug, Args)]
pub struct TransportArguments {
    /// The policy that chooses the path of each frame: hvc, a scheme of the literature such as min-rtt, blest or
    /// dchannel (a wrong name lists them all), or single:PATH
    #[arg(long, value_name = "NAME", default_value_t = Policy::Hvc, long_help = policies())]
    pub scheduler: Policy,
    /// Congestion control of paths that name none: cubic, bbr, newreno, vegas, copa, vivace (these three
    /// also for radios: vegas-radio …), or coupled lia, olia, balia
    #[arg(long, visible_alias = "cc", value_name = "NAME", default_value_t = Algorithm::Cubic)]
    pub congestion: Algorithm,
    /// Size of datagrams, in bytes of UDP payload; by default each path finds out what it carries, up to 1452
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1200..))]
    datagram_size: Option<u16>,
    /// Do not mark packets as ECN-capable
    #[arg(long)]
    no_ecn: bool,
    /// Keep each path warm with a PING after so much silence of the path
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::positive)]
    path_keep_alive: Option<Duration>,
    /// Try longer silences than that, up to this one, as long as no NAT on the way forgets the path meanwhile; a connection
    /// may then be idle for twice as long, if the server permits it
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::positive, requires = "path_keep_alive")]
    path_keep_alive_limit: Option<Duration>,
    /// Ask for fewer acknowledgements while windows are large, and do as the peer asks, if it takes part: on or off
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = Switch::parse, hide_default_value = true)]
    ack_frequency: Switch,
    /// Tell the peer what is known of paths, and believe what it tells, if it takes part: on or off
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = Switch::parse, hide_default_value = true)]
    path_hints: Switch,
    #[command(flatten)]
    privacy: PrivacyArguments,
    /// Versions of QUIC, the preferred one first: v1, v2
    #[arg(long, value_name = "VERSION,…", value_delimiter = ',', value_parser = version)]
    versions: Vec<Version>,
    /// Cipher suites, the preferred one first, and no others: aes128, aes256, chacha20
    #[arg(long, value_name = "SUITE,…", value_delimiter = ',', value_parser = suite)]
    ciphers: Vec<Suite>,
    /// Append TLS secrets to this file, for tools that decrypt captures (by default what SSLKEYLOGFILE says)
    #[arg(long, value_name = "FILE")]
    keylog: Option<PathBuf>,
    /// Write what each connection does to a qlog file in this folder, for qvis (by default what QLOGDIR says)
    #[arg(long, value_name = "FOLDER")]
    qlog: Option<PathBuf>,
}

/// The policies and the amendments of hvc, for the long help.
fn policies() -> String {
    let amendments =
        Amendment::ALL.map(|amendment| format!("  {:18}{}", amendment.name(), amendment.effect()));
    format!(
        "The policy that chooses the path of each frame: {}, or single:PATH. hvc:core is the bare formula of hvc, \
         hvc:without=NAME+NAME is hvc without some of its amendments:\n{}",
        Policy::NAMES.join(", "),
        amendments.join("\n")
    )
}

impl TransportArguments {
    /// The transport configuration that they ask for.
    pub fn config(&self) -> TransportConfig {
        let mut config = self.privacy.apply(config(self.scheduler, self.congestion));
        if let Some(size) = self.datagram_size {
            config.set_datagram_size(DatagramSizing::Fixed(size.into()));
        }
        if self.no_ecn {
            config.set_ecn(EcnMarking::Off);
        }
        if self.ack_frequency == Switch::Off {
            config.set_ack_requests(AckRequests::Off);
        }
        if self.path_hints == Switch::Off {
            config.set_path_hints(HintExchange::Off);
        }
        config.set_path_keep_alive(self.path_keep_alive);
        config.set_path_keep_alive_limit(self.path_keep_alive_limit);
        if let Some(limit) = self.path_keep_alive_limit {
            config.set_idle_timeout(config.idle_timeout().max(limit.saturating_mul(2)));
        }
        // Whoever names versions prefers them in that order, also as a server.
        let mut named: Vec<Version> = Vec::new();
        for version in &self.versions {
            if !named.contains(version) {
                named.push(*version);
            }
        }
        if let Some(versions) = Versions::new(&named, VersionChoice::OwnPreference) {
            config.set_versions(versions);
        }
        config
    }

    /// Returns the encryption of packets, and the file for TLS secrets, if there is one.
    pub fn secrecy(&self) -> Secrecy {
        let keylog = self.keylog.clone().or_else(|| from_environment("SSLKEYLOGFILE"));
        Secrecy { suites: self.ciphers.clone(), keylog }
    }

    /// The logs of connections that they ask for.
    pub fn logs(&self) -> Result<Logs, Failure> {
        Logs::open(self.qlog.clone().or_else(|| from_environment("QLOGDIR")).as_deref())
    }
}

fn suite(name: &str) -> Result<Suite, String> {
    match name {
        "aes128" => Ok(Suite::Aes128Gcm),
        "aes256" => Ok(Suite::Aes256Gcm),
        "chacha20" => Ok(Suite::ChaCha20Poly1305),
        _ => Err("cipher suites are aes128, aes256 and chacha20".to_owned()),
    }
}

/// Reads a version of QUIC.
fn version(text: &str) -> Result<Version, String> {
    match text {
        "v1" | "1" => Ok(Version::V1),
        "v2" | "2" => Ok(Version::V2),
        _ => Err("choose from v1, v2".to_owned()),
    }
}
