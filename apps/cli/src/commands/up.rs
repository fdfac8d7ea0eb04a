//! `hvq up` and `hvq down`: a tunnel for this machine from one file.

use crate::arguments::Format;
use crate::failure::Failure;
use crate::output::Console;
use clap::Args;
use hvq_gateway::destination_policy::DestinationPolicy;
use hvq_tunnel::server::Destinations;
use hvq_tunnel::{Prefix, up};
use ipnet::IpNet;
use std::path::PathBuf;

/// Arguments of `hvq up`.
#[derive(Debug, Args)]
pub(crate) struct UpArguments {
    /// The file (TOML) with a table [client] or [server]; its name without the ending names the tunnel
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Say what is wrong with the file, with the line, and end
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
    #[command(flatten)]
    plan: PlanArguments,
    #[command(flatten)]
    format: Format,
}

/// The wish to see what would be done.
#[derive(Debug, Args)]
struct PlanArguments {
    /// Print what would be changed of this system, and end
    #[arg(long)]
    dry_run: bool,
}

/// Arguments of `hvq down`.
#[derive(Debug, Args)]
pub(crate) struct DownArguments {
    /// The file of `hvq up`, or the name of its tunnel
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Brings the tunnel up until it is told to stop. There must be no other thread yet.
pub(crate) fn run(arguments: &UpArguments, console: Console) -> Result<(), Failure> {
    let settings = up::read(&arguments.file)?;
    if arguments.check {
        console.say(format!("{} is sound", arguments.file.display()));
        return Ok(());
    }
    match arguments.plan.dry_run {
        true => settings.print_plan(arguments.format.results()),
        false => settings.up(&judge, arguments.format.results(), console),
    }
}

/// The addresses that clients of a server may reach: the rule of the gateway, by which its own services and the metadata of clouds
/// are out of reach unless they are named.
fn judge(routes: &[Prefix], reach: &[Prefix]) -> Destinations {
    let networks = |prefixes: &[Prefix]| -> Vec<IpNet> {
        let network = |prefix: &Prefix| IpNet::new(prefix.address(), prefix.bits()).ok();
        prefixes.iter().filter_map(network).collect()
    };
    let (policy, routes) = (DestinationPolicy::new(networks(reach)), networks(routes));
    Destinations::new(move |address| policy.allows_by(address, &routes))
}

/// Brings the tunnel down, and undoes what it left.
pub(crate) fn down(arguments: &DownArguments, console: Console) -> Result<(), Failure> {
    up::down(&arguments.file, console)
}
