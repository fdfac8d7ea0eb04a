//! Runs the tests of hvq against small faults ("mutants").
//!
//! cargo-mutants lists them and compiles one program for each, which takes days for thousands. Here all mutants of a crate
//! become switches in one copy of it, that an environment variable selects; each test is run once to record which it reaches,
//! and each mutant then has to get past those tests alone.

mod attacks;
mod catalogue;
mod modules;
mod report;
mod results;
mod rewrite;
mod run;
mod scratch;
mod suite;
mod triage;

use anyhow::{Context, Result, ensure};
use catalogue::{Key, Mutant};
use clap::{Args, Parser, Subcommand};
use modules::{Module, PACKAGES, Package};
use results::{Entry, Results};
use scratch::{Dropped, Scratch};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use suite::Suite;
use triage::Triage;

#[derive(Parser)]
#[command(about)]
struct Command {
    #[command(subcommand)]
    action: Action,
    /// The folder for copies, builds and results.
    #[arg(long, global = true, default_value = "mutants/target/mutants")]
    place: PathBuf,
}

#[derive(Subcommand)]
enum Action {
    /// Tries mutants, and says which no test notices; exit code 1 if one has no reason in mutants/triage.toml.
    Run(Choice),
    /// Prints the table of all results so far.
    Report {
        /// Writes it to docs/results and a line to README.md.
        #[arg(long)]
        write: bool,
    },
    /// Lists survivors without a reason.
    Survivors(Choice),
    /// Asks the tests of each row of tests/ATTACKS.md about the checks that it names, with the last builds; exit code 1 if
    /// none of its own tests notices a fault of them.
    Attacks,
    /// Holds mutants/triage.toml against the mutants that there are.
    Check,
}

#[derive(Args)]
struct Choice {
    /// Modules: wire, crypto, path, …; all unless named.
    #[arg(long, value_delimiter = ',')]
    module: Vec<String>,
    /// Parts of the names of files.
    #[arg(long, value_delimiter = ',')]
    file: Vec<String>,
    /// One part of several of the mutants, as in 1/4.
    #[arg(long, value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// Tries what was not tried before, and nothing else.
    #[arg(long)]
    untried: bool,
    /// Takes the last build of each crate and what was recorded of its tests, whatever has changed since.
    #[arg(long)]
    reuse: bool,
    /// Tries again what survived before, and nothing else.
    #[arg(long)]
    only_survivors: bool,
    /// Processes at a time.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Seconds that the tests of a mutant may take, as measured without one.
    #[arg(long, default_value_t = 60)]
    budget: u64,
    /// Asks the tests of other crates, too.
    #[arg(long)]
    deep: bool,
    /// Prints what became of each mutant as JSON.
    #[arg(long)]
    json: bool,
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(part, all)| Some((part.parse().ok()?, all.parse().ok()?)));
    parts.filter(|(part, all)| (1..=*all).contains(part)).ok_or_else(|| "not as in 1/4".into())
}

impl Choice {
    /// Returns whether a mutant is to be tried.
    fn wants(&self, mutant: &Mutant, index: usize, results: &Results, triage: &Triage) -> bool {
        let key = &mutant.key;
        let Some(module) = Module::of(&key.file) else { return false };
        let named = self.module.is_empty() || self.module.iter().any(|name| name == module.name);
        let in_file = self.file.is_empty() || self.file.iter().any(|part| key.file.contains(part.as_str()));
        let in_shard = self.shard.is_none_or(|(part, all)| index % all == part - 1);
        let survived = || results.0.get(key).is_some_and(|entry| entry.outcome.survives());
        let again = !self.only_survivors || survived() && triage.reason(key).is_none();
        let fresh = !self.untried || !results.0.contains_key(key);
        named && in_file && in_shard && again && fresh
    }
}

fn main() -> ExitCode {
    match perform(&Command::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("mutants: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn perform(command: &Command) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the repository is around it")?;
    let place = root.join(&command.place);
    std::fs::create_dir_all(&place)?;
    let file = place.join("results.json");
    let (mut results, triage) = (Results::load(&file)?, Triage::load(root)?);
    match &command.action {
        Action::Run(choice) => {
            let mut tried = Vec::new();
            for package in &PACKAGES {
                tried.extend(try_package(root, &place, package, choice, (&mut results, &triage))?);
            }
            ensure!(!tried.is_empty(), "no mutant is chosen");
            if choice.json {
                let entries: Vec<_> = tried.iter().filter_map(|key| results.0.get(key)).collect();
                println!("{}", serde_json::to_string_pretty(&entries)?);
            }
            Ok(tell(&tried, &results, &triage))
        }
        Action::Report { write } => {
            let keys = all_keys(root)?;
            print!("{}", report::table(&keys, &results, &triage));
            if *write {
                report::write(root, &keys, &results, &triage)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Action::Survivors(choice) => {
            let mutants = PACKAGES.iter().map(|package| catalogue::list(root, package.name));
            let mutants: Vec<Mutant> = mutants.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
            let chosen = mutants.iter().enumerate();
            let chosen = chosen.filter(|(index, mutant)| choice.wants(mutant, *index, &results, &triage));
            let keys: Vec<Key> = chosen.map(|(_, mutant)| mutant.key.clone()).collect();
            Ok(tell(&keys, &results, &triage))
        }
        Action::Attacks => ask_attacks(root, &place),
        Action::Check => {
            let stale = triage.stale(&all_keys(root)?, &results);
            stale.iter().for_each(|finding| println!("{finding}"));
            Ok(if stale.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

fn all_keys(root: &Path) -> Result<Vec<Key>> {
    let lists = PACKAGES.iter().map(|package| catalogue::list(root, package.name));
    let mutants = lists.collect::<Result<Vec<_>>>()?;
    Ok(mutants.into_iter().flatten().map(|mutant| mutant.key).collect())
}

/// Tries the chosen mutants of one crate; which they were.
fn try_package(
    root: &Path,
    place: &Path,
    package: &Package,
    choice: &Choice,
    (results, triage): (&mut Results, &Triage),
) -> Result<Vec<Key>> {
    let named =
        |module: &Module| choice.module.is_empty() || choice.module.iter().any(|name| name == module.name);
    if !modules::MODULES.iter().any(|module| module.package == package.name && named(module)) {
        return Ok(Vec::new());
    }
    let state = place.join(format!("{}.json", package.name));
    let build = if choice.reuse {
        let text = fs::read_to_string(&state).with_context(|| format!("{} was not built", package.name))?;
        serde_json::from_str(&text)?
    } else {
        let all = catalogue::list(root, package.name)?.into_iter().enumerate();
        let chosen: Vec<Mutant> = all
            .filter(|(index, mutant)| choice.wants(mutant, *index, results, triage))
            .map(|(_, mutant)| mutant)
            .collect();
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let build = Build::new(root, place, package, choice, chosen)?;
        fs::write(&state, serde_json::to_string(&build)?)?;
        build
    };
    let Build { mutants, dropped, suite } = build;
    eprintln!("mutants: {} tests pass without a mutant; {:?} do not", suite.tests.len(), suite.failing);
    let indexed = mutants.iter().enumerate();
    let chosen = indexed.filter(|(index, mutant)| choice.wants(mutant, *index, results, triage));
    let mut chosen: Vec<&Mutant> = chosen.map(|(_, mutant)| mutant).collect();
    chosen.sort_by_key(|mutant| Module::index_of(&mutant.key.file));
    let tried = chosen.iter().map(|mutant| mutant.key.clone()).collect();
    for mutant in &chosen {
        if let Some(outcome) = dropped.outcome(mutant.number) {
            results.put(Entry { key: mutant.key.clone(), outcome, test: None });
        }
    }
    chosen.retain(|mutant| dropped.outcome(mutant.number).is_none());
    let effort = run::Effort { jobs: choice.jobs, budget: Duration::from_secs(choice.budget) };
    run::run(&suite, &chosen, effort, (results, &place.join("results.json")))?;
    Ok(tried)
}

fn ask_attacks(root: &Path, place: &Path) -> Result<ExitCode> {
    let rows = attacks::rows(&fs::read_to_string(root.join(attacks::FILE))?);
    let (mut unnoticed, mut elsewhere) = (Vec::new(), BTreeSet::new());
    let all: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    for package in &PACKAGES {
        let Ok(text) = fs::read_to_string(place.join(format!("{}.json", package.name))) else { continue };
        let Build { mutants, dropped, suite } = serde_json::from_str(&text)?;
        let active: Vec<&Mutant> =
            mutants.iter().filter(|mutant| dropped.outcome(mutant.number).is_none()).collect();
        for row in &rows {
            match attacks::ask(row, &suite, &active)? {
                attacks::Finding::Noticed => {}
                attacks::Finding::Unnoticed(asked) => unnoticed.push((row.id.as_str(), asked)),
                attacks::Finding::Elsewhere => drop(elsewhere.insert((package.name, row.id.as_str()))),
            }
        }
    }
    let tried =
        PACKAGES.iter().filter(|package| place.join(format!("{}.json", package.name)).exists()).count();
    let outside = |id: &&&str| elsewhere.iter().filter(|(_, row)| row == *id).count() == tried;
    println!("{} rows name a check; of {} it is in no build", all.len(), all.iter().filter(outside).count());
    unnoticed
        .iter()
        .for_each(|(id, asked)| println!("{id}: none of {asked} faults is noticed by its own tests"));
    Ok(if unnoticed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A crate with switches, and its tests.
#[derive(Serialize, Deserialize)]
struct Build {
    mutants: Vec<Mutant>,
    dropped: Dropped,
    suite: Suite,
}

impl Build {
    fn new(
        root: &Path,
        place: &Path,
        package: &Package,
        choice: &Choice,
        mutants: Vec<Mutant>,
    ) -> Result<Self> {
        eprintln!("mutants: {}: {} mutants", package.name, mutants.len());
        let scratch = Scratch::new(root, place)?;
        let mut selections = vec![package.tests];
        if choice.deep && !package.others.is_empty() {
            selections.push(package.others);
        }
        let checks: Vec<_> =
            selections.iter().map(|tests| [&["check", "--profile", "test"], *tests].concat()).collect();
        let dropped = scratch.switch(package.folder, &mutants, &checks)?;
        let mut programs = Vec::new();
        for tests in selections {
            programs.extend(scratch.programs(tests)?);
        }
        let suite = Suite::record(programs, &place.join("records"), choice.jobs)?;
        Ok(Self { mutants, dropped, suite })
    }
}

/// Says which of `keys` survive without a reason; whether there are any.
fn tell(keys: &[Key], results: &Results, triage: &Triage) -> ExitCode {
    let mut left = 0;
    for key in keys {
        let Some(entry) = results.0.get(key) else { continue };
        if entry.outcome.survives() && triage.reason(key).is_none() {
            left += 1;
            eprintln!("{}: {} ({:?})\n    {}", key.file, key.mutation, entry.outcome, key.line);
        }
    }
    eprintln!("mutants: {left} of {} survive without a reason", keys.len());
    if left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
