//! `hvq lab controllers`: HotNets 2023, Fig. 1.

use super::{check_outputs, jobs, report_in, run_all, write, write_between_marks, write_lines};
use crate::duration;
use crate::failure::{Exit, Failure};
use crate::output::{self, Console, check_distinct};
use clap::Args;
use hvq::transport::congestion::Algorithm;
use hvq_emulation::{Probability, TraceName};
use hvq_lab::experiment::controllers::{ControllerOutcome, ControllerRun, ControllersPlan};
use hvq_lab::report::controllers as report;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The name of the report in its folder.
const REPORT: &str = "controllers.html";

/// Arguments of `hvq lab controllers`.
#[derive(Debug, Args)]
pub(crate) struct ControllersArguments {
    /// The duration of each download, in virtual seconds
    #[arg(long, value_name = "NUMBER", default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..))]
    seconds: u16,
    /// The seed of everything random
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
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
    /// Runs at the same time (by default one a processor)
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The folder for the report, controllers.html
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Write everything that was measured to this file too, one JSON object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the drawing of the first setting to this file too, as SVG
    #[arg(long, value_name = "FILE")]
    figure: Option<PathBuf>,
    /// Put the tables into this file too, between its lines <!-- controllers: begin --> and <!-- controllers: end -->
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// The marks before and behind the tables in a file that shows them.
const MARKS: [&str; 2] = ["<!-- controllers: begin -->\n", "<!-- controllers: end -->"];

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
            seed: self.seed,
        }
    }
}

/// Runs everything, prints the tables and writes the report.
pub(super) fn run(arguments: &ControllersArguments, console: Console) -> Result<(), Failure> {
    check_distinct("--controllers", &arguments.controllers)?;
    check_distinct("--trace", &arguments.trace)?;
    let runs = arguments.plan().runs();
    check_outputs(&[&arguments.json, &arguments.figure], (&arguments.write, MARKS))?;
    let page = report_in(&arguments.out, REPORT)?;
    let jobs = jobs(arguments.jobs);
    let start = Instant::now();
    let outcomes = run_all((&runs, jobs), console, ControllerRun::outcome, |outcome| {
        let ControllerOutcome { setting, controller, arrangement, goodput, .. } = outcome;
        format!("{setting}, {controller}, {}: {goodput:.1} Mbit/s", arrangement.label())
    })?;
    let simulated = f64::from(arguments.seconds) * runs.len() as f64;
    let took = start.elapsed().as_secs_f64();
    write(&page, &report::html(&outcomes))?;
    if let Some(path) = &arguments.json {
        write_lines(path, &outcomes)?;
    }
    if let Some(path) = &arguments.figure {
        write(path, &report::figure(&outcomes))?;
    }
    if let Some(path) = &arguments.write {
        write_between_marks(path, MARKS, &report::documentation(&outcomes))?;
    }
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
