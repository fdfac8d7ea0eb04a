//! The stage of a load: a server with an address for each channel, the channels, and a client.

use super::Plan;
use super::load::Moment;
use super::recording::Recording;
use super::scheme::{ChannelName, Scheme};
use crate::objects::Pages;
use hvq::config::ChannelHint;
use hvq::{
    ClientConfig, ConnectOptions, Connection, EarlyData, Endpoint, Hints, LocalAddress, PathOptions,
    ServerConfig, Verify,
};
use hvq_emulation::Direction;
use hvq_emulation::relay::{Relay, RelayHandle};
use hvq_lab::pages::{Page, THINK_SCALE};
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::server::Service;
use hvq_program::tls::{self, Resumption, Secrecy};
use hvq_program::transport;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// The name that the server's certificate is for.
pub(super) const HOST: &str = "localhost";

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Returns the hints about `channel` for the end that sends in `direction`.
fn hints(plan: &Plan, channel: ChannelName, direction: Direction) -> Hints {
    match channel {
        ChannelName::Embb => plan.channels.embb_hints(direction),
        ChannelName::Urllc => plan.channels.urllc_hints(),
    }
}

/// The server of one load.
pub(super) struct Server {
    endpoint: Endpoint,
    service: Arc<Service>,
    task: Option<JoinHandle<()>>,
    connection: Arc<Mutex<Option<Connection>>>,
    recording: Recording,
}

impl Server {
    /// Binds an address for each channel, in the order of [`ChannelName::ALL`].
    pub(super) fn bind(plan: &Plan, page: &Page, scheme: Scheme) -> Result<Self, Failure> {
        let tls = tls::server(plan.certificate.identity(), &Secrecy::default(), EarlyData::Off)?;
        let config = |channels| {
            let transport =
                transport::config(scheme.policy(), plan.congestion).set_channels(channels).clone();
            ServerConfig::new(tls.clone(), Arc::new(transport))
        };
        let local = [LocalAddress::Socket(LOOPBACK), LocalAddress::Socket(LOOPBACK)];
        let endpoint = Endpoint::server(config(Vec::new()), &local)?;
        let hint = |(local, channel)| ChannelHint::new(local, hints(plan, channel, Direction::Down));
        let hints = endpoint.local_addrs().into_iter().zip(ChannelName::ALL).map(hint).collect();
        endpoint.set_server(Some(config(hints)))?;
        let mut pages = Pages::new(vec![page.clone()]);
        pages.wait_scale = THINK_SCALE;
        let service = Service::new(pages, None);
        let recording = Recording::new(Instant::now());
        Ok(Self { endpoint, service, task: None, connection: Arc::default(), recording })
    }

    /// Serves, and records what is sent.
    pub(super) fn run(&mut self, recording: Recording) {
        self.recording = recording.clone();
        let (service, endpoint, connection) =
            (self.service.clone(), self.endpoint.clone(), self.connection.clone());
        self.task = Some(tokio::spawn(async move {
            let watch = |accepted: &Connection| {
                recording.attach(accepted);
                *connection.lock().unwrap_or_else(PoisonError::into_inner) = Some(accepted.clone());
            };
            service.run(&endpoint, watch).await;
        }));
    }

    /// Returns the address on which it listens for `channel`.
    fn address(&self, channel: ChannelName) -> Option<SocketAddr> {
        let mut addresses = self.endpoint.local_addrs().into_iter().zip(ChannelName::ALL);
        addresses.find(|(_, of)| *of == channel).map(|(address, _)| address)
    }

    /// The client's connection, once there is one.
    pub(super) fn connection(&self) -> Option<Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the record of the traffic that it sent.
    pub(super) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Ends it at once.
    pub(super) async fn stop(self) {
        if let Some(task) = self.task {
            task.abort();
        }
        self.endpoint.close(hvq_h3::Code::H3_NO_ERROR.value(), b"");
        // The close has left; what comes back is of no interest.
        tokio::task::yield_now().await;
    }
}

/// The channels between client and server, in the order in which the client opens paths over them.
pub(super) struct Relays(Vec<(ChannelName, RelayHandle)>);

impl Relays {
    /// Starts them at `moment` of the trace.
    pub(super) fn start(
        plan: &Plan,
        server: &Server,
        scheme: Scheme,
        moment: Moment,
    ) -> Result<Self, Failure> {
        // The handshake goes over URLLC, if it is there (architecture: the first hundred milliseconds).
        let order: &[ChannelName] = match scheme.is_multipath() {
            true => &[ChannelName::Urllc, ChannelName::Embb],
            false => &[ChannelName::Embb],
        };
        let mut relays = Vec::new();
        for (channel, seed) in order.iter().zip(plan.seed..) {
            let spec = match channel {
                ChannelName::Embb => plan.channels.embb.clone().starting_at(moment.offset),
                ChannelName::Urllc => plan.channels.urllc.clone(),
            };
            let upstream = server
                .address(*channel)
                .ok_or_else(|| Failure::new(Exit::Runtime, "the server has no address for a channel"))?;
            let relay = Relay::start(LOOPBACK, upstream, spec, seed);
            let relay = relay.or_fail(Exit::Runtime, || format!("cannot emulate {}", channel.label()))?;
            relays.push((*channel, relay));
        }
        Ok(Self(relays))
    }

    /// The channels in that order.
    pub(super) fn in_order(&self) -> &[(ChannelName, RelayHandle)] {
        &self.0
    }
}

/// The client of one load.
pub(super) struct Client {
    endpoint: Endpoint,
    config: ClientConfig,
    paths: Vec<PathOptions>,
    connection: OnceLock<(Connection, Duration)>,
    recording: Recording,
}

impl Client {
    /// A client that will reach the server over `relays`.
    pub(super) fn new(
        plan: &Plan,
        scheme: Scheme,
        relays: &Relays,
        recording: Recording,
    ) -> Result<Self, Failure> {
        let verify = Verify::CaPem(plan.certificate.certificate.clone().into_bytes());
        let tls = tls::client(verify, &Secrecy::default(), &Resumption::default())?;
        let transport = Arc::new(transport::config(scheme.policy(), plan.congestion));
        let path = |(channel, relay): &(ChannelName, RelayHandle)| {
            PathOptions::new(channel.key(), LOOPBACK).to(relay.local_addr()).with_hints(hints(
                plan,
                *channel,
                Direction::Up,
            ))
        };
        Ok(Self {
            endpoint: Endpoint::client(&[])?,
            config: ClientConfig::new(tls, transport),
            paths: relays.in_order().iter().map(path).collect(),
            connection: OnceLock::new(),
            recording,
        })
    }

    /// Connects over the first path, and opens the second the moment that is possible.
    pub(super) async fn connect(&self, start: Instant) -> Result<Connection, Failure> {
        let first = self.paths.first().expect("every scheme uses at least one channel");
        let remote = first.remote.expect("the paths of the demo lead to its relays");
        let options = ConnectOptions::new(remote, HOST).over(first);
        let connection = self.endpoint.connect_with(self.config.clone(), options)?.await?;
        self.recording.attach(&connection);
        let _first = self.connection.set((connection.clone(), start.elapsed()));
        for path in self.paths.iter().skip(1).cloned() {
            let connection = connection.clone();
            // Data flows on a path before it is validated, so that nobody waits for this.
            tokio::spawn(async move {
                if let Err(error) = connection.open_path(path).await {
                    tracing::warn!(%error, "the second path cannot be used");
                }
            });
        }
        Ok(connection)
    }

    /// The connection, once there is one.
    pub(super) fn connection(&self) -> Option<Connection> {
        self.connection.get().map(|(connection, _)| connection.clone())
    }

    /// From the start of the load to the end of the handshake.
    pub(super) fn connect_time(&self) -> Option<Duration> {
        self.connection.get().map(|(_, time)| *time)
    }

    /// Returns the record of the traffic that it sent.
    pub(super) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Ends it at once.
    pub(super) fn close(self) {
        self.endpoint.close(hvq_h3::Code::H3_NO_ERROR.value(), b"");
    }
}
