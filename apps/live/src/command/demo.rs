//! `hvq demo`: real pages over two emulated channels, with several schedulers, and a report about it.

use crate::demo::{self, DemoOptions, Scheme};
use clap::Args;
use hvq::congestion::Algorithm;
use hvq_emulation::TraceName;
use hvq_lab::command::page_names::chosen;
use hvq_program::failure::{Exit, Failure};
use hvq_program::files::write;
use hvq_program::output::{self, Console, check_distinct, check_writable};
use std::path::PathBuf;

/// Arguments of `hvq demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// The pages: a number of those compiled in, or names or files of page descriptions, separated by commas
    #[arg(long, value_name = "NUMBER|NAMES", default_value = "6")]
    pages: String,
    /// The trace that eMBB follows: MM-S, MM-W, MM-D, LB-S, LB-W or LB-D
    #[arg(long, value_name = "TRACE", default_value = "MM-D")]
    embb: TraceName,
    /// The schemes to compare; single is eMBB alone
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "single,min-rtt,hvc")]
    schemes: Vec<Scheme>,
    /// Loads of each page with each scheme, each on another stretch of the trace
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// The seed of everything random
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// The file for the report
    #[arg(long, value_name = "FILE", default_value = "demo.html")]
    out: PathBuf,
    /// Write everything that was measured to this file too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Congestion control of each path: cubic, bbr, newreno, vegas, copa, vivace (these three
    /// also for radios: vegas-radio …), or coupled lia, olia, balia
    #[arg(long, visible_alias = "cc", value_name = "NAME", default_value_t = Algorithm::Cubic)]
    congestion: Algorithm,
}

/// Loads all pages with all schemes, prints the table and writes the report.
pub async fn run(arguments: Box<DemoArguments>, console: Console) -> Result<(), Failure> {
    let pages = chosen(&arguments.pages)?;
    let schemes: Vec<String> = arguments.schemes.iter().map(|scheme| scheme.label()).collect();
    check_distinct("--schemes", &schemes)?;
    check_writable(&arguments.out)?;
    arguments.json.as_deref().map_or(Ok(()), check_writable)?;
    let options = DemoOptions {
        pages,
        embb: arguments.embb,
        schemes: arguments.schemes.clone(),
        repetitions: arguments.repeat,
        congestion: arguments.congestion,
        seed: arguments.seed,
    };
    let results = demo::run(&options, console).await?;
    write(&arguments.out, &demo::html(&results))?;
    if let Some(path) = &arguments.json {
        write(path, &serde_json::to_string(&results)?)?;
    }
    output::print(&demo::text(&results))?;
    console.say(format!("report: {}", arguments.out.display()));
    match (results.failed(), results.loads()) {
        (0, _) => Ok(()),
        (failed, all) => Err(Failure::new(Exit::Runtime, format!("{failed} of {all} loads failed"))),
    }
}
