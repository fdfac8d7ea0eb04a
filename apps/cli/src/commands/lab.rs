//! `hvq lab`: experiments in virtual time.

#[cfg(target_os = "linux")]
mod chaos;
mod controllers;
mod experiments;
#[cfg(target_os = "linux")]
mod failover;
#[cfg(target_os = "linux")]
mod live;
mod outages;
mod pages;
mod report;
mod video;

use crate::failure::{Exit, Failure, OrFail};
use crate::output::Console;
use clap::{Args, Subcommand};
use controllers::ControllersArguments;
use experiments::{ExperimentsArguments, MergeArguments, ShowArguments};
use hvq_emulation::TraceError;
use hvq_lab::experiment::pool;
use hvq_live::interruption;
use hvq_program::files::{check_outputs, report_in, write, write_between_marks, write_lines};
use indicatif::{ProgressBar, ProgressStyle};
use outages::OutagesArguments;
use pages::PagesArguments;
use report::ReportArguments;
use video::VideoExperimentArguments;

/// Arguments of `hvq lab`.
#[derive(Debug, Args)]
pub(crate) struct LabArguments {
    #[command(subcommand)]
    experiment: Experiment,
}

/// The experiments.
#[derive(Debug, Subcommand)]
enum Experiment {
    /// Congestion controllers over eMBB and URLLC: eMBB alone, steered below the transport, and as two paths
    Controllers(ControllersArguments),
    /// Page loads over eMBB and URLLC with every scheme of the papers: mean page load times, gains, bytes on URLLC
    Pages(PagesArguments),
    /// Random pairs of channels that go dark: two channels held against the better one alone, with every policy
    Outages(OutagesArguments),
    /// Real-time video in layers over eMBB and URLLC with every scheme: latency and quality of frames, freezes
    Video(VideoExperimentArguments),
    /// Real programs in real time behind emulated channels: browsers, Nginx, h2load, curl, iperf3
    #[cfg(target_os = "linux")]
    Live(live::LiveArguments),
    /// Real interfaces that go and come: the longest gap of a stream of requests by event and policy
    #[cfg(target_os = "linux")]
    Chaos(chaos::ChaosArguments),
    /// Failover in figures: for how long requests, a download and datagrams stand still when a link fails
    #[cfg(target_os = "linux")]
    Failover(failover::FailoverArguments),
    /// Run experiments that are described in files: the figures and tables of the papers, and our own
    Run(ExperimentsArguments),
    /// Put together the results of several machines, each of which ran a share
    Merge(MergeArguments),
    /// Print the goals and tables of results as text
    Show(ShowArguments),
    /// Write a report on the results of experiments: one file of HTML with drawings, tables and goals
    Report(ReportArguments),
    /// Name the experiments that are compiled in
    List,
}

/// Gets what an experiment needs of the system. There must be no other thread yet.
#[cfg(target_os = "linux")]
pub(crate) fn prepare(arguments: &LabArguments) -> Result<(), Failure> {
    match &arguments.experiment {
        Experiment::Chaos(_) | Experiment::Failover(_) => chaos::prepare(),
        _ => Ok(()),
    }
}

/// Runs the experiment.
pub(crate) fn run(arguments: &LabArguments, console: Console) -> Result<(), Failure> {
    match &arguments.experiment {
        Experiment::Controllers(arguments) => controllers::run(arguments, console),
        Experiment::Pages(arguments) => pages::run(arguments, console),
        Experiment::Outages(arguments) => outages::run(arguments, console),
        Experiment::Video(arguments) => video::run(arguments, console),
        #[cfg(target_os = "linux")]
        Experiment::Live(arguments) => live::run(arguments, console),
        #[cfg(target_os = "linux")]
        Experiment::Chaos(arguments) => chaos::run(arguments, console),
        #[cfg(target_os = "linux")]
        Experiment::Failover(arguments) => failover::run(arguments, console),
        Experiment::Run(arguments) => experiments::run(arguments, console),
        Experiment::Merge(arguments) => experiments::join(arguments, console),
        Experiment::Show(arguments) => experiments::show(arguments, console),
        Experiment::Report(arguments) => report::run(arguments, console),
        Experiment::List => experiments::list(),
    }
}

/// Returns the number of runs at the same time: as asked, or one a processor.
fn jobs(asked: Option<u16>) -> usize {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.map_or_else(processors, usize::from)
}

/// A bar for so many runs.
fn progress(runs: usize, console: Console) -> ProgressBar {
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
