//! Loads of recorded pages over two emulated channels in real time, with several schedulers, and a report about them: what
//! `hvq demo` runs.

mod channels;
mod load;
mod page_load;
mod recording;
mod report;
mod results;
mod scheme;
mod stage;
mod summary;

pub use report::html;
pub use results::DemoResults;
pub use scheme::Scheme;
pub use summary::text;

use channels::Channels;
use hvq::congestion::Algorithm;
use hvq_emulation::TraceName;
use hvq_lab::pages::{Page, THINK_SCALE};
use hvq_program::failure::Failure;
use hvq_program::output::Console;
use hvq_program::tls::SelfSigned;
use indicatif::{ProgressBar, ProgressStyle};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use results::{Load, LoadOutcome, PageFacts, Setup};
use std::time::{Duration, Instant};

/// No further repetition is begun if it would probably end later than this after the start.
const BUDGET: Duration = Duration::from_secs(100);

/// The extent of a demo.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// The pages.
    pub pages: Vec<Page>,
    /// The trace that eMBB follows.
    pub embb: TraceName,
    /// The schemes to compare.
    pub schemes: Vec<Scheme>,
    /// Loads of each page with each scheme, each on another stretch of the trace. Fewer are made if they would take longer
    /// than 100 s.
    pub repetitions: u16,
    /// Congestion control of each path.
    pub congestion: Algorithm,
    /// The seed of everything random.
    pub seed: u64,
}

/// The plan that all loads have in common.
#[derive(Debug)]
struct Plan {
    channels: Channels,
    certificate: SelfSigned,
    congestion: Algorithm,
    seed: u64,
}

/// Loads all pages with all schemes.
///
/// # Errors
/// A server, a channel or a client cannot be started. Loads that fail are part of the results.
pub async fn run(options: &DemoOptions, console: Console) -> Result<DemoResults, Failure> {
    let channels = Channels::new(options.embb);
    let certificate = SelfSigned::new(&[stage::HOST.to_owned()])?;
    let plan = Plan { channels, certificate, congestion: options.congestion, seed: options.seed };
    console.say(format!(
        "{} pages, {} schemes, {} repetitions; eMBB {}, URLLC {}",
        options.pages.len(),
        options.schemes.len(),
        options.repetitions,
        plan.channels.embb,
        plan.channels.urllc
    ));
    let loads = load_all(&plan, options, console).await?;
    Ok(results(&plan, options, loads))
}

async fn load_all(plan: &Plan, options: &DemoOptions, console: Console) -> Result<Vec<Load>, Failure> {
    let DemoOptions { pages, schemes, .. } = options;
    let repeat = usize::from(options.repetitions);
    let bar = bar(pages.len() * schemes.len() * repeat, console);
    let mut dice = StdRng::seed_from_u64(options.seed);
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
                    LoadOutcome::LoadedMs(time) => format!("  {} {time:.0} ms", scheme.label()),
                    LoadOutcome::Failed(reason) => format!("  {} failed ({reason})", scheme.label()),
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

fn results(plan: &Plan, options: &DemoOptions, loads: Vec<Load>) -> DemoResults {
    let facts = |page: &Page| {
        let before = page.objects.iter().filter(|object| object.before_onload);
        PageFacts {
            id: page.id.clone(),
            site: page.site.clone(),
            objects: before.clone().count(),
            bytes: before.map(|object| object.size).sum(),
        }
    };
    DemoResults {
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
        pages: options.pages.iter().map(facts).collect(),
        schemes: options.schemes.clone(),
        loads,
    }
}
