//! `hvq lab video`: real-time video in virtual time (HotNets 2023, Fig. 2).

use super::{HalfArguments, run_all};
use crate::experiment::video::{Dark, VideoPlan, VideoRun, VideoScheme};
use crate::report::video as report;
use clap::Args;
use hvq_emulation::TraceName;
use hvq_program::arguments::{FigureArguments, ResultArguments};
use hvq_program::duration;
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::output::{self, Console, check_distinct};
use hvq_video::clip::Clip;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of the command in the marks of files for tables.
const NAME: &str = "video";

/// Arguments of `hvq lab video`.
#[derive(Debug, Args)]
pub struct VideoExperimentArguments {
    /// The clip: bunny, or a file that the example `clip` of hvq-video wrote
    #[arg(long, value_name = "NAME|FILE", default_value = "bunny")]
    clip: String,
    /// Ways of using the channels: udp:embb, udp:dchannel or udp:priority for packets without a transport, embb,
    /// below:NAME for a steerer of the transport's packets, or a scheduler; with +priorities or +deadlines the transport
    /// is told which layers matter, and until when
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "udp:embb,udp:dchannel,udp:priority,embb,below:dchannel,min-rtt,redundant,dchannel,\
                         priority-svc+priorities,xlink+deadlines,hvc,hvc+deadlines"
    )]
    schemes: Vec<VideoScheme>,
    /// eMBB by these traces: MM-S, MM-W, MM-D, LB-S, LB-W, LB-D
    #[arg(long, value_name = "TRACES", value_delimiter = ',', default_value = "MM-D,LB-D")]
    trace: Vec<TraceName>,
    /// The duration of each video, in virtual seconds
    #[arg(long, value_name = "NUMBER", default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..))]
    seconds: u16,
    /// Videos with each scheme, each on the next stretch of the half of the trace: five of 60 s are all of it
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    repetitions: u32,
    /// Let eMBB carry nothing for so long, from the tenth second of each video on
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    dark: Option<Duration>,
    #[command(flatten)]
    chosen: HalfArguments,
    #[command(flatten)]
    results: ResultArguments,
    #[command(flatten)]
    figure: FigureArguments,
}

impl VideoExperimentArguments {
    fn plan(&self) -> Result<VideoPlan, Failure> {
        let from = Duration::from_secs(10);
        Ok(VideoPlan {
            clip: (self.clip.clone(), Arc::new(clip(&self.clip)?)),
            traces: self.trace.clone(),
            schemes: self.schemes.clone(),
            time: Duration::from_secs(self.seconds.into()),
            repetitions: self.repetitions,
            dark: self.dark.map(|time| Dark { from, time }),
            half: self.chosen.half,
            seed: self.chosen.runs.seed,
        })
    }
}

/// The clip called `name`, or that of the file.
fn clip(name: &str) -> Result<Clip, Failure> {
    if !Path::new(name).exists() {
        return Clip::builtin(name).or_fail(Exit::Usage, || "--clip".to_owned());
    }
    let text = std::fs::read_to_string(name).or_fail(Exit::Usage, || format!("cannot read {name}"))?;
    Clip::parse(&text).or_fail(Exit::Usage, || name.to_owned())
}

/// Runs everything and prints the tables.
pub fn run(arguments: &VideoExperimentArguments, console: Console) -> Result<(), Failure> {
    check_distinct("--schemes", &arguments.schemes)?;
    check_distinct("--trace", &arguments.trace)?;
    let runs = arguments.plan()?.runs();
    arguments.results.check(NAME)?;
    arguments.figure.check()?;
    let jobs = arguments.chosen.runs.jobs();
    let start = Instant::now();
    let outcomes = run_all((&runs, jobs), console, VideoRun::outcome, |outcome| {
        format!("{}, {}", outcome.channels, outcome.scheme)
    })?;
    arguments.results.write_outcomes(&outcomes)?;
    arguments.figure.write(|| report::figure(&outcomes))?;
    let tables = report::markdown(&outcomes);
    arguments.results.write_tables(NAME, &tables)?;
    output::print(tables.trim_end())?;
    let simulated = f64::from(arguments.seconds) * runs.len() as f64;
    let took = start.elapsed().as_secs_f64();
    console.say(format!(
        "{} videos, {simulated:.0} s of virtual time in {took:.0} s ({:.0} × on {jobs} threads)",
        runs.len(),
        simulated / took
    ));
    match outcomes.iter().find_map(|outcome| outcome.failure.as_ref().map(|reason| (outcome, reason))) {
        None => Ok(()),
        Some((outcome, reason)) => {
            let text = format!("{} over {}: {reason}", outcome.scheme, outcome.channels);
            Err(Failure::new(Exit::Runtime, text))
        }
    }
}
