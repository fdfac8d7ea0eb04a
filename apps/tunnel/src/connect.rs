//! A tunnel for a command or for this machine: what `hvq tunnel connect` runs.

use crate::{AsyncDevice, Client, MTU, Prefix, TcpLane};
use hvq::tls::Replay;
use hvq::{ClientConfig, Connection, Dialed, Dialer, Endpoint, PathOptions};
use hvq_emulation::tun::device::TunDevice;
use hvq_emulation::tun::namespace::Namespace;
use hvq_emulation::tun::privilege::{self, Privilege};
use hvq_emulation::tun::program;
use hvq_emulation::tun::shell::{NamespacePair, Plan, Route};
use hvq_emulation::tun::wiring;
use hvq_program::client::Target;
use hvq_program::control::{self, ControlSocket, ProgramStatus};
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::names::Names;
use hvq_program::output::Console;
use hvq_program::path_choice::PathChoice;
use hvq_program::paths::destination;
use hvq_program::signals::{Request, Signals};
use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The time that the server may take to notice the end.
const GOODBYE: Duration = Duration::from_millis(500);

/// A tunnel to ask a server for.
#[derive(Clone, Debug)]
pub struct Tunnel {
    /// The server.
    pub target: Target,
    /// TLS and transport of the connection.
    pub config: ClientConfig,
    /// The way from the server's name to its addresses.
    pub names: Names,
    /// The paths.
    pub paths: PathChoice,
    /// The token, if the server knows the client by one.
    pub token: Option<String>,
    /// The use of streams for TCP flows.
    pub lane: TcpLane,
    /// The source of packets.
    pub packets: Packets,
    /// The addresses of the server; if there are none, its name is resolved.
    pub servers: Vec<SocketAddr>,
}

/// The source of packets.
#[derive(Clone, Debug)]
pub enum Packets {
    /// A command whose only network is the tunnel, in a namespace of its own.
    Command {
        /// The command.
        command: Vec<OsString>,
        /// The name servers that it asks, through the tunnel.
        resolvers: Vec<IpAddr>,
    },
    /// This machine.
    Machine {
        /// The name of the TUN device.
        device: String,
        /// The networks that are reached through the tunnel.
        routes: Vec<Prefix>,
    },
}

/// The namespace of the device.
enum Source {
    Command(Box<NamespacePair>),
    Machine(Namespace),
}

impl Source {
    const fn namespace(&self) -> &Namespace {
        match self {
            Self::Command(namespaces) => namespaces.near(),
            Self::Machine(namespace) => namespace,
        }
    }
}

impl Tunnel {
    /// Opens the tunnel and sends packets through it, until the command ends, or until a signal says to stop; returns the exit
    /// code of the command. There must be no other thread yet.
    ///
    /// # Errors
    /// The device or the namespace cannot be made ([`Exit::Runtime`]), or there is no connection or no tunnel
    /// ([`exit_of`](hvq_program::failure::exit_of) says with which exit code).
    pub fn run(&self, console: Console) -> Result<u8, Failure> {
        let source = self.packets.source()?;
        let name = self.packets.device();
        let device = TunDevice::offloading(source.namespace(), name).or_fail(Exit::Runtime, || {
            format!(
                "cannot make the device {name} (without a command this needs root, or the capability NET_ADMIN)"
            )
        })?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let (endpoint, client, control) = runtime.block_on(self.open(console))?;
        wiring::apply(source.namespace(), &self.packets.wiring(&client))
            .or_fail(Exit::Runtime, || "cannot set up the device".to_owned())?;
        let addresses = client.addresses().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        console.detail(|| format!("* the tunnel is {name} with {addresses}"));
        console.detail(|| {
            match (self.lane, client.has_tcp_lane()) {
                (_, true) => "* TCP flows ride streams",
                (TcpLane::On, false) => "* TCP flows go as packets: the server offers no streams for them",
                (TcpLane::Off, false) => "* TCP flows go as packets",
            }
            .to_owned()
        });
        let code = match (source, &self.packets) {
            (Source::Command(namespaces), Packets::Command { command, .. }) => {
                accompany(&runtime, &namespaces, client, device, command)?
            }
            _ => {
                runtime.block_on(self.carry(client, device, console))?;
                0
            }
        };
        drop(control);
        endpoint.close(hvq_h3::Code::H3_NO_ERROR.value(), b"");
        let _late = runtime.block_on(async { tokio::time::timeout(GOODBYE, endpoint.wait_idle()).await });
        runtime.shutdown_background();
        Ok(code)
    }

    /// Connects to the server, and asks it for a tunnel.
    pub(crate) async fn open(
        &self,
        console: Console,
    ) -> Result<(Endpoint, Client, Option<ControlSocket>), Failure> {
        let target = &self.target;
        let endpoint = Endpoint::client(&[])?;
        let approach = match self.servers.is_empty() {
            true => target.approach(&self.names, &self.paths).await?,
            false => target.approach_known(&self.paths, &self.servers).await?,
        };
        let named = approach.destinations.iter().flat_map(|found| &found.paths);
        named.for_each(|path| console.detail(|| format!("* {}", destination(path))));
        // A request for a tunnel does no harm twice: what the first obtained ends with its connection.
        let dialer = Dialer::new(endpoint.clone(), self.config.clone()).replay(Replay::Accepted);
        let dialed = dialer.dial_resolved(&target.host, &approach.destinations).await;
        let Dialed { connection, others } = dialed.map_err(Failure::of_dial)?;
        let manager = approach.manage_aloud(&connection, console).await;
        if manager.is_none() {
            open(&connection, others).await;
        }
        let authority = format!("{}:{}", target.host, target.port);
        let control = {
            let (connection, peer, paths) = (connection.clone(), authority.clone(), self.paths.clone());
            control::announce("tunnel", console, move || {
                ProgramStatus::of(("tunnel", &peer), &paths, Some(&connection), manager.as_deref())
            })
        };
        let client = Client::open(connection, &authority, self.token.as_deref(), self.lane)
            .await
            .or_fail(Exit::Connection, || format!("no tunnel from {}", target.host))?;
        Ok((endpoint, client, control))
    }

    /// Carries packets until the tunnel ends or somebody stops it. SIGHUP has the rules about links read again.
    async fn carry(&self, client: Client, device: TunDevice, console: Console) -> Result<(), Failure> {
        let mut signals = if self.paths.is_reloadable() { Signals::of_service()? } else { Signals::new()? };
        let stopped = async {
            while signals.request().await == Request::Reload {
                self.paths.reload_aloud(console);
            }
        };
        let ended = client.run(AsyncDevice::new(device)?);
        tokio::select! {
            error = ended => Err(Failure::from(error)),
            () = stopped => Ok(()),
        }
    }
}

impl Packets {
    const fn device(&self) -> &str {
        match self {
            Self::Command { .. } => "tun0",
            Self::Machine { device, .. } => device.as_str(),
        }
    }

    fn source(&self) -> Result<Source, Failure> {
        let Self::Command { resolvers, .. } = self else {
            return Ok(Source::Machine(Namespace::current()?));
        };
        let user = match privilege::acquire()? {
            Privilege::Own => None,
            Privilege::User(user) => Some(user),
        };
        let plan = Plan {
            route: Route::Direct(Box::default()),
            seed: 0,
            mtu: MTU,
            congestion: None,
            log: None,
            resolvers: resolvers.clone(),
            user,
            launcher: program::this_program(&[OsStr::new("inside")])?,
        };
        let namespaces = NamespacePair::new(&plan).or_fail(Exit::Runtime, || "hvq tunnel".to_owned())?;
        Ok(Source::Command(Box::new(namespaces)))
    }

    /// Returns the commands that make the device usable: its addresses, and the routes through it.
    fn wiring(&self, client: &Client) -> Vec<String> {
        let device = self.device();
        let mut lines = vec![format!("link set {device} mtu {MTU} txqueuelen 1000 up")];
        let routes = match self {
            Self::Command { .. } => {
                lines.push(wiring::loopback());
                client.routes()
            }
            Self::Machine { routes, .. } => routes,
        };
        for address in client.addresses() {
            lines.push(match address.address() {
                IpAddr::V4(_) => format!("address add {address} dev {device}"),
                IpAddr::V6(_) => format!("address add {address} dev {device} nodad"),
            });
        }
        for route in routes {
            let six = if route.address().is_ipv6() { "-6 " } else { "" };
            lines.push(format!("{six}route add {route} dev {device}"));
        }
        lines
    }
}

/// Opens the paths but the first. The tunnel does without those that fail.
async fn open(connection: &Connection, others: Vec<PathOptions>) {
    for path in others {
        if let Err(error) = connection.start_path(path.clone()).await {
            eprintln!("hvq: warning: path {} cannot be used: {error}", path.name);
        }
    }
}

/// Carries the packets of a command until it ends; returns its exit code.
fn accompany(
    runtime: &Runtime,
    namespaces: &NamespacePair,
    client: Client,
    device: TunDevice,
    command: &[OsString],
) -> Result<u8, Failure> {
    let device = runtime.block_on(async { AsyncDevice::new(device) })?;
    runtime.spawn(async move {
        let ended = client.run(device).await;
        tracing::warn!(%ended, "the tunnel ended");
    });
    let program = namespaces.run(command).or_fail(Exit::Runtime, || "cannot start the command".to_owned())?;
    program.pass_signals()?;
    Ok(program.wait()?)
}
