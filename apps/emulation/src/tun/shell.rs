//! A pair of namespaces with emulated channels between them: a command runs in the near one, a server in the far one.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::steer::{Pair, Reordering};
use crate::{Channel, ChannelSpec, TraceError};

use crate::tun::device::TunDevice;
use crate::tun::emulator::log::PacketLog;
use crate::tun::emulator::{Crossing, Emulator, Network, Report};
use crate::tun::inside::{Identity, Instructions};
use crate::tun::namespace::Namespace;
use crate::tun::privilege::User;
use crate::tun::program::{self, Launcher, Program, Streams};
use crate::tun::steerer::Steerer;
use crate::tun::wiring::{self, End};

/// The name under which programs in the near namespace know the far end.
pub const FAR: &str = "far";
/// The variable that holds the far end's address.
pub const FAR_VARIABLE: &str = "HVQ_FAR";

/// The way of packets from one namespace to the other.
#[derive(Clone, PartialEq, Debug)]
pub enum Route {
    /// Over one channel.
    Direct(Box<ChannelSpec>),
    /// Over two channels behind one address, as a steerer decides for each packet.
    Steered {
        /// The channels.
        channels: Box<Pair<ChannelSpec>>,
        /// The policy that decides.
        steerer: Steerer,
        /// The sides on which packets are put in order again.
        reordering: Reordering,
    },
    /// Over two channels with a device and an address each, for the kernel's MPTCP (RFC 8684).
    Mptcp(Box<Pair<ChannelSpec>>),
    /// Over two channels with a device and an address each, for programs that choose among addresses themselves.
    Apart(Box<Pair<ChannelSpec>>),
}

/// The plan of a shell.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The channels.
    pub route: Route,
    /// The seed of everything random.
    pub seed: u64,
    /// The largest packet, 1280 bytes at least (RFC 8200 §5).
    pub mtu: u16,
    /// The congestion controller of TCP at both ends (as of `ip route … congctl`); `None` is the system's.
    pub congestion: Option<String>,
    /// A log of every packet.
    pub log: Option<PathBuf>,
    /// The name servers of programs; none means the far end.
    pub resolvers: Vec<IpAddr>,
    /// The user that programs run as; `None` is that of this process.
    pub user: Option<User>,
    /// The command that starts their first process.
    pub launcher: Launcher,
}

/// The reason for which there is no shell.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// A trace cannot be used.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The system does not permit something.
    #[error("cannot {0}: {1}")]
    System(&'static str, #[source] io::Error),
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> ShellError {
    move |error| ShellError::System(what, error)
}

/// Two namespaces, wired up, and how programs are started in them. They are gone with the last program and device in them.
#[derive(Debug)]
pub struct NamespacePair {
    near: Namespace,
    far: Namespace,
    instructions: Instructions,
    launcher: Launcher,
}

impl NamespacePair {
    /// Namespaces without devices; whoever adds them wires them up ([`wiring`]). The route of the plan does not matter.
    ///
    /// # Errors
    /// See [`ShellError`]; nothing is left behind.
    pub fn new(plan: &Plan) -> Result<Self, ShellError> {
        let near = Namespace::new().map_err(failed("make a network namespace"))?;
        let far = Namespace::new().map_err(failed("make a network namespace"))?;
        let gateway = End::far(0);
        let resolvers = match plan.resolvers.is_empty() {
            true => vec![gateway.v4.into()],
            false => plan.resolvers.clone(),
        };
        let hosts = vec![(gateway.v4.into(), FAR.to_owned()), (gateway.v6.into(), FAR.to_owned())];
        let environment = environment(&plan.route);
        let parent = Identity::current().map_err(failed("read /proc"))?;
        let instructions = Instructions { parent, user: plan.user, resolvers, hosts, environment };
        Ok(Self { near, far, instructions, launcher: plan.launcher.clone() })
    }

    /// Namespaces with a device each, called `tun0`, whose packets somebody else carries: the near one first. The route of
    /// the plan does not matter.
    ///
    /// # Errors
    /// See [`ShellError`]; nothing is left behind.
    pub fn with_devices(plan: &Plan) -> Result<(Self, [TunDevice; 2]), ShellError> {
        let namespaces = Self::new(plan)?;
        let name = "tun0";
        let device = |namespace| TunDevice::offloading(namespace, name).map_err(failed("make a TUN device"));
        let devices = [device(&namespaces.near)?, device(&namespaces.far)?];
        wire(&namespaces, &[name], plan).map_err(failed("set up the network"))?;
        Ok((namespaces, devices))
    }

    /// The namespace where commands run.
    pub const fn near(&self) -> &Namespace {
        &self.near
    }

    /// The namespace at the other end.
    pub const fn far(&self) -> &Namespace {
        &self.far
    }

    /// Starts `command` in the near namespace.
    ///
    /// # Errors
    /// Returns the errors of [`Program::start`].
    pub fn run(&self, command: &[OsString]) -> io::Result<Program> {
        Program::start(&self.near, &self.launcher, &self.instructions, command, Streams::Inherited)
    }

    /// Starts `command` in the far namespace, in the background.
    ///
    /// # Errors
    /// Returns the errors of [`Program::start`].
    pub fn serve(&self, command: &[OsString]) -> io::Result<Program> {
        Program::start(&self.far, &self.launcher, &self.instructions, command, Streams::Background)
    }

    /// Returns the number of packets that the kernel dropped before they could be read from the devices called `names`.
    ///
    /// # Errors
    /// The system fails.
    pub fn unread(&self, names: &[&str]) -> io::Result<u64> {
        Ok(program::dropped_by(&self.near, names)? + program::dropped_by(&self.far, names)?)
    }
}

/// Two namespaces and an emulator between them. Dropping it ends the emulator.
#[derive(Debug)]
pub struct Shell {
    namespaces: NamespacePair,
    devices: &'static [&'static str],
    emulator: Emulator,
}

impl Shell {
    /// Makes the namespaces, and starts the channels.
    ///
    /// # Errors
    /// See [`ShellError`]; nothing is left behind.
    pub fn open(plan: &Plan) -> Result<Self, ShellError> {
        let log = plan.log.as_deref().map(PacketLog::create).transpose();
        let log = log.map_err(failed("make the packet log"))?;
        let networks = networks(plan)?;
        let namespaces = NamespacePair::new(plan)?;
        let devices = devices(&plan.route);
        let mut crossings = Vec::new();
        for (name, network) in devices.iter().zip(networks) {
            let crossing = Crossing::new(&namespaces.near, &namespaces.far, name, network);
            crossings.push(crossing.map_err(failed("make a TUN device"))?);
        }
        wire(&namespaces, devices, plan).map_err(failed("set up the network"))?;
        let emulator = Emulator::start(crossings, log).map_err(failed("start the emulator"))?;
        Ok(Self { namespaces, devices, emulator })
    }

    /// The namespaces.
    pub const fn namespaces(&self) -> &NamespacePair {
        &self.namespaces
    }

    /// Ends the channels; returns what they did.
    ///
    /// # Errors
    /// The emulator failed.
    pub fn close(self) -> io::Result<Report> {
        let unread = self.namespaces.unread(self.devices);
        let mut report = self.emulator.stop()?;
        report.unread = unread.ok();
        Ok(report)
    }
}

/// Returns the names of the devices.
const fn devices(route: &Route) -> &'static [&'static str] {
    match route {
        Route::Direct(_) | Route::Steered { .. } => &["tun0"],
        Route::Mptcp(_) | Route::Apart(_) => &["embb0", "urllc0"],
    }
}

/// Returns the environment variables for programs: the address of the far end, and the addresses of each channel that
/// has its own.
fn environment(route: &Route) -> HashMap<String, String> {
    let mut told = HashMap::from([(FAR_VARIABLE.to_owned(), End::far(0).v4.to_string())]);
    if let Route::Apart(_) = route {
        for (index, channel) in (0..).zip(["EMBB", "URLLC"]) {
            told.insert(format!("HVQ_{channel}_NEAR"), End::near(index).v4.to_string());
            told.insert(format!("HVQ_{channel}_FAR"), End::far(index).v4.to_string());
        }
    }
    told
}

fn networks(plan: &Plan) -> Result<Vec<Network>, TraceError> {
    let single = |spec: &ChannelSpec, name: &str, seed| -> Result<Network, TraceError> {
        Ok(Network::Single(Box::new(Channel::new(spec, seed)?), name.to_owned()))
    };
    Ok(match &plan.route {
        Route::Direct(channel) => vec![single(channel, "channel", plan.seed)?],
        Route::Steered { channels, steerer, reordering } => {
            vec![Network::Pair(Box::new(steerer.steer(channels, plan.seed, *reordering)?))]
        }
        Route::Mptcp(channels) | Route::Apart(channels) => vec![
            single(&channels.high_bandwidth, "embb", plan.seed)?,
            single(&channels.low_latency, "urllc", plan.seed.wrapping_add(1))?,
        ],
    })
}

/// Addresses and routes: the near end sends all to the far end.
fn wire(namespaces: &NamespacePair, devices: &[&str], plan: &Plan) -> io::Result<()> {
    let mut near_lines = vec![wiring::loopback()];
    let mut far_lines = near_lines.clone();
    for (index, device) in (0..).zip(devices) {
        near_lines.extend(wiring::addresses(device, End::near(index), plan.mtu));
        far_lines.extend(wiring::addresses(device, End::far(index), plan.mtu));
        if index == 0 {
            near_lines.extend(wiring::default_routes(device, End::far(index)));
        } else {
            near_lines.extend(wiring::source_routes(device, index));
        }
        if let (Route::Mptcp(_), 1..) = (&plan.route, index) {
            near_lines.push(wiring::subflow(device, index));
        }
    }
    if let Route::Mptcp(_) = &plan.route {
        near_lines.push(wiring::subflow_limits());
        far_lines.push(wiring::subflow_limits());
    }
    if let Some(name) = &plan.congestion {
        for (index, device) in (0..).zip(devices) {
            near_lines.extend(wiring::congestion(device, End::near(index), Some(End::far(index)), name));
            far_lines.extend(wiring::congestion(device, End::far(index), None, name));
        }
    }
    for (namespace, lines) in [(&namespaces.near, near_lines), (&namespaces.far, far_lines)] {
        namespace.within(permit_all)?;
        wiring::apply(namespace, &lines)?;
    }
    Ok(())
}

/// Lets answers come back over another device than questions go, and users without privileges send echo requests and serve
/// every port: all of it is theirs here. Systems without these settings do so anyway.
fn permit_all() {
    for (name, value) in [
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        ("ipv4/ping_group_range", "0 2147483647"),
        ("ipv4/ip_unprivileged_port_start", "0"),
        ("mptcp/enabled", "1"),
    ] {
        if let Err(error) = fs::write(format!("/proc/sys/net/{name}"), value) {
            tracing::debug!(%error, name, "a setting stays as it is");
        }
    }
}
