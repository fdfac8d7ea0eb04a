//! `hvq lab`: experiments in virtual time.

#[cfg(target_os = "linux")]
mod chaos;
mod controllers;
mod experiments;
mod interruption;
#[cfg(target_os = "linux")]
mod live;
mod outages;
mod pages;
mod report;
mod video;

use crate::failure::{Exit, Failure, OrFail};
use crate::output::{Console, check_writable};
use clap::{Args, Subcommand};
use controllers::ControllersArguments;
use experiments::{RunArguments, ShowArguments};
use hvq_emulation::TraceError;
use hvq_lab::experiment::pool;
use indicatif::{ProgressBar, ProgressStyle};
use outages::OutagesArguments;
use pages::PagesArguments;
use report::ReportArguments;
use serde::Serialize;
use std::path::{Path, PathBuf};
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
    /// Run experiments that are described in files: the figures and tables of the papers, and our own
    Run(RunArguments),
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
        Experiment::Chaos(_) => chaos::prepare(),
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
        Experiment::Run(arguments) => experiments::run(arguments, console),
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

/// Fails unless results can be written to `files`, and tables between `marks` of the file `marked`: to be known before hours
/// of work.
fn check_outputs(
    files: &[&Option<PathBuf>],
    (marked, marks): (&Option<PathBuf>, [&str; 2]),
) -> Result<(), Failure> {
    files.iter().filter_map(|file| file.as_deref()).try_for_each(check_writable)?;
    if let Some(path) = marked {
        check_writable(path)?;
        with_marks(path, marks, "")?;
    }
    Ok(())
}

/// Makes the folder of a report, and fails unless the file `name` can be written there.
fn report_in(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(folder).or_fail(Exit::Usage, || format!("cannot create {}", folder.display()))?;
    let report = folder.join(name);
    check_writable(&report)?;
    Ok(report)
}

/// Writes what was measured to the file at `path`, one JSON object a line.
fn write_lines(path: &Path, outcomes: &[impl Serialize]) -> Result<(), Failure> {
    let lines: Result<Vec<String>, _> = outcomes.iter().map(serde_json::to_string).collect();
    write(path, &(lines?.join("\n") + "\n"))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).or_fail(Exit::Runtime, || format!("cannot write {}", path.display()))
}

/// Puts `tables` between `marks` of the file at `path`.
fn write_between_marks(path: &Path, marks: [&str; 2], tables: &str) -> Result<(), Failure> {
    write(path, &with_marks(path, marks, tables)?)
}

/// The text of the file at `path` with `tables` between `marks`.
fn with_marks(path: &Path, marks: [&str; 2], tables: &str) -> Result<String, Failure> {
    let text =
        std::fs::read_to_string(path).or_fail(Exit::Usage, || format!("cannot read {}", path.display()))?;
    between_marks(&text, marks, tables).ok_or_else(|| {
        let [begin, end] = marks.map(str::trim);
        let problem = format!("{} has no lines {begin} and {end} for the tables", path.display());
        Failure::new(Exit::Usage, problem)
    })
}

/// `text` with `tables` between `marks`, if it has them.
fn between_marks(text: &str, [begin, end]: [&str; 2], tables: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}{tables}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_take_the_place_of_those_before() {
        let marks = ["<!-- x: begin -->\n", "<!-- x: end -->"];
        let [begin, end] = marks;
        let file = format!("# a\n{begin}old\n{end}\nb\n");
        assert_eq!(between_marks(&file, marks, "new\n"), Some(format!("# a\n{begin}new\n{end}\nb\n")));
        assert_eq!(between_marks("nothing", marks, "new"), None);
    }
}
