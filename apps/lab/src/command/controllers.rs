//! `hvq lab controllers`: HotNets 2023, Fig. 1.

use super::{RunArguments, run_all};
use crate::experiment::controllers::{ControllerOutcome, ControllerRun, ControllersPlan};
use crate::report::controllers as report;
use clap::Args;
use hvq_emulation::{Probability, TraceName};
use hvq_program::arguments::{FigureArguments, ResultArguments};
use hvq_program::duration;
use hvq_program::failure::{Exit, Failure};
use hvq_program::files::{report_in, write};
use hvq_program::output::{self, Console, check_distinct};
use hvq_transport::congestion::Algorithm;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The name of the report in its folder.
const REPORT: &str = "controllers.html";

/// Arguments of `hvq lab controllers`.
#[derive(Debug, Args)]
pub struct ControllersArguments {
    /// The duration of each download, in virtual seconds
    #[arg(long, value_name = "NUMBER", default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..))]
    seconds: u16,
    /// Round-trip times of eMBB at 60 Mbit/s; the first is the base of what else is varied
    #[arg(long, value_name = "TIMES", value_delimiter = ',', default_value = "50ms", value_parser = duration::parse)]
    rtt: Vec<Duration>,
    /// Random loss each way on both channels, such as 0,0.1%,1%; the first is the base of what else is varied
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0")]
    loss: Vec<Probability>,
    /// eMBB by these traces too: MM-S, MM-W, MM-D, LB-S, LB-W, LB-D
    #[arg(long, value_name = "TRACES", value_delimiter = ',')]
    trace: Vec<TraceName>,
    /// The controllers (by default all)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    controllers: Vec<Algorithm>,
    #[command(flatten)]
    runs: RunArguments,
    /// The folder for the report, controllers.html
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    #[command(flatten)]
    results: ResultArguments,
    #[command(flatten)]
    figure: FigureArguments,
}

/// The name of the command in the marks of files for tables.
const NAME: &str = "controllers";

impl ControllersArguments {
    fn plan(&self) -> ControllersPlan {
        let controllers = match self.controllers.is_empty() {
            true => Algorithm::ALL.into(),
            false => self.controllers.clone(),
        };
        ControllersPlan {
            controllers,
            rtts: self.rtt.clone(),
            losses: self.loss.clone(),
            traces: self.trace.clone(),
            time: Duration::from_secs(self.seconds.into()),
            seed: self.runs.seed,
        }
    }
}

/// Runs everything, prints the tables and writes the report.
pub fn run(arguments: &ControllersArguments, console: Console) -> Result<(), Failure> {
    check_distinct("--controllers", &arguments.controllers)?;
    check_distinct("--trace", &arguments.trace)?;
    let runs = arguments.plan().runs();
    arguments.results.check(NAME)?;
    arguments.figure.check()?;
    let page = report_in(&arguments.out, REPORT)?;
    let jobs = arguments.runs.jobs();
    let start = Instant::now();
    let outcomes = run_all((&runs, jobs), console, ControllerRun::outcome, |outcome| {
        let ControllerOutcome { setting, controller, arrangement, goodput, .. } = outcome;
        format!("{setting}, {controller}, {}: {goodput:.1} Mbit/s", arrangement.label())
    })?;
    let simulated = f64::from(arguments.seconds) * runs.len() as f64;
    let took = start.elapsed().as_secs_f64();
    write(&page, &report::html(&outcomes))?;
    arguments.results.write_outcomes(&outcomes)?;
    arguments.figure.write(|| Some(report::figure(&outcomes)))?;
    arguments.results.write_tables(NAME, &report::documentation(&outcomes))?;
    output::print(report::markdown(&outcomes).trim_end())?;
    console.say(format!(
        "{} runs, {simulated:.0} s of virtual time in {took:.0} s ({:.0} × on {jobs} threads)",
        runs.len(),
        simulated / took
    ));
    console.say(format!("report: {}", page.display()));
    match outcomes.iter().find_map(|outcome| outcome.failure.as_ref().map(|reason| (outcome, reason))) {
        None => Ok(()),
        Some((outcome, reason)) => {
            let text = format!("{} over {}: {reason}", outcome.controller, outcome.setting);
            Err(Failure::new(Exit::Runtime, text))
        }
    }
}
