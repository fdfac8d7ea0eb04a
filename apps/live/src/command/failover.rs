//! `hvq lab failover`: for how long loads stand still when a link fails.

use crate::failover::{self, Contender, FailoverPlan, LinkFault};
use crate::report;
use clap::Args;
use hvq_emulation::tun::program;
use hvq_lab::command::{progress, stop_on_signals};
use hvq_program::arguments::{FigureArguments, ResultArguments};
use hvq_program::failure::{Exit, Failure};
use hvq_program::output::{self, Console, check_distinct};
use std::ffi::OsStr;
use std::time::Instant;

/// The name of the command in the marks of files for tables.
const NAME: &str = "failover";

/// Arguments of `hvq lab failover`.
#[derive(Debug, Args)]
pub struct FailoverArguments {
    /// The clients: policies, and migration for a connection without multipath (by default hvc, min-rtt, redundant, dchannel,
    /// migration)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    clients: Vec<Contender>,
    /// The faults: down, silent, upwards, downwards, slow, renumbered, both (by default all)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    faults: Vec<LinkFault>,
    /// Trials of each fault with each client
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: u32,
    /// Trials at the same time, each in namespaces of its own; more than the machine has room for make gaps longer
    #[arg(long, value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    #[command(flatten)]
    results: ResultArguments,
    #[command(flatten)]
    figure: FigureArguments,
}

impl FailoverArguments {
    fn plan(&self) -> Result<FailoverPlan, Failure> {
        Ok(FailoverPlan {
            contenders: if self.clients.is_empty() { Contender::usual() } else { self.clients.clone() },
            faults: if self.faults.is_empty() { LinkFault::ALL.to_vec() } else { self.faults.clone() },
            trials: self.trials,
            jobs: self.jobs.into(),
            launcher: program::this_program(&[OsStr::new("inside")])?,
        })
    }
}

/// Makes every trial and prints the tables; fails if one could not be made.
pub fn run(arguments: &FailoverArguments, console: Console) -> Result<(), Failure> {
    check_distinct("--clients", &arguments.clients)?;
    check_distinct("--faults", &arguments.faults)?;
    let plan = arguments.plan()?;
    arguments.results.check(NAME)?;
    arguments.figure.check()?;
    let start = Instant::now();
    let (interruption, stop) = stop_on_signals(console)?;
    let bar = progress(plan.contenders.len() * plan.faults.len() * plan.trials as usize, console);
    let trials = failover::run(&plan, &stop, |trial| {
        bar.set_message(format!("{}, {}", trial.contender, trial.fault));
        bar.inc(1);
    });
    bar.finish_and_clear();
    let tables = report::failover(&trials);
    arguments.results.write_outcomes(&trials)?;
    output::print(tables.trim_end())?;
    if let Some(exit) = interruption.exit() {
        return Err(Failure::new(exit, "ended by a signal: what was measured by then is above"));
    }
    arguments.figure.write(|| Some(report::failover_figure(&trials)))?;
    arguments.results.write_tables(NAME, &tables)?;
    console.say(format!("failover: {} trials in {:.0} s", trials.len(), start.elapsed().as_secs_f64()));
    let unmade = trials.iter().filter(|trial| trial.problem.is_some()).count();
    if unmade == 0 {
        return Ok(());
    }
    Err(Failure::new(Exit::Runtime, format!("{unmade} trials could not be made")))
}
