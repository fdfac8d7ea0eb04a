//! The commands of `hvq lab` in virtual time: their arguments, and what they do.
//!
//! Each has a struct of arguments for a command line, and a function that runs it: the program only picks one.

pub mod controllers;
pub mod experiments;
pub mod outages;
pub mod page_names;
pub mod pages;
pub mod report;
pub mod video;

use crate::experiment::campaign::Stop;
use crate::experiment::definition::Half;
use crate::experiment::pool;
use clap::Args;
use hvq_emulation::TraceError;
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::interruption::Interruption;
use hvq_program::output::Console;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Arc;

/// Handles SIGINT and SIGTERM from now on: the first orders the stop, and is known to the interruption.
///
/// # Errors
/// The system permits no handlers ([`Exit::Runtime`]).
pub fn stop_on_signals(console: Console) -> Result<(Interruption, Arc<Stop>), Failure> {
    let stop = Arc::new(Stop::default());
    let ordered = stop.clone();
    Ok((Interruption::watch(console, move || ordered.order())?, stop))
}

/// Arguments of commands that make many runs.
#[derive(Debug, Args)]
struct RunArguments {
    /// The seed of everything random
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Runs at the same time (by default one a processor)
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

impl RunArguments {
    fn jobs(&self) -> usize {
        jobs(self.jobs)
    }
}

/// Arguments of commands that make many runs with one half of the material. A command that is for choosing sets another default.
#[derive(Debug, Args)]
struct HalfArguments {
    /// The half of pages, stretches of traces and seeds: parameters are chosen on training and reported on held-out
    #[arg(long, value_name = "training|held-out", default_value_t = Half::HeldOut)]
    half: Half,
    #[command(flatten)]
    runs: RunArguments,
}

/// Returns the number of runs at the same time: as asked, or one a processor.
fn jobs(asked: Option<u16>) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(processors, usize::from)
}

/// A bar for so many runs.
pub fn progress(runs: usize, console: Console) -> ProgressBar {
    let bar = match console {
        Console::Quiet => ProgressBar::hidden(),
        _ => ProgressBar::new(runs as u64),
    };
    let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {eta} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Runs everything, `jobs` at a time, while a bar says with `describe` what was done last.
fn run_all<R: Sync, O: Send>(
    (runs, jobs): (&[R], usize),
    console: Console,
    run: impl Fn(&R) -> Result<O, TraceError> + Sync,
    describe: impl Fn(&O) -> String + Sync,
) -> Result<Vec<O>, Failure> {
    let bar = progress(runs.len(), console);
    let outcomes = pool::run(runs, jobs, run, |outcome| {
        if let Ok(outcome) = outcome {
            bar.set_message(describe(outcome));
        }
        bar.inc(1);
    });
    bar.finish_and_clear();
    outcomes.into_iter().collect::<Result<_, _>>().or_fail(Exit::Usage, || "a trace".to_owned())
}
