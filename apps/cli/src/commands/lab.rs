//! `hvq lab`: experiments, in virtual time and in real time.

use crate::failure::Failure;
use crate::output::Console;
use clap::{Args, Subcommand};
use hvq_lab::command::controllers::{self, ControllersArguments};
use hvq_lab::command::experiments::{self, ExperimentsArguments, MergeArguments, ShowArguments};
use hvq_lab::command::outages::{self, OutagesArguments};
use hvq_lab::command::pages::{self, PagesArguments};
use hvq_lab::command::report::{self, ReportArguments};
use hvq_lab::command::video::{self, VideoExperimentArguments};
#[cfg(target_os = "linux")]
use hvq_live::command::{chaos, failover, live};

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
