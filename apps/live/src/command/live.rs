//! `hvq lab live`: real programs in real time.

use crate::observer::Observer;
use crate::report::Results;
use crate::tools::Tools;
use crate::web::arm::Arm;
use crate::{load, programs, web};
use clap::{Args, ValueEnum};
use hvq_emulation::ChannelSpec;
use hvq_lab::command::page_names::chosen;
use hvq_lab::command::stop_on_signals;
use hvq_program::arguments::ResultArguments;
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::files::{report_in, write};
use hvq_program::output::{self, Console};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The name of the report in its folder.
const REPORT: &str = "live.html";
/// The name of the command in the marks of files for tables.
const NAME: &str = "live";

/// Arguments of `hvq lab live`.
#[derive(Debug, Args)]
pub struct LiveArguments {
    /// The experiments
    #[arg(value_name = "WHICH", value_enum, default_value = "all")]
    experiments: Vec<Which>,
    #[command(flatten)]
    web: WebArguments,
    #[command(flatten)]
    other: OtherArguments,
    #[command(flatten)]
    tools: ToolArguments,
    /// The folder for the report, live.html
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    #[command(flatten)]
    results: ResultArguments,
}

/// The loads of the browser.
#[derive(Debug, Args)]
struct WebArguments {
    /// The pages: a number of those compiled in, or names or files of page descriptions, separated by commas
    #[arg(long, value_name = "NUMBER|NAMES", default_value = "p05,p12")]
    pages: String,
    /// eMBB for pages, as of hvq run --embb; may be repeated. A trace alone (MM-S, …, LB-D) begins elsewhere in each repetition
    #[arg(long = "channel", value_name = "SPEC", default_values = ["rtt=40ms,rate=60mbit", "LB-D"])]
    channels: Vec<String>,
    /// Ways to pages: embb, mptcp, dchannel, dchannel-bbr, dchannel-reno, gateway-embb, gateway, http3 (by default all)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    arms: Vec<Arm>,
    /// Loads of each page by each way over each channel
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
}

/// The amount of work of programs and load generators.
#[derive(Debug, Args)]
struct OtherArguments {
    /// eMBB for curl, wget, iperf3 and the name lookup, as of hvq run --embb
    #[arg(long, value_name = "SPEC", default_value = "embb")]
    embb: String,
    /// The duration of iperf3's runs, in seconds
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=3600))]
    bulk: u32,
    /// Rounds of h2load, in each of which every server has its turn
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Requests of a round for 1 KiB
    #[arg(long, value_name = "NUMBER", default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(50..))]
    requests: u32,
    /// Requests of a round for 10 MiB
    #[arg(long, value_name = "NUMBER", default_value_t = 80, value_parser = clap::value_parser!(u32).range(4..))]
    downloads: u32,
    /// Requests of 1 KiB that endurance asks one gateway for
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    total: u64,
}

/// Programs that are used.
#[derive(Debug, Args)]
struct ToolArguments {
    /// Nginx with HTTP/2 and HTTP/3 (scripts/nginx.sh compiles one)
    #[arg(long, value_name = "FILE", default_value = "nginx", env = "HVQ_NGINX")]
    nginx: PathBuf,
    /// h2load with HTTP/3 (scripts/h2load.sh compiles one)
    #[arg(long, value_name = "FILE", default_value = "h2load", env = "HVQ_H2LOAD")]
    h2load: PathBuf,
    /// Chromium
    #[arg(long, value_name = "FILE", default_value = "chromium", env = "HVQ_CHROMIUM")]
    chromium: PathBuf,
}

/// An experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Which {
    /// Pages in Chromium, from Nginx, over TCP, MPTCP, DChannel's steerer, hvq proxy with hvq gateway, and HTTP/3
    Web,
    /// h2load with HTTP/3 against hvq gateway and against Nginx
    Load,
    /// curl, wget, iperf3 and a name lookup in hvq run: what rides which channel
    Programs,
    /// h2load against one hvq gateway, ten million requests (--total): whether any fails, and whether the gateway grows
    Endurance,
    /// All of them but endurance
    All,
}

/// Runs what is asked for, prints the tables and writes the report.
pub fn run(arguments: &LiveArguments, console: Console) -> Result<(), Failure> {
    let tools = Tools {
        hvq: std::env::current_exe()?,
        nginx: arguments.tools.nginx.clone(),
        h2load: arguments.tools.h2load.clone(),
        chromium: arguments.tools.chromium.clone(),
    };
    let plan = arguments.plan()?;
    arguments.results.check(NAME)?;
    let page = report_in(&arguments.out, REPORT)?;
    let start = Instant::now();
    let (interruption, stop) = stop_on_signals(console)?;
    let say = |line: &str| console.say(format!("live: {line}"));
    let observer = Observer { say: &say, stop: &stop };
    let wanted = |which| arguments.experiments.iter().any(|asked| [which, Which::All].contains(asked));
    let mut results = Results::default();
    if wanted(Which::Programs) {
        let plan =
            programs::ProgramsPlan { embb: arguments.other.embb.clone(), bulk_seconds: arguments.other.bulk };
        results.programs = results.or_skipped("programs", programs::run(&tools, &plan, observer));
    }
    if wanted(Which::Load) {
        let OtherArguments { rounds, requests, downloads, .. } = arguments.other;
        let plan = load::LoadPlan { rounds, small_requests: requests, large_requests: downloads };
        results.load = results.or_skipped("load", load::run(&tools, &plan, observer));
    }
    if arguments.experiments.contains(&Which::Endurance) {
        let turns = load::endurance::run(&tools, arguments.other.total, observer);
        results.endurance = results.or_skipped("endurance", turns);
    }
    if wanted(Which::Web) {
        results.skipped.extend(web::possible(&arguments.arms()).1);
        results.web = results.or_skipped("web", web::run(&tools, &plan, observer));
        if !results.web.is_empty() && interruption.exit().is_none() {
            results.expected = web::expected(&plan).or_fail(Exit::Usage, || "virtual time".to_owned())?;
        }
    }
    keep(arguments, &page, &results)?;
    console.say(format!("live: {:.0} s", start.elapsed().as_secs_f64()));
    match interruption.exit() {
        None => Ok(()),
        Some(exit) => Err(Failure::new(exit, "ended by a signal: what was measured by then is above")),
    }
}

impl LiveArguments {
    fn arms(&self) -> Vec<Arm> {
        if self.web.arms.is_empty() { Arm::ALL.to_vec() } else { self.web.arms.clone() }
    }

    /// Returns the browser's plan, once every channel is known to be one.
    fn plan(&self) -> Result<web::WebPlan, Failure> {
        for (flag, text) in
            self.web.channels.iter().map(|text| ("--channel", text)).chain([("--embb", &self.other.embb)])
        {
            let read = text.parse::<ChannelSpec>();
            read.or_fail(Exit::Usage, || format!("{flag} {text}"))?;
        }
        Ok(web::WebPlan {
            pages: chosen(&self.web.pages)?.into_iter().map(Arc::new).collect(),
            channels: self.web.channels.clone(),
            arms: web::possible(&self.arms()).0,
            repetitions: self.web.repetitions,
        })
    }
}

/// Writes what was measured to where it is wanted.
fn keep(arguments: &LiveArguments, page: &Path, results: &Results) -> Result<(), Failure> {
    let tables = results.markdown();
    write(page, &results.html())?;
    arguments.results.write_outcomes(&results.lines()?)?;
    arguments.results.write_tables(NAME, &tables)?;
    output::print(tables.trim_end())
}
