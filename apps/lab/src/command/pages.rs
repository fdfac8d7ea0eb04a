//! `hvq lab pages`: page loads in virtual time (NSDI 2023, Fig. 3).

use super::page_names::chosen;
use super::{HalfArguments, run_all};
use crate::experiment::pages::{PageOutcome, PageRun, PagesPlan, Scheme, Sizes};
use crate::pages::{Page, THINK_SCALE};
use crate::report::pages as report;
use crate::workload::page_load::{self, Deployment, Manner};
use clap::{Args, ValueEnum};
use hvq_emulation::TraceName;
use hvq_program::arguments::ResultArguments;
use hvq_program::failure::Failure;
use hvq_program::output::{self, Console, check_distinct};
use hvq_transport::congestion::Algorithm;
use std::sync::Arc;
use std::time::Instant;

/// The name of the command in the marks of files for tables.
const NAME: &str = "pages";

/// Arguments of `hvq lab pages`.
#[derive(Debug, Args)]
#[command(mut_arg("half", |half| half.default_value("training")))]
pub struct PagesArguments {
    /// The pages: a number of those compiled in, or names or files of page descriptions, separated by commas
    #[arg(long, value_name = "NUMBER|NAMES", default_value = "10")]
    pages: String,
    /// Ways of using the channels: embb, urllc, ideal, below:NAME for a steerer of packets, or a scheduler
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "embb,ideal,min-rtt,obj-size,below:pkt-state,below:dchannel,hvc"
    )]
    schemes: Vec<Scheme>,
    /// eMBB by these traces: MM-S, MM-W, MM-D, LB-S, LB-W, LB-D
    #[arg(
        long,
        value_name = "TRACES",
        value_delimiter = ',',
        default_value = "MM-S,MM-W,MM-D,LB-S,LB-W,LB-D"
    )]
    trace: Vec<TraceName>,
    /// The place where the browser's connections end, and what they begin with: gateway, cold, resumed, tcp-tls or http1
    #[arg(long, value_name = "PLACE", default_value_t = Deployment::Gateway)]
    deployment: Deployment,
    /// Let servers tell the transport how urgent each response is (RFC 9218)
    #[arg(long)]
    priorities: bool,
    /// The size of pages: as captured, or as in the paper
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = PageSizes::Paper)]
    sizes: PageSizes,
    /// The factor on recorded thinking times of the browser
    #[arg(long, value_name = "NUMBER", default_value_t = THINK_SCALE, value_parser = scale)]
    think: f64,
    /// Background flows that the load does not wait for: 5 KB up, 10 KB down, without end
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=16))]
    background: u32,
    /// Congestion control of every path
    #[arg(long, visible_alias = "cc", value_name = "NAME", default_value_t = Algorithm::Cubic)]
    congestion: Algorithm,
    /// Loads of each page with each scheme, each on another stretch of the trace
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    #[command(flatten)]
    chosen: HalfArguments,
    #[command(flatten)]
    results: ResultArguments,
}

/// The size of pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PageSizes {
    /// The captured sizes
    Captured,
    /// Sizes scaled to the corpus of NSDI 2023
    Paper,
}

fn scale(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=10.0).contains(number));
    number.ok_or_else(|| format!("{text:?} is no factor from 0 to 10"))
}

impl PagesArguments {
    /// Returns this number of pages of the half, or those of these names.
    fn pages(&self) -> Result<Vec<Page>, Failure> {
        let known = self.chosen.half.pages();
        match self.pages.parse() {
            Ok(count) if (1..=known.len()).contains(&count) => Ok(known.into_iter().take(count).collect()),
            _ => chosen(&self.pages),
        }
    }

    fn plan(&self) -> Result<PagesPlan, Failure> {
        let voice = if self.priorities {
            page_load::ApplicationHints::Priorities
        } else {
            page_load::ApplicationHints::Silent
        };
        Ok(PagesPlan {
            pages: self.pages()?.into_iter().map(Arc::new).collect(),
            sizes: match self.sizes {
                PageSizes::Captured => Sizes::Captured,
                PageSizes::Paper => Sizes::Paper,
            },
            manner: Manner {
                deployment: self.deployment,
                voice,
                think_scale: self.think,
                wait_scale: self.chosen.half.wait_scale(),
                size_scale: 1.0,
                background: page_load::Background::Flows(self.background),
                connections: 1,
            },
            traces: self.trace.clone(),
            schemes: self.schemes.clone(),
            congestion: self.congestion,
            repetitions: self.repeat,
            half: self.chosen.half,
            seed: self.chosen.runs.seed,
        })
    }
}

/// Runs everything and prints the tables.
pub fn run(arguments: &PagesArguments, console: Console) -> Result<(), Failure> {
    check_distinct("--schemes", &arguments.schemes)?;
    check_distinct("--trace", &arguments.trace)?;
    let runs = arguments.plan()?.runs();
    arguments.results.check(NAME)?;
    let jobs = arguments.chosen.runs.jobs();
    let start = Instant::now();
    let outcomes = run_all(
        (&runs, jobs),
        console,
        PageRun::outcome,
        |PageOutcome { page, channels, scheme, .. }| format!("{page}, {channels}, {scheme}"),
    )?;
    arguments.results.write_outcomes(&outcomes)?;
    arguments.results.write_tables(NAME, &report::markdown(&outcomes))?;
    output::print(report::markdown(&outcomes).trim_end())?;
    let simulated: f64 = outcomes.iter().filter_map(|outcome| outcome.plt_ms).sum::<f64>() / 1e3;
    let took = start.elapsed().as_secs_f64();
    console.say(format!(
        "{} loads, {simulated:.0} s of virtual time in {took:.0} s ({:.0} × on {jobs} threads)",
        outcomes.len(),
        simulated / took
    ));
    Ok(())
}
