//! `hvq lab chaos`: real interfaces that go and come.

use crate::chaos::{self, ChaosPlan, Event, Examples, TriedProgram};
use crate::observer::Observer;
use crate::report;
use clap::Args;
use hvq_emulation::tun::{privilege, program};
use hvq_lab::command::stop_on_signals;
use hvq_lab::experiment::outages::policies;
use hvq_program::arguments::ResultArguments;
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::output::{self, Console, check_distinct};
use hvq_scheduler::Policy;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Instant;

/// The name of the command in the marks of files for tables.
const NAME: &str = "chaos";

/// Arguments of `hvq lab chaos`.
#[derive(Debug, Args)]
pub struct ChaosArguments {
    /// The clients: proxy (paths that are named), links-proxy (paths that follow the links), example (by default all)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    clients: Vec<TriedProgram>,
    /// The policies (by default all that use two paths)
    #[arg(long, visible_alias = "policy", value_name = "NAMES", value_delimiter = ',')]
    policies: Vec<Policy>,
    /// The events: down-up, removed, renumbered, upwards, downwards, both, renumbered-then-down (by default all)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    events: Vec<Event>,
    /// The folder with the C examples echo and requests, compiled; without it hvq proxy and hvq gateway are tried alone
    #[arg(long, value_name = "DIR")]
    examples: Option<PathBuf>,
    /// Tries at the same time, each in namespaces of its own
    #[arg(long, value_name = "NUMBER", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    /// The longest gap in seconds that passes, beyond the time without any path; by default all do
    #[arg(long, value_name = "SECONDS")]
    most: Option<f64>,
    #[command(flatten)]
    results: ResultArguments,
}

/// Gets the right to make namespaces, in a user namespace if need be. There must be no other thread yet.
pub fn prepare() -> Result<(), Failure> {
    privilege::acquire()?;
    Ok(())
}

impl ChaosArguments {
    fn plan(&self) -> Result<ChaosPlan, Failure> {
        let or_all = |chosen: &[Event]| if chosen.is_empty() { Event::ALL.to_vec() } else { chosen.to_vec() };
        if let Some(folder) = &self.examples {
            for name in ["echo", "requests"] {
                let file = folder.join(name);
                let there = file.metadata();
                there.or_fail(Exit::Usage, || format!("--examples: {}", file.display()))?;
            }
        }
        Ok(ChaosPlan {
            clients: if self.clients.is_empty() { TriedProgram::ALL.to_vec() } else { self.clients.clone() },
            policies: if self.policies.is_empty() { policies() } else { self.policies.clone() },
            events: or_all(&self.events),
            hvq: std::env::current_exe()?,
            examples: self.examples.as_ref().map(|folder| Examples { folder: folder.clone() }),
            launcher: program::this_program(&[OsStr::new("inside")])?,
            jobs: self.jobs.into(),
        })
    }
}

/// Makes every try and prints the tables; fails if one could not be made, or a gap was longer than is to pass.
pub fn run(arguments: &ChaosArguments, console: Console) -> Result<(), Failure> {
    check_distinct("--clients", &arguments.clients)?;
    check_distinct("--policies", &arguments.policies)?;
    check_distinct("--events", &arguments.events)?;
    let plan = arguments.plan()?;
    arguments.results.check(NAME)?;
    let start = Instant::now();
    let (interruption, stop) = stop_on_signals(console)?;
    let say = |line: &str| console.say(format!("chaos: {line}"));
    let outcomes = chaos::run(&plan, Observer { say: &say, stop: &stop });
    let tables = report::chaos(&outcomes);
    arguments.results.write_outcomes(&outcomes)?;
    output::print(tables.trim_end())?;
    if let Some(exit) = interruption.exit() {
        return Err(Failure::new(exit, "ended by a signal: what was measured by then is above"));
    }
    arguments.results.write_tables(NAME, &tables)?;
    console.say(format!("chaos: {} tries in {:.0} s", outcomes.len(), start.elapsed().as_secs_f64()));
    let unmade = outcomes.iter().filter(|outcome| outcome.problem.is_some()).count();
    let long =
        outcomes.iter().filter(|outcome| arguments.most.is_some_and(|most| outcome.is_longer_than(most)));
    match (unmade, long.count()) {
        (0, 0) => Ok(()),
        (unmade, long) => {
            let text = format!("{unmade} tries could not be made, {long} had longer gaps than are to pass");
            Err(Failure::new(Exit::Runtime, text))
        }
    }
}
