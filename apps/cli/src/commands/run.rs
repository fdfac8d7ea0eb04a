//! `hvq run`: a command in a network of its own, behind emulated channels.

use crate::failure::{Exit, Failure, OrFail};
use crate::output::{Console, check_writable};
use clap::Args;
use hvq_emulation::ChannelSpec;
use hvq_emulation::steer::{Pair, Reordering};
use hvq_emulation::tun::privilege::{self, Privilege};
use hvq_emulation::tun::program;
use hvq_emulation::tun::shell::{Plan, Route, Shell};
use hvq_emulation::tun::steerer::Steerer;
use hvq_program::run::{Connections, Programs, refused};
use hvq_scheduler::Policy;
use hvq_tunnel::{MTU as TUNNEL_MTU, emulated};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;

/// The MTU of Ethernet, in bytes.
const MTU: u16 = 1500;

/// Arguments of `hvq run`.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    route: RouteArguments,
    #[command(flatten)]
    other: OtherArguments,
    /// Both channels with a device and an address each, for programs such as hvq proxy that choose among them; the addresses
    /// are in $HVQ_EMBB_NEAR, $HVQ_EMBB_FAR, $HVQ_URLLC_NEAR and $HVQ_URLLC_FAR
    #[arg(long, conflicts_with_all = ["steer", "mptcp", "scheduler"])]
    apart: bool,
    #[command(flatten)]
    record: RecordArguments,
    /// A command line for the shell, run at the other end of the channels, which COMMAND reaches as `far` or $HVQ_FAR;
    /// COMMAND starts when it listens for TCP connections, and it ends with COMMAND
    #[arg(long, value_name = "COMMAND LINE")]
    server: Option<OsString>,
    /// Let COMMAND reach these ports of addresses outside, over TCP and UDP, and name servers; without it nothing is reached
    /// but the other end
    #[arg(long, value_name = "PORT,…", num_args = 0..=1, require_equals = true, default_missing_value = "80,443",
        value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    outside: Option<Vec<u16>>,
    /// End, and everything with it, when the process of this number ends, which must be the one that started this
    #[arg(long, value_name = "PROCESS")]
    parent: Option<u32>,
    /// The command to run, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The channels that packets go over.
#[derive(Debug, Args)]
struct RouteArguments {
    /// The channel with the high bandwidth, as of hvq emulate: items such as embb, MM-D, rtt=40ms, rate=60mbit, loss=1%,
    /// up.rate=mahimahi:FILE
    #[arg(long, value_name = "SPEC", default_value = "embb")]
    embb: ChannelSpec,
    /// The channel with the low latency
    #[arg(long, value_name = "SPEC", default_value = "urllc")]
    urllc: ChannelSpec,
    /// The policy that decides for each packet: dchannel[:ALPHA], asap, pkt-state, pkt-control, best-pkt-size[:BYTES],
    /// pkt-uplink, all-embb, all-urllc
    #[arg(long, value_name = "STEERER", default_value = "dchannel")]
    steer: Steerer,
    /// The side that puts packets in order again that were steered: both, client, nowhere
    #[arg(long, value_name = "SIDE", default_value = "both", value_parser = parse_reordering)]
    reorder: Reordering,
    /// One channel only, that of --embb
    #[arg(long, conflicts_with_all = ["urllc", "steer", "mptcp", "apart", "scheduler"])]
    direct: bool,
    /// The seed of everything random
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// The largest packet (by default 1500, and 1360 in a tunnel)
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1280..))]
    mtu: Option<u16>,
    /// The congestion controller of TCP at both ends, such as cubic or bbr (by default the system's)
    #[arg(long, value_name = "NAME", value_parser = controller)]
    tcp: Option<String>,
}

/// Ways over both channels that steer no packets.
#[derive(Debug, Args)]
struct OtherArguments {
    /// Both channels with a device each, for the kernel's MPTCP
    #[arg(long, conflicts_with_all = ["steer", "scheduler"])]
    mptcp: bool,
    /// Both channels as paths of a tunnel (hvq tunnel), whose packets this scheduler places: hvc, min-rtt, blest, …
    #[arg(long, value_name = "NAME", conflicts_with_all = ["steer", "reorder"])]
    scheduler: Option<Policy>,
}

/// The records that are written.
#[derive(Debug, Args)]
struct RecordArguments {
    /// Write a line about each packet to this file, its channel, delay and size: CSV if it ends in .csv, else JSON
    #[arg(long, value_name = "FILE")]
    packets: Option<PathBuf>,
    /// Write what the channels did to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

fn parse_reordering(text: &str) -> Result<Reordering, String> {
    match text {
        "both" => Ok(Reordering::BothSides),
        "client" => Ok(Reordering::ClientSide),
        "nowhere" => Ok(Reordering::Nowhere),
        _ => Err("choose from both, client, nowhere".to_owned()),
    }
}

impl RunArguments {
    fn pair(&self) -> Pair<ChannelSpec> {
        Pair { high_bandwidth: self.route.embb.clone(), low_latency: self.route.urllc.clone() }
    }

    fn route(&self) -> Route {
        let RouteArguments { embb, steer, reorder, direct, .. } = &self.route;
        let pair = || Box::new(self.pair());
        match (direct, self.other.mptcp, self.apart) {
            (true, ..) => Route::Direct(Box::new(embb.clone())),
            (false, true, _) => Route::Mptcp(pair()),
            (false, false, true) => Route::Apart(pair()),
            (false, false, false) => {
                Route::Steered { channels: pair(), steerer: *steer, reordering: *reorder }
            }
        }
    }
}

/// Reads the name of a congestion controller.
fn controller(text: &str) -> Result<String, String> {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.map_err(|error| format!("the system does not say which it has: {error}"))?;
    if known.split_whitespace().any(|name| name == text) {
        return Ok(text.to_owned());
    }
    Err(format!("this system has no {text}, but {}", known.trim()))
}

/// Runs the command, and returns its exit code. There must be no other thread yet.
pub(crate) fn run(arguments: &RunArguments, console: Console) -> Result<ExitCode, Failure> {
    let privilege = privilege::acquire()?;
    // After the change of user that this may be.
    if let Some(parent) = arguments.parent {
        privilege::end_with(parent)?;
    }
    let RecordArguments { packets, report } = &arguments.record;
    [packets, report].into_iter().flatten().try_for_each(|file| check_writable(file))?;
    let plan = plan(arguments, privilege)?;
    let programs = Programs {
        command: arguments.command.clone(),
        server: arguments.server.clone(),
        outside: arguments.outside.clone().unwrap_or_default(),
        connections: if arguments.other.mptcp { Connections::Mptcp } else { Connections::Tcp },
    };
    let (report, code) = match arguments.other.scheduler {
        Some(policy) => {
            emulated::run(&arguments.pair(), &plan, policy, |namespaces| programs.run(namespaces, console))?
        }
        None => {
            let shell = Shell::open(&plan).map_err(|error| refused(&error))?;
            let code = programs.run(shell.namespaces(), console)?;
            (shell.close()?, code)
        }
    };
    if console >= Console::Normal {
        eprintln!("{}", hvq_program::run::table(&report));
    }
    if let Some(path) = &arguments.record.report {
        std::fs::write(path, hvq_program::run::json(&report, code))
            .or_fail(Exit::Runtime, || format!("cannot write {}", path.display()))?;
    }
    Ok(ExitCode::from(code))
}

fn plan(arguments: &RunArguments, privilege: Privilege) -> Result<Plan, Failure> {
    let user = match privilege {
        Privilege::Own => None,
        Privilege::User(user) => Some(user),
    };
    Ok(Plan {
        route: arguments.route(),
        seed: arguments.route.seed,
        mtu: arguments.route.mtu.unwrap_or(match arguments.other.scheduler {
            Some(_) => TUNNEL_MTU,
            None => MTU,
        }),
        congestion: arguments.route.tcp.clone(),
        log: arguments.record.packets.clone(),
        resolvers: Vec::new(),
        user,
        launcher: program::this_program(&[OsStr::new("inside")])?,
    })
}
