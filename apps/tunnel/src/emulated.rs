//! A command whose packets cross emulated channels in a tunnel: both ends of it are here, and relays in between
//! (`hvq run --scheduler`).

use crate::{AsyncDevice, Client, Server, ServerOptions, TcpLane};
use hvq::config::ChannelHint;
use hvq::congestion::Algorithm;
use hvq::{
    Bandwidth, ClientConfig, ConnectOptions, EarlyData, Endpoint, Hints, LocalAddress, PathOptions,
    ServerConfig, TransportConfig, Verify,
};
use hvq_emulation::relay::{Relay, RelayHandle, RelayOptions, RelayStatistics, TapEvent, TapMoment};
use hvq_emulation::steer::Pair;
use hvq_emulation::tun::device::TunDevice;
use hvq_emulation::tun::emulator::log::{PacketEnd, PacketLog, Record};
use hvq_emulation::tun::emulator::{ChannelReport, Report};
use hvq_emulation::tun::shell::{NamespacePair, Plan};
use hvq_emulation::tun::wiring::End;
use hvq_emulation::{ChannelSpec, Count, Direction, Summary, TraceError};
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::run::refused;
use hvq_program::tls::{self, Resumption, Secrecy, SelfSigned};
use hvq_program::transport;
use hvq_scheduler::Policy;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::runtime::Runtime;

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The name that the server's certificate is for.
const HOST: &str = "localhost";

/// The channels, in the order in which their sockets and relays are made.
struct Channels<'a>([(&'static str, &'a ChannelSpec); 2]);

/// Relays, and the log that they share.
struct Relays {
    handles: Vec<(&'static str, RelayHandle)>,
    log: Option<Arc<Mutex<PacketLog>>>,
    start: Instant,
}

/// Has `perform` run the command in its namespaces, behind `pair`; returns what the channels did, and its exit code. `policy` places
/// the packets of both ends. There must be no other thread yet.
///
/// # Errors
/// A trace cannot be used ([`Exit::Usage`]), the system refuses namespaces, devices or sockets ([`Exit::Runtime`]), or `perform`
/// fails.
pub fn run(
    pair: &Pair<ChannelSpec>,
    plan: &Plan,
    policy: Policy,
    perform: impl FnOnce(&NamespacePair) -> Result<u8, Failure>,
) -> Result<(Report, u8), Failure> {
    for spec in [&pair.high_bandwidth, &pair.low_latency] {
        for direction in [Direction::Up, Direction::Down] {
            hints(spec, direction).map_err(|error| refused(&error.into()))?;
        }
    }
    let (namespaces, devices) = NamespacePair::with_devices(plan).map_err(|error| refused(&error))?;
    let channels = Channels([("urllc", &pair.low_latency), ("embb", &pair.high_bandwidth)]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let relays = runtime.block_on(connect(&channels, plan, policy, devices))?;
    let code = perform(&namespaces)?;
    let unread = namespaces.unread(&["tun0"]).ok();
    let report = relays.finish(unread);
    end(runtime);
    Ok((report, code))
}

/// Tasks that carry packets need not be waited for.
fn end(runtime: Runtime) {
    runtime.shutdown_background();
}

/// Returns the hints about a channel for the end that sends in `direction`: its typical values.
fn hints(spec: &ChannelSpec, direction: Direction) -> Result<Hints, TraceError> {
    let typical = spec.typical(direction)?;
    let rate = typical.rate.map(|rate| Bandwidth::from_bits_per_second(rate.bits_per_second()));
    Ok(Hints { rate, delay: Some(typical.delay), ..Hints::NONE })
}

/// Starts relays and a tunnel over them between the two devices.
async fn connect(
    channels: &Channels<'_>,
    plan: &Plan,
    policy: Policy,
    devices: [TunDevice; 2],
) -> Result<Relays, Failure> {
    let [near, far] = devices;
    let certificate = SelfSigned::new(&[HOST.to_owned()])?;
    let token = token()?;
    let endpoint = listen(channels, &certificate, policy)?;
    let network = End::far(0);
    let everywhere = ["0.0.0.0/0", "::/0"].map(|text| text.parse().expect("it is a network")).to_vec();
    let options = ServerOptions::new(vec![token.clone()], everywhere, (network.v4, network.v6))?;
    let server = Server::new(options, AsyncDevice::new(far)?);
    let accepting = endpoint.clone();
    tokio::spawn(async move {
        if let Err(error) = server.run(&accepting).await {
            tracing::warn!(%error, "the far end of the tunnel ended");
        }
    });
    let relays = Relays::start(channels, plan, &endpoint.local_addrs())?;
    let verify = Verify::CaPem(certificate.certificate.into_bytes());
    let tls = tls::client(verify, &Secrecy::default(), &Resumption::default())?;
    let config = ClientConfig::new(tls, Arc::new(carrying(policy)));
    let client = Endpoint::client(&[])?;
    let mut paths = Vec::new();
    for ((name, relay), (_, spec)) in relays.handles.iter().zip(&channels.0) {
        let path = PathOptions::new(*name, LOOPBACK).to(relay.local_addr());
        paths.push(path.with_hints(hints(spec, Direction::Up)?));
    }
    let (first, others) = paths.split_first().expect("there are two channels");
    let remote = first.remote.expect("it leads to a relay");
    let connecting = client.connect_with(config, ConnectOptions::new(remote, HOST).over(first))?;
    let connection = connecting.await.or_fail(Exit::Connection, || "the tunnel".to_owned())?;
    for path in others {
        connection.open_path(path.clone()).await.or_fail(Exit::Connection, || "the tunnel".to_owned())?;
    }
    // The hosts are in the far namespace, and this process is not.
    let tunnel = Client::open(connection, HOST, Some(&token), TcpLane::Off).await?;
    let device = AsyncDevice::new(near)?;
    tokio::spawn(async move {
        // The endpoints live as long as the tunnel.
        let _endpoints = (client, endpoint);
        let ended = tunnel.run(device).await;
        tracing::debug!(%ended, "the tunnel ended");
    });
    Ok(relays)
}

/// Returns a token that nobody can guess: other programs of this machine can send to the server, too.
fn token() -> Result<String, Failure> {
    let mut random = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(format!("{:032x}", u128::from_be_bytes(random)))
}

/// A transport for a tunnel: queues are short, because what waits in them is in the way of what is urgent.
fn carrying(policy: Policy) -> TransportConfig {
    transport::config(policy, Algorithm::Cubic).set_datagram_queue(256 << 10).clone()
}

/// The server's endpoint, with a socket for each channel.
fn listen(channels: &Channels<'_>, certificate: &SelfSigned, policy: Policy) -> Result<Endpoint, Failure> {
    let tls = tls::server(certificate.identity(), &Secrecy::default(), EarlyData::Off)?;
    let config = |channels| {
        let transport = carrying(policy).set_channels(channels).clone();
        ServerConfig::new(tls.clone(), Arc::new(transport))
    };
    let local = [LocalAddress::Socket(LOOPBACK), LocalAddress::Socket(LOOPBACK)];
    let endpoint = Endpoint::server(config(Vec::new()), &local)?;
    let mut known = Vec::new();
    for (local, (_, spec)) in endpoint.local_addrs().into_iter().zip(&channels.0) {
        known.push(ChannelHint::new(local, hints(spec, Direction::Down)?));
    }
    endpoint.set_server(Some(config(known)))?;
    Ok(endpoint)
}

impl Relays {
    fn start(channels: &Channels<'_>, plan: &Plan, servers: &[SocketAddr]) -> Result<Self, Failure> {
        let log = plan.log.as_deref().map(PacketLog::create).transpose()?;
        let log = log.map(|log| Arc::new(Mutex::new(log)));
        let mut handles = Vec::new();
        for (((name, spec), server), seed) in channels.0.iter().zip(servers).zip(plan.seed..) {
            let mut options = RelayOptions::new(LOOPBACK, *server, (*spec).clone(), seed);
            if let Some(log) = &log {
                let (log, name) = (Arc::clone(log), *name);
                options.tap = Some(Box::new(move |event| note(&log, name, event)));
            }
            let relay = Relay::start_with(options);
            handles.push((*name, relay.or_fail(Exit::Runtime, || format!("cannot emulate {name}"))?));
        }
        Ok(Self { handles, log, start: Instant::now() })
    }

    /// Stops the relays; returns what they did.
    fn finish(self, unread: Option<u64>) -> Report {
        let elapsed = self.start.elapsed();
        let figures: Vec<(&str, RelayStatistics)> =
            self.handles.into_iter().map(|(name, relay)| (name, relay.stop())).collect();
        let mut unsent = Count::default();
        figures.iter().for_each(|(_, figures)| unsent += figures.unsent);
        let late = figures.iter().map(|(_, figures)| figures.lateness);
        let lateness = late.max_by_key(|lateness: &Summary| lateness.p99).unwrap_or_default();
        let unlogged = self.log.map_or(0, |log| lock(&log).unlogged());
        let channels = figures.into_iter().map(|(name, figures)| ChannelReport {
            name: name.to_owned(),
            up: figures.up,
            down: figures.down,
        });
        Report { elapsed, channels: channels.collect(), lateness, unsent, unlogged, unread }
    }
}

/// Writes a line about a datagram of the tunnel.
fn note(log: &Mutex<PacketLog>, channel: &str, event: TapEvent) {
    let end = match event.moment {
        TapMoment::Left { delay, lateness } => {
            PacketEnd::Left { delay, held: std::time::Duration::ZERO, lateness }
        }
        TapMoment::Entered(hvq_emulation::Admission::Dropped(reason)) => PacketEnd::Dropped(reason),
        TapMoment::Entered(hvq_emulation::Admission::Accepted) => return,
    };
    let TapEvent { at, direction, size, .. } = event;
    lock(log).record(Record { at, direction, channel, size, header: None, end });
}

fn lock(log: &Mutex<PacketLog>) -> std::sync::MutexGuard<'_, PacketLog> {
    // A line is written or not; nothing is half done.
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
