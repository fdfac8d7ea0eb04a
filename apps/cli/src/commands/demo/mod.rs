//! `hvq demo`: real pages over two emulated channels, with several schedulers, and a report about it.

mod channels;
mod load;
mod page_load;
mod recording;
mod report;
mod results;
mod scheme;
mod stage;
mod summary;

use crate::failure::{Exit, Failure, OrFail};
use crate::output::{self, Console, check_distinct, check_writable};
use crate::server::chosen;
use crate::tls::SelfSigned;
use channels::Channels;
use clap::Args;
use hvq::transport::congestion::Algorithm;
use hvq_emulation::TraceName;
use hvq_lab::pages::{Page, THINK_SCALE};
use indicatif::{ProgressBar, ProgressStyle};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use results::{Load, Outcome, PageFacts, Results, Setup};
use scheme::Scheme;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// No further repetition is begun if it would probably end later than this after the start.
const BUDGET: Duration = Duration::from_secs(100);

/// Arguments of `hvq demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
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
    /// Congestion control of each path: cubic, bbr, newreno, vegas, copa, vivace, or coupled lia, olia, balia
    #[arg(long, visible_alias = "cc", value_name = "NAME", default_value_t = Algorithm::Cubic)]
    congestion: Algorithm,
}

/// The plan that all loads have in common.
#[derive(Debug)]
struct Plan {
    channels: Channels,
    certificate: SelfSigned,
    congestion: Algorithm,
    seed: u64,
}

/// Loads all pages with all schemes, prints the table and writes the report.
pub(crate) async fn run(arguments: Box<DemoArguments>, console: Console) -> Result<(), Failure> {
    let pages = chosen(&arguments.pages)?;
    let schemes: Vec<String> = arguments.schemes.iter().map(|scheme| scheme.label()).collect();
    check_distinct("--schemes", &schemes)?;
    check_writable(&arguments.out)?;
    arguments.json.as_deref().map_or(Ok(()), check_writable)?;
    let channels = Channels::new(arguments.embb);
    let certificate = SelfSigned::new(&[stage::HOST.to_owned()])?;
    let plan = Plan { channels, certificate, congestion: arguments.congestion, seed: arguments.seed };
    console.say(format!(
        "{} pages, {} schemes, {} repetitions; eMBB {}, URLLC {}",
        pages.len(),
        arguments.schemes.len(),
        arguments.repeat,
        plan.channels.embb,
        plan.channels.urllc
    ));
    let loads = load_all(&plan, &pages, &arguments, console).await?;
    let results = results(&plan, &pages, &arguments, loads);
    write(&arguments.out, &report::html(&results))?;
    if let Some(path) = &arguments.json {
        write(path, &serde_json::to_string(&results)?)?;
    }
    output::print(&summary::text(&results))?;
    console.say(format!("report: {}", arguments.out.display()));
    let failed = results.loads.iter().filter(|load| load.load_time().is_none()).count();
    match failed {
        0 => Ok(()),
        failed => {
            Err(Failure::new(Exit::Runtime, format!("{failed} of {} loads failed", results.loads.len())))
        }
    }
}

async fn load_all(
    plan: &Plan,
    pages: &[Page],
    arguments: &DemoArguments,
    console: Console,
) -> Result<Vec<Load>, Failure> {
    let (schemes, repeat) = (&arguments.schemes, usize::from(arguments.repeat));
    let bar = bar(pages.len() * schemes.len() * repeat, console);
    let mut dice = StdRng::seed_from_u64(arguments.seed);
    let mut loads = Vec::new();
    let start = Instant::now();
    for repetition in 1..=repeat {
        let expected = start.elapsed() * repetition as u32 / (repetition as u32 - 1).max(1);
        if repetition > 1 && expected > BUDGET {
            console.say(format!("stopping after {} repetitions: more would take too long", repetition - 1));
            break;
        }
        for page in pages {
            // The same stretch of the trace for every scheme (NSDI 2023 §4.2: paired runs).
            let offset =
                Duration::from_millis(dice.random_range(0..plan.channels.trace_length().as_millis() as u64));
            let mut said = format!("{:<5} {:<30.30} #{repetition}", page.id, page.site);
            for scheme in schemes {
                bar.set_message(format!("{} with {}", page.id, scheme.label()));
                let load = load::load(plan, page, *scheme, load::Moment { repetition, offset }).await?;
                said.push_str(&match &load.outcome {
                    Outcome::LoadedMs(time) => format!("  {} {time:.0} ms", scheme.label()),
                    Outcome::Failed(reason) => format!("  {} failed ({reason})", scheme.label()),
                });
                loads.push(load);
                bar.inc(1);
            }
            if bar.is_hidden() { console.say(said) } else { bar.println(said) }
        }
    }
    bar.finish_and_clear();
    Ok(loads)
}

fn bar(loads: usize, console: Console) -> ProgressBar {
    if console == Console::Quiet {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {elapsed} {msg}");
    let bar = ProgressBar::new(loads as u64).with_style(style.expect("the template is constant and valid"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn results(plan: &Plan, pages: &[Page], arguments: &DemoArguments, loads: Vec<Load>) -> Results {
    let facts = |page: &Page| {
        let before = page.objects.iter().filter(|object| object.before_onload);
        PageFacts {
            id: page.id.clone(),
            site: page.site.clone(),
            objects: before.clone().count(),
            bytes: before.map(|object| object.size).sum(),
        }
    };
    Results {
        version: env!("CARGO_PKG_VERSION"),
        setup: Setup {
            trace: plan.channels.trace.to_string(),
            embb: plan.channels.embb.to_string(),
            urllc: plan.channels.urllc.to_string(),
            embb_hints: channels::describe(plan.channels.embb_hints(hvq_emulation::Direction::Down)),
            urllc_hints: channels::describe(plan.channels.urllc_hints()),
            congestion: plan.congestion.to_string(),
            think_scale: THINK_SCALE,
            seed: plan.seed,
            repetitions: loads.iter().map(|load| load.repetition).max().unwrap_or_default(),
        },
        pages: pages.iter().map(facts).collect(),
        schemes: arguments.schemes.clone(),
        loads,
    }
}

fn write(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).or_fail(Exit::Runtime, || format!("cannot write {}", path.display()))
}
