//! The end of a tunnel that asks for it.

use super::TokenArguments;
use crate::commands::get::TrustArguments;
use crate::commands::get::target::Target;
use crate::commands::run::TUNNEL_MTU;
use crate::failure::{Exit, Failure, OrFail, exit_of};
use crate::output::Console;
use crate::signals::Signals;
use crate::tls::{self, Resumption};
use crate::transport::{TransportArguments, check_names};
use clap::Args;
use hvq::{ClientConfig, ConnectOptions, Connection, Endpoint, PathOptions, Replay, TransportConfig};
use hvq_emulation::tun::device::TunDevice;
use hvq_emulation::tun::namespace::Namespace;
use hvq_emulation::tun::privilege::{self, Privilege};
use hvq_emulation::tun::program;
use hvq_emulation::tun::shell::{Plan, Route, Scene};
use hvq_emulation::tun::wiring;
use hvq_tunnel::{AsyncDevice, Client, Prefix};
use std::ffi::{OsStr, OsString};
use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Arguments of `hvq tunnel connect`.
#[derive(Debug, Args)]
pub(super) struct ConnectArguments {
    /// The server, such as https://gateway.example:4433
    #[arg(value_name = "URL")]
    url: String,
    #[command(flatten)]
    trust: TrustArguments,
    #[command(flatten)]
    tokens: TokenArguments,
    /// A path; may be repeated
    #[arg(long = "path", value_name = "NAME=LOCAL[>REMOTE][,rate=…,delay=…,congestion=…,dscp=…]")]
    paths: Vec<PathOptions>,
    /// Without a command: send packets to these networks through the tunnel; may be repeated
    #[arg(long, value_name = "ADDRESS/BITS", conflicts_with = "command")]
    route: Vec<Prefix>,
    /// Without a command: what the TUN device is called
    #[arg(long, value_name = "NAME", default_value = "hvq0", conflicts_with = "command", value_parser = super::device)]
    device: String,
    /// With a command: the name server that it asks, through the tunnel; may be repeated
    #[arg(long, value_name = "ADDRESS", requires = "command")]
    resolver: Vec<IpAddr>,
    #[command(flatten)]
    transport: TransportArguments,
    /// A command whose only network is the tunnel; it needs no root where users may make namespaces
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The source of packets.
enum Source {
    /// A command in a namespace of its own.
    Command(Box<Scene>),
    /// This machine.
    Machine(Namespace),
}

impl Source {
    const fn namespace(&self) -> &Namespace {
        match self {
            Self::Command(scene) => scene.near(),
            Self::Machine(namespace) => namespace,
        }
    }
}

/// Opens the tunnel and sends packets through it, until the command ends, or until it is told to stop.
pub(super) fn run(arguments: &ConnectArguments, console: Console) -> Result<ExitCode, Failure> {
    let tokens = arguments.tokens.read()?;
    let token = tokens.first().map(String::as_str);
    if token.is_none() && !arguments.trust.has_identity() {
        let problem = "a tunnel needs a token (--token-file or the variable HVQ_TOKEN) or --client-cert";
        return Err(Failure::new(Exit::Usage, problem));
    }
    check_names(&arguments.paths)?;
    let target = Target::parse(&arguments.url)?;
    let (source, name) = source(arguments)?;
    let device = TunDevice::new(source.namespace(), name).or_fail(Exit::Runtime, || {
        format!(
            "cannot make the device {name} (without a command this needs root, or the capability NET_ADMIN)"
        )
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (endpoint, client) = runtime.block_on(open(arguments, &target, token, console))?;
    let lines = lines(name, &client, arguments);
    wiring::apply(source.namespace(), &lines)
        .or_fail(Exit::Runtime, || "cannot set up the device".to_owned())?;
    let addresses = client.addresses().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    console.detail(|| format!("* the tunnel is {name} with {addresses}"));
    let code = match source {
        Source::Command(scene) => accompany(&runtime, &scene, client, device, &arguments.command)?,
        Source::Machine(_) => {
            runtime.block_on(carry(client, device))?;
            0
        }
    };
    endpoint.close(h3::error::Code::H3_NO_ERROR.value(), b"");
    let _late = runtime.block_on(async { tokio::time::timeout(GOODBYE, endpoint.wait_idle()).await });
    runtime.shutdown_background();
    Ok(ExitCode::from(code))
}

/// The time that the server may take to notice the end.
const GOODBYE: Duration = Duration::from_millis(500);

fn source(arguments: &ConnectArguments) -> Result<(Source, &str), Failure> {
    if arguments.command.is_empty() {
        return Ok((Source::Machine(Namespace::current()?), &arguments.device));
    }
    let user = match privilege::acquire()? {
        Privilege::Own => None,
        Privilege::User(user) => Some(user),
    };
    let plan = Plan {
        route: Route::Direct(Box::default()),
        seed: 0,
        mtu: TUNNEL_MTU,
        congestion: None,
        log: None,
        resolvers: arguments.resolver.clone(),
        user,
        launcher: program::this_program(&[OsStr::new("inside")])?,
    };
    let scene = Scene::new(&plan).or_fail(Exit::Runtime, || "hvq tunnel".to_owned())?;
    Ok((Source::Command(Box::new(scene)), "tun0"))
}

/// Returns the commands that make the device usable: its addresses, and the routes through it.
fn lines(device: &str, client: &Client, arguments: &ConnectArguments) -> Vec<String> {
    let alone = !arguments.command.is_empty();
    let mut lines = vec![format!("link set {device} mtu {TUNNEL_MTU} txqueuelen 1000 up")];
    if alone {
        lines.push(wiring::loopback());
    }
    for address in client.addresses() {
        lines.push(match address.address() {
            IpAddr::V4(_) => format!("address add {address} dev {device}"),
            IpAddr::V6(_) => format!("address add {address} dev {device} nodad"),
        });
    }
    let routes = if alone { client.routes() } else { &arguments.route };
    for route in routes {
        let six = if route.address().is_ipv6() { "-6 " } else { "" };
        lines.push(format!("{six}route add {route} dev {device}"));
    }
    lines
}

async fn open(
    arguments: &ConnectArguments,
    target: &Target,
    token: Option<&str>,
    console: Console,
) -> Result<(Endpoint, Client), Failure> {
    let secrecy = arguments.transport.secrecy();
    let tls = tls::client(arguments.trust.trust(), &secrecy, &Resumption::default())?;
    let transport = TransportConfig { datagram_queue: 256 << 10, ..arguments.transport.config() };
    let config = ClientConfig::new(tls, Arc::new(transport));
    let endpoint = Endpoint::client(&[])?;
    let destinations = target.destinations(&arguments.paths).await?;
    let found = destinations.first().expect("a name resolves to something or fails");
    let (remote, paths) = (found.address, &found.paths);
    paths.iter().for_each(|path| console.detail(|| format!("* {}", crate::paths::destination(path))));
    let first = endpoint.first_path(&config, remote, paths);
    // A request for a tunnel does no harm twice: what the first obtained ends with its connection.
    let options =
        ConnectOptions::new(remote, target.host.clone()).racing(first, paths).with_replay(Replay::Accepted);
    let connection = endpoint.connect_with(config, options)?.await.map_err(|error| {
        let exit = exit_of(&error);
        let failed: Result<(), _> = Err(error);
        failed.or_fail(exit, || format!("cannot connect to {}", target.host)).expect_err("it is an error")
    })?;
    open_others(&connection).await;
    let authority = format!("{}:{}", target.host, target.port);
    let client = Client::open(connection, &authority, token)
        .await
        .or_fail(Exit::Connection, || format!("no tunnel from {}", target.host))?;
    Ok((endpoint, client))
}

/// Opens the paths but the first. The tunnel does without those that fail.
async fn open_others(connection: &Connection) {
    for path in connection.remaining_paths() {
        if let Err(error) = connection.start_path(path.clone()).await {
            eprintln!("hvq: warning: path {} cannot be used: {error}", path.name);
        }
    }
}

/// Carries packets until the tunnel ends or somebody stops it.
async fn carry(client: Client, device: TunDevice) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let ended = client.run(AsyncDevice::new(device)?);
    tokio::select! {
        error = ended => Err(Failure::from(error)),
        _ = signals.next() => Ok(()),
    }
}

/// Carries the packets of a command until it ends; returns its exit code.
fn accompany(
    runtime: &Runtime,
    scene: &Scene,
    client: Client,
    device: TunDevice,
    command: &[OsString],
) -> Result<u8, Failure> {
    let device = runtime.block_on(async { AsyncDevice::new(device) })?;
    runtime.spawn(async move {
        let ended = client.run(device).await;
        tracing::warn!(%ended, "the tunnel ended");
    });
    let program = scene.run(command).or_fail(Exit::Runtime, || "cannot start the command".to_owned())?;
    program.pass_signals()?;
    Ok(program.wait()?)
}
