//! `hvq lab outages`: random pairs of channels that go dark, two channels held against the better one alone.

use super::{RunArguments, run_all};
use crate::experiment::outages::{OutageCell, OutageOutcome, drawn, named, names, policies};
use crate::report::outages as report;
use clap::Args;
use hvq_program::arguments::ResultArguments;
use hvq_program::failure::{Exit, Failure};
use hvq_program::output::{self, Console, check_distinct};
use hvq_scheduler::Policy;
use std::time::Instant;

/// The name of the command in the marks of files for tables.
const NAME: &str = "outages";

/// Arguments of `hvq lab outages`.
#[derive(Debug, Args)]
pub struct OutagesArguments {
    /// Random cells, beside the named ones
    #[arg(long, value_name = "NUMBER", default_value_t = 40, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    cells: u32,
    /// The number of the first random cell
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    first: u32,
    /// These cells only: numbers of random ones, or names
    #[arg(long, value_name = "NUMBERS|NAMES", value_delimiter = ',', conflicts_with_all = ["cells", "first"])]
    cell: Vec<String>,
    /// The policies (by default all that use two paths)
    #[arg(long, visible_alias = "policy", value_name = "NAMES", value_delimiter = ',')]
    policies: Vec<Policy>,
    /// The worst cells to print
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    worst: usize,
    #[command(flatten)]
    runs: RunArguments,
    #[command(flatten)]
    results: ResultArguments,
}

impl OutagesArguments {
    /// The cells that were asked for.
    fn cells(&self) -> Result<Vec<OutageCell>, Failure> {
        if self.cell.is_empty() {
            let named = names().filter_map(|name| named(name, self.runs.seed));
            let numbers = self.first..self.first.saturating_add(self.cells);
            return Ok(named.chain(numbers.map(|number| drawn(self.runs.seed, number))).collect());
        }
        let chosen = |name: &String| match name.parse() {
            Ok(number) => Ok(drawn(self.runs.seed, number)),
            Err(_) => named(name, self.runs.seed).ok_or_else(|| {
                let known: Vec<&str> = names().collect();
                let text = format!("--cell: {name:?} is no number and none of {}", known.join(", "));
                Failure::new(Exit::Usage, text)
            }),
        };
        self.cell.iter().map(chosen).collect()
    }

    fn policies(&self) -> Vec<Policy> {
        if self.policies.is_empty() { policies() } else { self.policies.clone() }
    }

    /// The command that runs the cell of `outcome` again.
    fn replay(&self, OutageOutcome { cell, policy, .. }: &OutageOutcome) -> String {
        format!("hvq lab outages --seed {} --cell {cell} --policies {policy} -v", self.runs.seed)
    }
}

/// Runs the cells and prints the tables; fails if a cell did.
pub fn run(arguments: &OutagesArguments, console: Console) -> Result<(), Failure> {
    check_distinct("--cell", &arguments.cell)?;
    check_distinct("--policies", &arguments.policies)?;
    let (cells, policies) = (arguments.cells()?, arguments.policies());
    arguments.results.check(NAME)?;
    let jobs = arguments.runs.jobs();
    let start = Instant::now();
    let run = |cell: &OutageCell| cell.outcomes(&policies);
    let done = |outcomes: &Vec<OutageOutcome>| {
        outcomes.first().map_or_else(String::new, |outcome| outcome.cell.clone())
    };
    let outcomes = run_all((&cells, jobs), console, run, done)?.concat();
    arguments.results.write_outcomes(&outcomes)?;
    arguments.results.write_tables(NAME, &report::markdown(&outcomes))?;
    for outcome in &outcomes {
        console.detail(|| {
            format!("{}\n{}", report::line(outcome), outcome.scene.as_deref().unwrap_or_default())
        });
    }
    output::print(report::markdown(&outcomes).trim_end())?;
    let worst = report::worst(&outcomes, arguments.worst, |outcome| arguments.replay(outcome));
    if !worst.is_empty() {
        output::print(&format!("\n{}", worst.trim_end()))?;
    }
    let failed = outcomes.iter().filter(|outcome| outcome.verdict.is_failure()).count();
    console.say(format!(
        "{} cells in {:.0} s on {jobs} threads",
        outcomes.len(),
        start.elapsed().as_secs_f64()
    ));
    match failed {
        0 => Ok(()),
        _ => Err(Failure::new(Exit::Runtime, format!("{failed} cells are late or never end"))),
    }
}
