//! `hvq lab report`: a page of HTML about the results of experiments.

use super::experiments::{RESULTS, chosen};
use crate::experiment::campaign::{Found, Record, read};
use crate::experiment::definition::Definition;
use crate::experiment::statistics::Results;
use crate::report::experiments::html;
use clap::Args;
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::output::{Console, check_writable};
use std::path::PathBuf;

/// Arguments of `hvq lab report`.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Experiments: names of those compiled in, or files (by default all that are compiled in)
    #[arg(value_name = "NAME|FILE|all", default_value = "all")]
    experiments: Vec<String>,
    /// The folder with results
    #[arg(long, value_name = "DIR", default_value = RESULTS)]
    results: PathBuf,
    /// The report
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
}

/// Writes the report.
pub fn run(arguments: &ReportArguments, console: Console) -> Result<(), Failure> {
    check_writable(&arguments.out)?;
    let mut found: Vec<(Definition, Vec<Record>)> = Vec::new();
    let (mut missing, mut left_out) = (Vec::new(), 0);
    for definition in chosen(&arguments.experiments)? {
        let read = read(&definition, &arguments.results);
        let Found { records, stale } = read.or_fail(Exit::Runtime, || "results".to_owned())?;
        left_out += stale;
        if records.is_empty() {
            missing.push(definition.name);
        } else {
            found.push((definition, records));
        }
    }
    if found.is_empty() {
        let text = format!(
            "there are no results in {}: `hvq lab run all` makes them ({left_out} of another build of the program, or of \
             another form of an experiment, do not count)",
            arguments.results.display()
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    let experiments: Vec<Results<'_>> =
        found.iter().map(|(definition, records)| Results::new(definition, records)).collect();
    hvq_program::files::write(&arguments.out, &html(&experiments, &missing))?;
    console.say(format!("report: {}", arguments.out.display()));
    if left_out > 0 {
        let why = "of another build of the program or another form of an experiment";
        console.say(format!("left out: {left_out} results {why}"));
    }
    if !missing.is_empty() {
        console.say(format!("not run: {}", missing.join(", ")));
    }
    Ok(())
}
