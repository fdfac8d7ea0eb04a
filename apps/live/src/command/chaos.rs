//! `hvq lab chaos`: real interfaces that go and come.

use super::interruption::Interruption;
use super::{check_outputs, write_between_marks, write_lines};
use crate::failure::{Exit, Failure, OrFail};
use crate::output::{self, Console, check_distinct};
use clap::Args;
use hvq_emulation::tun::{privilege, program};
use hvq_lab::experiment::outages::policies;
use hvq_live::chaos::{self, ChaosPlan, Event, Examples, TriedProgram};
use hvq_live::observer::Observer;
use hvq_live::report;
use hvq_scheduler::Policy;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Instant;

/// Between which the tables stand in a document.
const MARKS: [&str; 2] = ["<!-- chaos: begin -->\n", "<!-- chaos: end -->"];

/// Arguments of `hvq lab chaos`.
#[derive(Debug, Args)]
pub(crate) struct ChaosArguments {
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
    /// Write everything that was measured to this file too, one JSON object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the tables into this file too, between its lines <!-- chaos: begin --> and <!-- chaos: end -->
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// Gets the right to make namespaces, in a user namespace if need be. There must be no other thread yet.
pub(super) fn prepare() -> Result<(), Failure> {
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
pub(super) fn run(arguments: &ChaosArguments, console: Console) -> Result<(), Failure> {
    check_distinct("--clients", &arguments.clients)?;
    check_distinct("--policies", &arguments.policies)?;
    check_distinct("--events", &arguments.events)?;
    let plan = arguments.plan()?;
    check_outputs(&[&arguments.json], (&arguments.write, MARKS))?;
    let start = Instant::now();
    let interruption = Interruption::watch(console)?;
    let say = |line: &str| console.say(format!("chaos: {line}"));
    let outcomes = chaos::run(&plan, Observer { say: &say, stop: interruption.stop() });
    let tables = report::chaos(&outcomes);
    if let Some(path) = &arguments.json {
        write_lines(path, &outcomes)?;
    }
    output::print(tables.trim_end())?;
    if let Some(exit) = interruption.exit() {
        return Err(Failure::new(exit, "ended by a signal: what was measured by then is above"));
    }
    if let Some(path) = &arguments.write {
        write_between_marks(path, MARKS, &tables)?;
    }
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
