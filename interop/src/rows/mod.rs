//! The rows: what is exchanged with whom.

mod clients;
mod frames;
mod h3spec;
mod http3;
mod multipath;
mod process;
mod qpack;
mod servers;
mod single;
mod tunnels;

use crate::identity::Identity;
use crate::report::Exchange;
use anyhow::{Context, Result};
use clients::Version;
use multipath::Cut;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The programs and files that rows need from outside.
#[derive(Debug)]
pub struct Setup {
    /// The certificate of all servers.
    pub identity: Identity,
    /// The `hvq` command.
    pub hvq: PathBuf,
    /// nginx, built with HTTP/3.
    pub nginx: PathBuf,
    /// A Python that has aioquic and pycurl.
    pub python: PathBuf,
    /// quic-go's client and server, as the folder quic-go builds them.
    pub quic_go: PathBuf,
    /// masque-go's client and proxy, as the folder masque-go builds them.
    pub masque_go: PathBuf,
    /// h2load, built with HTTP/3.
    pub h2load: PathBuf,
    /// Chromium.
    pub chromium: PathBuf,
    /// h3spec.
    pub h3spec: PathBuf,
}

/// Bytes of the file that programs fetch.
const CONTENT: usize = 10_000_000;
/// The name of that file.
const FILE: &str = "content.bin";

/// A row of the table: which peer, on which side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    /// noq serves, two paths.
    NoqServer,
    /// noq asks, two paths.
    NoqClient,
    /// noq serves, and the second path is cut.
    NoqServerSecondCut,
    /// noq asks, and the second path is cut.
    NoqClientSecondCut,
    /// noq serves, and the first path is cut.
    NoqServerFirstCut,
    /// noq asks, and the first path is cut.
    NoqClientFirstCut,
    /// noq serves, and all kinds of multipath frames are exchanged.
    NoqServerFrames,
    /// noq asks, and all kinds of multipath frames are exchanged.
    NoqClientFrames,
    /// quiche serves.
    QuicheServer,
    /// quiche asks.
    QuicheClient,
    /// quinn serves.
    QuinnServer,
    /// quinn asks.
    QuinnClient,
    /// s2n-quic serves.
    S2nServer,
    /// s2n-quic asks.
    S2nClient,
    /// quic-go serves.
    QuicGoServer,
    /// quic-go asks.
    QuicGoClient,
    /// quic-go asks in QUIC version 2.
    QuicGoClientVersion2,
    /// masque-go asks a gateway for a tunnel for UDP.
    MasqueGoClient,
    /// masque-go is asked for one.
    MasqueGoProxy,
    /// connect-ip-go asks a gateway for a tunnel for IP.
    ConnectIpGoClient,
    /// connect-ip-go is asked for one.
    ConnectIpGoProxy,
    /// nginx serves.
    Nginx,
    /// aioquic asks.
    Aioquic,
    /// libcurl asks.
    Libcurl,
    /// h2load asks, often.
    H2load,
    /// Chromium loads a page.
    Chromium,
    /// h3spec misbehaves.
    H3spec,
    /// ls-qpack writes and reads field sections.
    LsQpack,
}

use Row::*;

impl Row {
    /// All rows, in their order.
    pub const ALL: [Self; 28] = [
        NoqServer,
        NoqClient,
        NoqServerSecondCut,
        NoqClientSecondCut,
        NoqServerFirstCut,
        NoqClientFirstCut,
        NoqServerFrames,
        NoqClientFrames,
        QuicheServer,
        QuicheClient,
        QuinnServer,
        QuinnClient,
        S2nServer,
        S2nClient,
        QuicGoServer,
        QuicGoClient,
        QuicGoClientVersion2,
        MasqueGoClient,
        MasqueGoProxy,
        ConnectIpGoClient,
        ConnectIpGoProxy,
        Nginx,
        Aioquic,
        Libcurl,
        H2load,
        Chromium,
        H3spec,
        LsQpack,
    ];

    /// The name that selects it.
    pub fn name(self) -> &'static str {
        match self {
            NoqServer => "noq-server",
            NoqClient => "noq-client",
            NoqServerSecondCut => "noq-server-second-cut",
            NoqClientSecondCut => "noq-client-second-cut",
            NoqServerFirstCut => "noq-server-first-cut",
            NoqClientFirstCut => "noq-client-first-cut",
            NoqServerFrames => "noq-server-frames",
            NoqClientFrames => "noq-client-frames",
            QuicheServer => "quiche-server",
            QuicheClient => "quiche-client",
            QuinnServer => "quinn-server",
            QuinnClient => "quinn-client",
            S2nServer => "s2n-quic-server",
            S2nClient => "s2n-quic-client",
            QuicGoServer => "quic-go-server",
            QuicGoClient => "quic-go-client",
            QuicGoClientVersion2 => "quic-go-client-v2",
            MasqueGoClient => "masque-go-client",
            MasqueGoProxy => "masque-go-proxy",
            ConnectIpGoClient => "connect-ip-go-client",
            ConnectIpGoProxy => "connect-ip-go-proxy",
            Nginx => "nginx",
            Aioquic => "aioquic",
            Libcurl => "libcurl",
            H2load => "h2load",
            Chromium => "chromium",
            H3spec => "h3spec",
            LsQpack => "ls-qpack",
        }
    }

    /// Returns a description of the feature that is exercised.
    pub fn what(self) -> &'static str {
        match self {
            NoqServer | NoqClient => "multipath: 2 paths, 20 MB each way",
            NoqServerSecondCut | NoqClientSecondCut => "multipath: the 2nd path is cut midway",
            NoqServerFirstCut | NoqClientFirstCut => "multipath: the 1st path is cut midway",
            NoqServerFrames | NoqClientFrames => "multipath: all kinds of its frames",
            QuinnServer | QuinnClient | S2nServer | S2nClient => "QUIC v1: 20 MB each way",
            QuicGoClientVersion2 => "HTTP/3 over QUIC v2: 10 MB",
            MasqueGoClient => "CONNECT-UDP: 10 MB of HTTP/3 inside",
            MasqueGoProxy => "CONNECT-UDP: 1 to 1200 bytes",
            ConnectIpGoClient | ConnectIpGoProxy => "CONNECT-IP: up to 1300 bytes",
            Chromium => "HTTP/3: a page and 10 MB",
            H2load => "HTTP/3: many small requests",
            H3spec => "wrong input, case by case",
            LsQpack => "QPACK: 12,000 sections each way",
            _ => "HTTP/3: 10 MB",
        }
    }

    /// Does it, and fails unless all content arrived as it was sent within `patience`.
    ///
    /// # Errors
    /// The exchange failed, or took too long.
    pub async fn run(self, setup: &Setup, patience: Duration) -> Result<Exchange> {
        let identity = &setup.identity;
        let exchange = async {
            match self {
                NoqServer => multipath::client(identity, Cut::Nothing).await,
                NoqClient => multipath::server(identity, Cut::Nothing).await,
                NoqServerSecondCut => multipath::client(identity, Cut::Second).await,
                NoqClientSecondCut => multipath::server(identity, Cut::Second).await,
                NoqServerFirstCut => multipath::client(identity, Cut::First).await,
                NoqClientFirstCut => multipath::server(identity, Cut::First).await,
                NoqServerFrames => frames::client(identity).await,
                NoqClientFrames => frames::server(identity).await,
                QuicheServer => http3::client(identity, patience).await,
                QuicheClient => http3::server(identity, patience).await,
                QuinnServer => single::to_quinn(identity).await,
                QuinnClient => single::from_quinn(identity).await,
                S2nServer => single::to_s2n(identity).await,
                S2nClient => single::from_s2n(identity).await,
                QuicGoServer => servers::quic_go(setup).await,
                QuicGoClient => clients::quic_go(setup, Version::One).await,
                QuicGoClientVersion2 => clients::quic_go(setup, Version::Two).await,
                MasqueGoClient => tunnels::from_masque_go(setup).await,
                MasqueGoProxy => tunnels::to_masque_go(setup).await,
                ConnectIpGoClient => tunnels::from_connect_ip_go(setup).await,
                ConnectIpGoProxy => tunnels::to_connect_ip_go(setup).await,
                Nginx => servers::nginx(setup).await,
                Aioquic => clients::aioquic(setup).await,
                Libcurl => clients::libcurl(setup).await,
                H2load => clients::h2load(setup).await,
                Chromium => clients::chromium(setup).await,
                H3spec => h3spec::run(setup).await,
                LsQpack => qpack::run(),
            }
        };
        let late = || format!("not done after {} s", patience.as_secs());
        tokio::time::timeout(patience, exchange).await.with_context(late)?
    }
}

impl FromStr for Row {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|row| row.name() == name);
        known.ok_or_else(|| format!("the rows are {}", Self::ALL.map(Self::name).join(", ")))
    }
}
