//! `hvq lab run` and `hvq lab list`: experiments described in files.

use super::{jobs, progress, stop_on_signals};
use crate::experiment::campaign::{Record, Scope, Session, Shard, Stop, Store, Tally, merge, read, tasks};
use crate::experiment::definition::Definition;
use crate::experiment::statistics::Results;
use crate::report::experiments::markdown;
use clap::{Args, ValueEnum};
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::output::{self, Console};
use indicatif::ProgressBar;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The folder of results, unless another is named.
pub(super) const RESULTS: &str = "lab-results";

/// Arguments of `hvq lab run`.
#[derive(Debug, Args)]
pub struct ExperimentsArguments {
    /// Experiments: names of those compiled in (hvq lab list), files, goals for those with the goals about channels as they
    /// are, or all
    #[arg(value_name = "NAME|FILE|goals|all", required = true)]
    experiments: Vec<String>,
    /// Repetitions of each run, each on another stretch of a trace (by default as the experiment says)
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: Option<u32>,
    /// Runs at the same time (by default one a processor)
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The folder for results, a file of JSON lines for each experiment; what this build of the program has there is not
    /// run again
    #[arg(long, value_name = "DIR", default_value = RESULTS)]
    out: PathBuf,
    /// A first look: the part that the experiment names, or else two pages and one repetition
    #[arg(long, conflicts_with = "seeds")]
    quick: bool,
    /// One of N equal shares of the runs, such as 3/8: for several machines, whose folders `hvq lab merge` puts together
    #[arg(long, value_name = "I/N", default_value = "1/1")]
    shard: Shard,
    /// The treatment of results that are there already
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = Existing::Keep)]
    existing: Existing,
}

/// The treatment of results that are there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Existing {
    /// They are kept and not run again
    Keep,
    /// All are dropped and run again
    Drop,
}

/// Runs what is missing.
pub fn run(arguments: &ExperimentsArguments, console: Console) -> Result<(), Failure> {
    let scope = match (arguments.quick, arguments.seeds) {
        (true, _) => Scope::Quick,
        (false, Some(repetitions)) => Scope::Repetitions(repetitions),
        (false, None) => Scope::Whole,
    };
    // Errors in any of them come before hours of work on others.
    let definitions = chosen(&arguments.experiments)?;
    let (interruption, stop) = stop_on_signals(console)?;
    for definition in &definitions {
        run_one(definition, scope, arguments, (console, &stop))?;
        interruption.check(&arguments.out)?;
    }
    Ok(())
}

fn run_one(
    definition: &Definition,
    scope: Scope,
    arguments: &ExperimentsArguments,
    (console, stop): (Console, &Stop),
) -> Result<(), Failure> {
    let open = match arguments.existing {
        Existing::Keep => Store::open,
        Existing::Drop => Store::afresh,
    };
    let store = open(definition, &arguments.out).or_fail(Exit::Runtime, || "results".to_owned())?;
    let session = Session::of_shard(definition, (scope, arguments.shard), store);
    let Tally { runs, kept } = session.tally;
    let bar = progress(runs, console);
    bar.inc(kept as u64);
    bar.reset_eta();
    bar.set_prefix(definition.name.clone());
    let (start, jobs) = (Instant::now(), jobs(arguments.jobs));
    let ran = AtomicUsize::new(0);
    let done = |record: &Record| {
        ran.fetch_add(1, Ordering::Relaxed);
        note(&bar, record);
    };
    let records = session.run(jobs, stop, done).or_fail(Exit::Runtime, String::new)?;
    bar.finish_and_clear();
    let failed = records.iter().filter(|record| record.failure.is_some()).count();
    console.say(format!(
        "{}: {} runs in {:.0} s on {jobs} threads, {kept} were there, {failed} failed",
        definition.name,
        ran.into_inner(),
        start.elapsed().as_secs_f64()
    ));
    Ok(())
}

fn note(bar: &ProgressBar, Record { key, .. }: &Record) {
    let cell: Vec<&str> = key.cell.values().map(String::as_str).collect();
    bar.set_message(format!("{} {} {}", cell.join(" "), key.subject, key.scheme));
    bar.inc(1);
}

/// The experiments of these names.
pub(super) fn chosen(wanted: &[String]) -> Result<Vec<Definition>, Failure> {
    Definition::chosen(wanted).or_fail(Exit::Usage, || "experiment".to_owned())
}

/// Arguments of `hvq lab merge`.
#[derive(Debug, Args)]
pub struct MergeArguments {
    /// Experiments: names of those compiled in, files, or all
    #[arg(value_name = "NAME|FILE|goals|all", required = true)]
    experiments: Vec<String>,
    /// Folders with shares of the results
    #[arg(long, value_name = "DIR", required = true, num_args = 1..)]
    from: Vec<PathBuf>,
    /// The folder for all of them
    #[arg(long, value_name = "DIR", default_value = RESULTS)]
    out: PathBuf,
}

/// Puts shares of results together.
pub fn join(arguments: &MergeArguments, console: Console) -> Result<(), Failure> {
    for definition in chosen(&arguments.experiments)? {
        let found = merge(&definition, &arguments.from, &arguments.out);
        let found = found.or_fail(Exit::Runtime, || "results".to_owned())?;
        let (name, runs, all) =
            (&definition.name, found.records.len(), tasks(&definition, Scope::default()).len());
        console.say(format!("{name}: {runs} of {all} runs, {} of another build left out", found.stale));
    }
    Ok(())
}

/// Arguments of `hvq lab show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// Experiments: names of those compiled in, files, or all
    #[arg(value_name = "NAME|FILE|all", required = true)]
    experiments: Vec<String>,
    /// The folder with results
    #[arg(long, value_name = "DIR", default_value = RESULTS)]
    results: PathBuf,
}

/// Prints goals and tables of results as text.
pub fn show(arguments: &ShowArguments, console: Console) -> Result<(), Failure> {
    for definition in chosen(&arguments.experiments)? {
        let found = read(&definition, &arguments.results).or_fail(Exit::Runtime, || "results".to_owned())?;
        if found.records.is_empty() {
            console.say(format!("{}: not run by this build of the program", definition.name));
            continue;
        }
        output::print(markdown(&Results::new(&definition, &found.records)).trim_end())?;
    }
    Ok(())
}

/// Prints what is compiled in.
pub fn list() -> Result<(), Failure> {
    let mut text = String::new();
    for definition in chosen(&["all".to_owned()])? {
        let runs = tasks(&definition, Scope::default()).len();
        let Definition { name, title, source, .. } = definition;
        text.push_str(&format!("{name:24} {runs:6} runs  {title} ({source})\n"));
    }
    output::print(text.trim_end())?;
    Ok(())
}
