//! Runs the tests of hvq against small faults ("mutants").
//!
//! cargo-mutants lists them and compiles one program for each, which takes days for thousands. Here all mutants of a crate
//! become switches in one copy of it, that an environment variable selects; each test is run once to record which it reaches,
//! and each mutant then has to get past those tests alone.

mod attacks;
mod catalogue;
mod choice;
mod modules;
mod report;
mod results;
mod rewrite;
mod run;
mod scratch;
mod suite;
mod triage;

use anyhow::{Context, Result};
use catalogue::{Key, Mutant};
use choice::Choice;
use clap::{Parser, Subcommand};
use modules::{MODULES, Module, PACKAGES, Package};
use results::{Entry, Results};
use scratch::{Dropped, Scratch};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
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
    let (mut results, triage) = (Results::load(root)?, Triage::load(root)?);
    match &command.action {
        Action::Run(choice) => {
            let mut tried = Vec::new();
            for package in &PACKAGES {
                tried.extend(try_package(root, &place, package, choice, (&mut results, &triage))?);
            }
            if choice.json {
                println!("{}", serde_json::to_string_pretty(&tried)?);
            }
            eprintln!("mutants: {} were tried", tried.len());
            tell(root, choice, &results, &triage)
        }
        Action::Report { write } => {
            let keys = all_keys(root)?;
            print!("{}", report::table(&keys, &results, &triage));
            if *write {
                report::write(root, &keys, &results, &triage)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Action::Survivors(choice) => tell(root, choice, &results, &triage),
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

/// Tries the chosen mutants of one crate, and returns what became of them.
fn try_package(
    root: &Path,
    place: &Path,
    package: &Package,
    choice: &Choice,
    (results, triage): (&mut Results, &Triage),
) -> Result<Vec<Entry>> {
    if !MODULES.iter().any(|module| module.package == package.name && choice.names(module)) {
        return Ok(Vec::new());
    }
    let state = place.join(format!("{}.json", package.name));
    let all = catalogue::list(root, package.name)?;
    let sources = sources(root, &all)?;
    let build: Build = if choice.reuse {
        let text = fs::read_to_string(&state).with_context(|| format!("{} was not built", package.name))?;
        serde_json::from_str(&text)?
    } else {
        let wanted = |(index, mutant): &(usize, &Mutant)| choice.wants(mutant, *index, results, triage);
        let chosen: Vec<Mutant> = all.iter().enumerate().filter(wanted).map(|it| it.1.clone()).collect();
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let build = Build::new(root, place, package, choice, (chosen, &sources))?;
        fs::write(&state, serde_json::to_string(&build)?)?;
        build
    };
    let Build { mutants, dropped, suite, sources: built } = build;
    eprintln!("mutants: {} tests pass without a mutant; {:?} do not", suite.tests.len(), suite.failing);
    let indexed = mutants.iter().enumerate();
    let chosen = indexed.filter(|(index, mutant)| choice.wants(mutant, *index, results, triage));
    // The build is not about a file whose code has changed since.
    let is_current = |file: &String| built.get(file).is_some_and(|digest| sources.get(file) == Some(digest));
    let chosen = chosen.filter(|(_, mutant)| is_current(&mutant.key.file));
    let mut chosen: Vec<&Mutant> = chosen.map(|(_, mutant)| mutant).collect();
    chosen.sort_by_key(|mutant| Module::index_of(&mutant.key.file));
    for file in chosen.iter().map(|mutant| &mutant.key.file).collect::<BTreeSet<_>>() {
        let keys = all.iter().map(|mutant| &mutant.key).filter(|key| key.file == *file);
        results.begin(sources[file], keys);
    }
    let mut tried = Vec::new();
    for mutant in &chosen {
        if let Some(outcome) = dropped.outcome(mutant.number) {
            results.put(&mutant.key, outcome);
            tried.push(Entry { key: mutant.key.clone(), outcome, test: None });
        }
    }
    chosen.retain(|mutant| dropped.outcome(mutant.number).is_none());
    tried.extend(run::run(&suite, &chosen, run::Effort::of(choice), (results, root))?);
    Ok(tried)
}

/// The digest of the code of each file with `mutants`.
fn sources(root: &Path, mutants: &[Mutant]) -> Result<BTreeMap<String, u64>> {
    let files: BTreeSet<&String> = mutants.iter().map(|mutant| &mutant.key.file).collect();
    let digest = |file: &String| Ok((file.clone(), results::digest(&fs::read_to_string(root.join(file))?)));
    files.into_iter().map(digest).collect()
}

fn ask_attacks(root: &Path, place: &Path) -> Result<ExitCode> {
    let rows = attacks::rows(&fs::read_to_string(root.join(attacks::FILE))?);
    let (mut unnoticed, mut elsewhere) = (Vec::new(), BTreeSet::new());
    let all: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    for package in &PACKAGES {
        let Ok(text) = fs::read_to_string(place.join(format!("{}.json", package.name))) else { continue };
        let Build { mutants, dropped, suite, .. } = serde_json::from_str(&text)?;
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
    /// The digest of the code of each file.
    sources: BTreeMap<String, u64>,
}

impl Build {
    fn new(
        root: &Path,
        place: &Path,
        package: &Package,
        choice: &Choice,
        (mutants, sources): (Vec<Mutant>, &BTreeMap<String, u64>),
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
        let suite = Suite::record(programs, &place.join("records"), choice)?;
        Ok(Self { mutants, dropped, suite, sources: sources.clone() })
    }
}

/// Says which mutants that `choice` covers survive without a reason; the code is 1 if there are any.
fn tell(root: &Path, choice: &Choice, results: &Results, triage: &Triage) -> Result<ExitCode> {
    let (mut known, mut left) = (0, 0);
    let keys = all_keys(root)?;
    for (_, key) in keys.iter().enumerate().filter(|(index, key)| choice.covers(key, *index)) {
        let Some(outcome) = results.get(key) else { continue };
        known += 1;
        if outcome.survives() && triage.reason(key).is_none() {
            left += 1;
            eprintln!("{}: {} ({outcome:?})\n    {}", key.file, key.mutation, key.line);
        }
    }
    eprintln!("mutants: {left} of {known} that were tried survive without a reason");
    Ok(if left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
