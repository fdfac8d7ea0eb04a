//! A client: the device, and the tunnel that is asked for again whenever it ends.

use super::change::Change;
use super::file::{ClientSettings, Route};
use super::journal::Journal;
use super::plan::{self, Facts};
use super::resolver::{self, ResolverFile};
use super::{apply, netlink};
use crate::connect::{Packets, Tunnel};
use crate::prefix::Prefix;
use crate::{AsyncDevice, Client, ClientError};
use hvq::{ClientConfig, Destination, Endpoint};
use hvq_emulation::tun::device::TunDevice;
use hvq_emulation::tun::namespace::Namespace;
use hvq_program::client::Target;
use hvq_program::control::ControlSocket;
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::names::Names;
use hvq_program::output::{Console, ResultFormat, print};
use hvq_program::path_choice::PathChoice;
use hvq_program::tls::{self, Resumption, Secrecy};
use hvq_program::transport;
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::lookup_host;
use tokio::time::{Instant, sleep};

/// The silence after which a path is asked whether it is there: a tunnel without packets lasts, and NATs remember it.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// The silence of all paths after which the tunnel is asked for anew.
const IDLE: Duration = Duration::from_secs(15);
/// The first pause before a tunnel is asked for again; each is twice the last.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Bytes of datagrams that wait.
const DATAGRAM_QUEUE: usize = 256 << 10;
/// Bytes of a TCP flow that wait in its stream at least.
const SEND_BUFFER: usize = 512 << 10;

/// The parts of a tunnel that is open.
type Open = (Endpoint, Client, Option<ControlSocket>);

/// Looks up what the plan is made of: the addresses of the server and of hosts. They stay for as long as the tunnel is up,
/// since names are asked for through it.
///
/// # Errors
/// A name does not resolve.
pub(super) async fn facts(client: &ClientSettings) -> Result<Facts, Failure> {
    let target = Target::parse(&client.server)?;
    let named: &[_] = if let PathChoice::Named(paths) = &client.paths { paths } else { &[] };
    let found = Destination::resolve(&target.host, target.port, named).await;
    let found = found.or_fail(Exit::Connection, || format!("cannot find {}", target.host))?;
    let mut servers: Vec<SocketAddr> = Vec::new();
    let paths = found.iter().flat_map(|found| &found.paths).filter_map(|path| path.remote);
    for address in found.iter().map(|found| found.address).chain(paths) {
        if !servers.contains(&address) {
            servers.push(address);
        }
    }
    let mut networks = Vec::new();
    for route in &client.routes {
        match route {
            Route::All => networks.extend(netlink::Version::ALL.map(netlink::Version::everything)),
            Route::Network(network) => networks.push(*network),
            Route::Host(host) => {
                let found = lookup_host((host.as_str(), 0)).await;
                let found = found.or_fail(Exit::Connection, || format!("cannot find the route {host}"))?;
                networks.extend(found.map(|address| Prefix::only(address.ip())));
            }
        }
    }
    // Name servers are asked through the tunnel.
    for server in &client.dns {
        if !networks.iter().any(|network| network.contains(*server)) {
            networks.push(Prefix::only(*server));
        }
    }
    networks.sort_by_key(|network| (network.address(), network.bits()));
    networks.dedup();
    Ok(Facts { servers, networks })
}

/// Carries packets until the device is gone; changes of the system are in `journal`, which the caller undoes.
///
/// # Errors
/// The first tunnel cannot be had, the system refuses a change, or the device is gone.
pub(super) async fn run(
    client: &ClientSettings,
    journal: &mut Journal,
    format: ResultFormat,
    console: Console,
) -> Result<(), Failure> {
    let facts = facts(client).await?;
    if netlink::index(&client.device).is_some() {
        let text = format!("there is a device {} already", client.device);
        return Err(Failure::new(Exit::Runtime, text));
    }
    apply(journal, plan::guard(client, &facts))?;
    let device = TunDevice::offloading(&Namespace::current()?, &client.device)
        .or_fail(Exit::Runtime, || {
            format!("cannot make the device {} (this needs root, or the capability NET_ADMIN)", client.device)
        })?;
    let device = Arc::new(AsyncDevice::new(device)?);
    let tunnel = tunnel(client, &facts)?;
    let mut open = tunnel.open(console).await?;
    let mut addresses = open.1.addresses().to_vec();
    // Rules first: nothing goes into the tunnel yet, and the server's own packets never will.
    apply(journal, plan::routing(client, &facts))?;
    configure(client, &facts, &addresses)?;
    names(client, journal)?;
    warn_of_routes(&facts, &open.1, console);
    tell(client, "up", &addresses, (format, console))?;
    loop {
        carry(open, &device).await?;
        open = again(&tunnel, console).await;
        let assigned = open.1.addresses().to_vec();
        if assigned != addresses {
            readdress(client, &addresses, &assigned)?;
            // Routes go with the last address of their version.
            add_routes(client, &facts, &assigned)?;
            addresses = assigned;
        }
        tell(client, "up again", &addresses, (format, console))?;
    }
}

/// Tells people or programs that the tunnel is up.
fn tell(
    client: &ClientSettings,
    state: &str,
    addresses: &[Prefix],
    (format, console): (ResultFormat, Console),
) -> Result<(), Failure> {
    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    match format {
        ResultFormat::Json => {
            let facts = json!({ "state": state, "device": client.device, "server": client.server, "addresses": addresses });
            print(&facts.to_string())
        }
        ResultFormat::Text => {
            let (device, server, addresses) = (&client.device, &client.server, addresses.join(", "));
            console.say(format!("the tunnel {device} to {server} is {state}, with {addresses}"));
            Ok(())
        }
    }
}

/// Carries packets until the tunnel ends.
///
/// # Errors
/// The device is gone.
async fn carry((endpoint, client, _control): Open, device: &Arc<AsyncDevice>) -> Result<(), Failure> {
    let ended = client.run(device.clone()).await;
    endpoint.close(hvq_h3::Code::H3_NO_ERROR.value(), b"");
    match ended {
        ClientError::Device(error) => Err(error).or_fail(Exit::Runtime, || "the device is gone".to_owned()),
        ended => {
            tracing::warn!(%ended, "the tunnel ended, and is asked for again");
            Ok(())
        }
    }
}

/// Asks for a tunnel until there is one.
async fn again(tunnel: &Tunnel, console: Console) -> Open {
    let mut pause = PAUSE;
    loop {
        let begun = Instant::now();
        match tunnel.open(console).await {
            Ok(open) => return open,
            Err(failure) => console.say(format!("hvq: warning: no tunnel: {}", failure.line())),
        }
        sleep(pause.saturating_sub(begun.elapsed())).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn tunnel(client: &ClientSettings, facts: &Facts) -> Result<Tunnel, Failure> {
    let tls = tls::client(client.trust.clone(), &Secrecy::default(), &Resumption::default())?;
    let mut transport = transport::config(client.scheduler, client.congestion);
    transport.set_datagram_queue(DATAGRAM_QUEUE).set_path_keep_alive(Some(KEEP_ALIVE)).set_idle_timeout(IDLE);
    transport.streams_mut().send_buffer = SEND_BUFFER;
    Ok(Tunnel {
        target: Target::parse(&client.server)?,
        config: ClientConfig::new(tls, Arc::new(transport)),
        names: Names::default(),
        paths: client.paths.clone(),
        token: client.token.as_ref().map(|token| token.0.clone()),
        lane: client.lane,
        packets: Packets::Machine { device: client.device.clone(), routes: Vec::new() },
        servers: facts.servers.clone(),
    })
}

/// Gives the device its addresses and routes, and brings it up.
fn configure(client: &ClientSettings, facts: &Facts, addresses: &[Prefix]) -> Result<(), Failure> {
    let index = index(client)?;
    let whole = || format!("cannot set up the device {}", client.device);
    netlink::bring_up(index, client.mtu).or_fail(Exit::Runtime, whole)?;
    readdress(client, &[], addresses)?;
    add_routes(client, facts, addresses)
}

/// Takes the addresses `before` from the device, and gives it `after`.
fn readdress(client: &ClientSettings, before: &[Prefix], after: &[Prefix]) -> Result<(), Failure> {
    let index = index(client)?;
    for address in before.iter().filter(|address| !after.contains(address)) {
        let removed = netlink::remove_address(index, *address);
        removed.or_fail(Exit::Runtime, || format!("cannot take {address} from {}", client.device))?;
    }
    for address in after.iter().filter(|address| !before.contains(address)) {
        match netlink::add_address(index, *address) {
            Err(error) if is_without_version_6(*address, &error) => {}
            added => added.or_fail(Exit::Runtime, || format!("cannot give {} {address}", client.device))?,
        }
    }
    Ok(())
}

/// Routes the networks of the versions of IP that the device has an address of.
fn add_routes(client: &ClientSettings, facts: &Facts, addresses: &[Prefix]) -> Result<(), Failure> {
    let (index, table) = (index(client)?, facts.table(client));
    let has =
        |network: &Prefix| addresses.iter().any(|own| own.address().is_ipv4() == network.address().is_ipv4());
    for network in facts.networks.iter().filter(|network| has(network)) {
        match netlink::add_route(index, *network, table) {
            Err(error) if is_without_version_6(*network, &error) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && table != netlink::MAIN => {}
            added => added
                .or_fail(Exit::Runtime, || format!("cannot route {network} through {}", client.device))?,
        }
    }
    Ok(())
}

/// Returns true if the error is that of a system whose IPv6 is turned off.
fn is_without_version_6(network: Prefix, error: &io::Error) -> bool {
    let off = [libc::EACCES, libc::EPERM, libc::EAFNOSUPPORT, libc::EOPNOTSUPP];
    let disabled = std::fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6");
    network.address().is_ipv6()
        && error.raw_os_error().is_some_and(|code| off.contains(&code))
        && disabled.map_or(true, |disabled| disabled.trim() == "1")
}

fn index(client: &ClientSettings) -> Result<u32, Failure> {
    let gone = || Failure::new(Exit::Runtime, format!("the device {} is gone", client.device));
    netlink::index(&client.device).ok_or_else(gone)
}

/// Has names asked of the servers of the tunnel.
fn names(client: &ClientSettings, journal: &mut Journal) -> Result<(), Failure> {
    if client.dns.is_empty() {
        return Ok(());
    }
    if resolver::is_resolved_there() {
        for arguments in resolver::of_device(&client.device, &client.dns, &client.search) {
            resolver::resolvectl(&arguments)?;
        }
        return Ok(());
    }
    apply(journal, vec![Change::Resolver(ResolverFile::to(&client.device, &client.dns, &client.search)?)])
}

/// Warns of networks that the server does not lead to.
fn warn_of_routes(facts: &Facts, client: &Client, console: Console) {
    for network in &facts.networks {
        let leads = |route: &Prefix| route.contains(network.address()) && route.contains(network.last());
        if !client.routes().iter().any(leads) {
            console.say(format!("hvq: warning: the server does not permit all of {network}"));
        }
    }
}

/// The lines about the device, for people.
pub(super) fn told(client: &ClientSettings, facts: &Facts) -> Vec<String> {
    let device = &client.device;
    let mut lines = vec![
        format!("ip tuntap add {device} mode tun"),
        format!("ip link set {device} mtu {} up", client.mtu),
        format!("ip address add ADDRESS dev {device} (as the server assigns)"),
    ];
    for network in &facts.networks {
        let six = if network.address().is_ipv6() { "-6 " } else { "" };
        lines.push(format!("ip {six}route add {network} dev {device} table {}", facts.table(client)));
    }
    lines
}

/// The change of name servers, for people.
pub(super) fn told_names(client: &ClientSettings) -> Vec<String> {
    if client.dns.is_empty() {
        return Vec::new();
    }
    if resolver::is_resolved_there() {
        let lines = resolver::of_device(&client.device, &client.dns, &client.search);
        return lines.iter().map(|words| format!("resolvectl {}", words.join(" "))).collect();
    }
    let file = ResolverFile::to(&client.device, &client.dns, &client.search);
    file.map(|file| file.to_string()).into_iter().collect()
}
