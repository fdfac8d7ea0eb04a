//! The 22 cases of the QUIC interop runner, rebuilt over a relay of our own: no containers, no simulator, no privileges.
//!
//! Client and server are processes that follow the runner's contract (`ROLE`, `TESTCASE`, `REQUESTS`, `SSLKEYLOGFILE`,
//! `QLOGDIR`, exit code 127 for cases that they do not know), with `WWW`, `DOWNLOADS`, `CERTS`, `LISTEN` and
//! `PREFERRED_ADDRESS` in place of fixed folders and ports. Files are compared byte by byte, and what the runner looks
//! for in its captures is looked for in the datagrams that the relay carried.

mod aioquic;
mod case;
mod check;
mod network;
mod play;
mod program;
mod report;
mod stage;
mod trace;

use aioquic::Cast;
use anyhow::{Context, Result, bail};
use case::{CASES, Case};
use clap::Parser;
use program::{Program, Sockets};
use report::Entry;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The cases of the QUIC interop runner, without containers
#[derive(Debug, Parser)]
#[command(name = "hvq-runner", version)]
struct Arguments {
    /// An implementation: its name, and the words of the command that starts it, with commas between; may be repeated
    #[arg(long, value_name = "NAME=PROGRAM[,ARGUMENT]…", required = true)]
    program: Vec<String>,
    /// A program whose server has one socket for all of its addresses; may be repeated
    #[arg(long, value_name = "NAME")]
    one_socket: Vec<String>,
    /// Play between this client and this server; may be repeated (by default every program with the first, both ways)
    #[arg(long, value_name = "CLIENT:SERVER")]
    pair: Vec<String>,
    /// Play only this case, by its name or letter; may be repeated
    #[arg(long, value_name = "CASE")]
    only: Vec<String>,
    /// The number of cases that are played at a time
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    jobs: usize,
    /// The seed of the network's dice
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    checks: Checks,
    #[command(flatten)]
    output: Output,
}

/// The checks of aioquic.
#[derive(Debug, clap::Args)]
struct Checks {
    /// Make aioquic's checks with this Python, instead of the cases
    #[arg(long, value_name = "FILE", requires = "hvq")]
    aioquic_checks: Option<PathBuf>,
    /// The hvq command that is checked, beside the first of the programs
    #[arg(long, value_name = "FILE")]
    hvq: Option<PathBuf>,
}

/// The form of the result.
#[derive(Debug, clap::Args)]
struct Output {
    /// Print the result as JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Put the table into this file too, between the marks that it has for it
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Keep captures, key logs, qlog files and what was said in a folder of each case, in this one
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let programs = arguments.program.iter().map(|text| program(text, &arguments.one_socket));
    let programs = programs.collect::<Result<Vec<_>>>()?;
    if let Some(cast) = cast(&arguments.checks, &programs) {
        return check(&cast, &arguments.output);
    }
    let pairs = pairs(&arguments.pair, &programs)?;
    let cases = cases(&arguments.only)?;
    let find = |name: &String| programs.iter().find(|program| program.name == *name);
    let mut work: Vec<(usize, &'static Case, [&Program; 2])> = Vec::new();
    for [client, server] in &pairs {
        let both = find(client).zip(find(server)).context("a pair of programs that are not there")?;
        for case in &cases {
            work.push((work.len(), case, [both.0, both.1]));
        }
    }
    let entries = play_all(work, &arguments);
    let table = report::table(&entries, &pairs);
    if arguments.output.json {
        println!("{}", serde_json::to_string_pretty(&entries)?);
    } else {
        print!("{table}");
    }
    if let Some(file) = &arguments.output.write {
        let text = std::fs::read_to_string(file)?;
        std::fs::write(file, report::with_table(&text, "runner", &table)?)?;
    }
    let failed = entries.iter().any(|entry| entry.result == "failed");
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the programs that take part in aioquic's checks, if they are asked for.
fn cast(checks: &Checks, programs: &[Program]) -> Option<Cast> {
    let endpoint = programs.first()?.command.first()?.clone();
    let python = checks.aioquic_checks.clone()?.into();
    Some(Cast { python, hvq: checks.hvq.clone()?.into(), endpoint })
}

/// Makes aioquic's checks.
fn check(cast: &Cast, output: &Output) -> Result<ExitCode> {
    let checks = aioquic::check(cast)?;
    let table = aioquic::table(&checks);
    if output.json {
        println!("{}", serde_json::to_string_pretty(&checks)?);
    } else {
        print!("{table}");
    }
    if let Some(file) = &output.write {
        let text = std::fs::read_to_string(file)?;
        std::fs::write(file, report::with_table(&text, "aioquic", &table)?)?;
    }
    let passed = checks.iter().all(aioquic::Checked::passed);
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays all of `work`, several cases at a time.
fn play_all(work: Vec<(usize, &'static Case, [&Program; 2])>, arguments: &Arguments) -> Vec<Entry> {
    let total = work.len();
    let (queue, entries) = (Mutex::new(work.into_iter()), Mutex::new(Vec::new()));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let one = || {
        while let Some((index, case, programs)) = next() {
            let started = Instant::now();
            let verdict = play::play(case, programs, arguments.seed, arguments.output.keep.as_deref());
            let names = programs.map(|program| program.name.as_str());
            let entry = Entry::new(case.name, names, verdict, started.elapsed().as_secs_f64());
            eprintln!(
                "runner {}/{total}: {}, {} → {}: {}",
                index + 1,
                case.name,
                entry.client,
                entry.server,
                entry.reason.as_deref().unwrap_or(entry.result)
            );
            entries.lock().unwrap_or_else(PoisonError::into_inner).push((index, entry));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.clamp(1, total.max(1)) {
            scope.spawn(one);
        }
    });
    let mut entries = entries.into_inner().unwrap_or_else(PoisonError::into_inner);
    entries.sort_by_key(|(index, _)| *index);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// A program from `NAME=PROGRAM,ARGUMENT`.
fn program(text: &str, one_socket: &[String]) -> Result<Program> {
    let (name, command) = text.split_once('=').with_context(|| format!("--program {text}: NAME=PROGRAM"))?;
    let sockets = if one_socket.iter().any(|one| one == name) { Sockets::One } else { Sockets::Each };
    let command = command.split(',').map(OsString::from).collect();
    Ok(Program { name: name.to_owned(), command, sockets })
}

/// The pairs that are named, or the first program with itself and with each other one, both ways.
fn pairs(named: &[String], programs: &[Program]) -> Result<Vec<[String; 2]>> {
    if !named.is_empty() {
        let pair = |text: &String| {
            let (client, server) =
                text.split_once(':').with_context(|| format!("--pair {text}: CLIENT:SERVER"))?;
            Ok([client.to_owned(), server.to_owned()])
        };
        return named.iter().map(pair).collect();
    }
    let (first, others) = programs.split_first().context("there are no programs")?;
    let mut pairs = vec![[first.name.clone(), first.name.clone()]];
    for other in others {
        pairs.push([first.name.clone(), other.name.clone()]);
        pairs.push([other.name.clone(), first.name.clone()]);
    }
    Ok(pairs)
}

/// The cases that are named, or all.
fn cases(named: &[String]) -> Result<Vec<&'static Case>> {
    let known = |name: &String| CASES.iter().any(|case| case.name == *name || case.letter == *name);
    if let Some(unknown) = named.iter().find(|name| !known(name)) {
        let names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        bail!("there is no case {unknown}; there are {}", names.join(", "));
    }
    let wanted = |case: &&Case| {
        named.is_empty() || named.iter().any(|name| *name == case.name || *name == case.letter)
    };
    Ok(CASES.iter().filter(wanted).collect())
}
