//! Throughput, CPU time, handshakes, requests, memory and scheduling cost of hvq, compared with quinn, noq, quiche and
//! s2n-quic in one run.

mod aead;
mod contender;
mod decisions;
mod effort;
mod figures;
mod instructions;
mod machine;
mod meter;
mod pipe;
mod report;
mod sockets;
mod spread;
mod worker;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};
use contender::{Contender, Material, Side, Task};
use effort::Effort;
use figures::{Figure, of_count, of_pipe};
use instructions::{Count, Workload};
use machine::Machine;
use report::{Report, Row};
use sockets::Sample;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// The first argument of the processes that the benchmark starts; the second is their task.
const WORK: &str = "work";

/// UDP payload of full datagrams in bytes where there is no network, and where little is transferred.
const PIPE_DATAGRAM: u16 = 1350;

/// The cores of the server and of the client.
const CORES: [usize; 2] = [0, 1];

/// Compares hvq with quinn, noq, quiche and s2n-quic over loopback and in memory, and measures what a scheduling
/// decision and packet protection cost.
///
/// Over sockets, server and client are processes of their own, each kept on a core of its own, whose CPU time the system
/// counts. In the pipe both ends are in one thread with nothing between them. Contenders take turns in every round, so
/// that what else the machine does hits all of them. All use AES-128-GCM, CUBIC, X25519 and a certificate with a P-256 key,
/// and one thread for each side. Progress goes to standard error.
#[derive(Parser, Debug)]
#[command(name = "hvq-bench", version)]
struct Arguments {
    /// A smoke test of about a minute: one datagram size, 2 rounds of little
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
    /// MiB of a transfer [default: 512]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    size: Option<u64>,
    /// Rounds in which each contender has its turn [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// UDP payload of full datagrams in bytes, several times for several sizes [default: 1200, 1350 and 1452]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1200..=1472))]
    datagram: Vec<u16>,
    /// Contenders that take part; the option can be repeated [default: all]
    #[arg(long, value_enum)]
    contender: Vec<Contender>,
    /// Measure only this, several times for several [default: all]
    #[arg(long, value_enum)]
    only: Vec<Part>,
}

/// The form of the result.
#[derive(clap::Args, Debug)]
struct Output {
    /// Write JSON, with every single figure, instead of a table
    #[arg(long)]
    json: bool,
    /// Also put the table between the marks of this file, which is Markdown
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// A part of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Part {
    /// Transfers over loopback.
    Bulk,
    /// Transfers over loopback from the client to the server.
    Upload,
    /// Transfers over one emulated channel, over two, and over two of unequal rates.
    Channels,
    /// CPU time of transfers, both ends in one thread, without sockets.
    Pipe,
    /// Instructions for a datagram, a request and a handshake there, counted by callgrind.
    Instructions,
    /// CPU time of handshakes there.
    PipeHandshakes,
    /// Handshakes over loopback.
    Handshakes,
    /// CPU time of small requests there.
    PipeRequests,
    /// Small requests over loopback: 1, 100 and 400 at a time.
    Requests,
    /// Transfers on many connections at the same time.
    Many,
    /// Memory of idle connections.
    Memory,
    /// Scheduling decisions.
    Decisions,
    /// Packet protection by BoringSSL, the default, and by `ring`, without a connection around it.
    Aead,
}

impl Arguments {
    fn wants(&self, part: Part) -> bool {
        match self.only.as_slice() {
            [] => !(self.quick && part == Part::Instructions),
            some => some.contains(&part),
        }
    }

    fn contenders(&self) -> Vec<Contender> {
        if self.contender.is_empty() { Contender::ALL.to_vec() } else { self.contender.clone() }
    }
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match (arguments.next(), arguments.next()) {
        (Some(first), Some(task)) if first == WORK => work(&task),
        (Some(first), Some(task)) if first == instructions::WORK => count(&task),
        _ => compare(&Arguments::parse()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hvq-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn work(task: &str) -> Result<()> {
    let task: Task = serde_json::from_str(task).context("not a task of the benchmark")?;
    let [server, client] = CORES;
    meter::pin(if task.side == Side::Server { server } else { client });
    contender::work(&task)
}

fn count(task: &str) -> Result<()> {
    instructions::work(&serde_json::from_str(task).context("not a task of the benchmark")?)
}

fn compare(arguments: &Arguments) -> Result<()> {
    if let Some(path) = &arguments.output.write {
        let only_apart = arguments.only.iter().all(|part| matches!(part, Part::Decisions | Part::Aead));
        ensure!(
            arguments.only.is_empty() || !only_apart,
            "--write: decisions and packet protection alone have no row in {}",
            path.display()
        );
        // Now, and not after minutes.
        put(path, None)?;
    }
    let machine = Machine::now();
    if let Some(warning) = machine.warning() {
        eprintln!("bench: caution: {warning}");
    }
    let folder = tempfile::tempdir()?;
    let material = Material::create(folder.path())?;
    let effort = Effort::of(arguments);
    let samples = over_sockets(&effort, &material)?;
    let mut figures: Vec<Figure> = samples.iter().flat_map(Sample::figures).collect();
    figures.extend(in_the_pipe(&effort, &material)?);
    let instructions = match arguments.wants(Part::Instructions) {
        true => instructions(&arguments.contenders(), &material, folder.path())?,
        false => Vec::new(),
    };
    figures.extend(instructions.iter().map(of_count));
    let decisions = match arguments.wants(Part::Decisions) {
        true => {
            eprintln!("bench: scheduling decisions");
            decisions::measure(effort.decisions)?
        }
        false => Vec::new(),
    };
    let protection = match arguments.wants(Part::Aead) {
        true => {
            eprintln!("bench: packet protection");
            aead::measure(effort.rounds, effort.aead)?
        }
        false => Vec::new(),
    };
    let rows = Row::all(&figures);
    let warning = machine.warning();
    let report = Report { machine, warning, rows, decisions, protection, instructions, figures, samples };
    if let Some(path) = &arguments.output.write {
        // Decisions and packet protection are of parts, which a reader of that file does not want to see.
        let short = Report { decisions: Vec::new(), protection: Vec::new(), ..report.clone() };
        put(path, Some(&short))?;
    }
    if arguments.output.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}

/// Puts `report` between the marks of the file; without one, sees that it could be put there.
fn put(path: &Path, report: Option<&Report>) -> Result<()> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(name)?;
    let around = report::around_marks(&text).with_context(name)?;
    if let Some(report) = report {
        std::fs::write(path, report.between(around)).with_context(name)?;
    }
    Ok(())
}

/// Two processes for each, contenders in turn.
fn over_sockets(effort: &Effort, material: &Material) -> Result<Vec<Sample>> {
    let started = Instant::now();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut samples = Vec::new();
    let trials = effort.trials();
    for (index, &trial) in trials.iter().enumerate() {
        let sample = runtime.block_on(measure(trial, material))?;
        let done = index + 1;
        let left = started.elapsed().as_secs_f64() / done as f64 * (trials.len() - done) as f64;
        eprint!("bench {done}/{}: round {}, {:<20}", trials.len(), trial.round + 1, trial.contender.label());
        for figure in sample.figures() {
            eprint!(" {}: {:.*};", figure.measure, figure.measure.digits(), figure.value);
        }
        eprintln!(" about {left:.0} s left");
        samples.push(sample);
    }
    Ok(samples)
}

/// Measures, and once more if that fails: nobody wants to lose a quarter of an hour to one packet.
async fn measure(trial: sockets::Trial, material: &Material) -> Result<Sample> {
    match sockets::measure(trial, material).await {
        Err(error) => {
            eprintln!("bench: {error:#}; once more");
            sockets::measure(trial, material).await
        }
        sample => sample,
    }
}

/// Both ends in one thread, contenders in turn.
fn in_the_pipe(effort: &Effort, material: &Material) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    if effort.pipe.is_nothing() {
        return Ok(figures);
    }
    for round in 0..effort.rounds {
        for &contender in &effort.contenders {
            eprintln!("bench: pipe, round {}, {}", round + 1, contender.label());
            let cost = pipe::measure(contender, material, PIPE_DATAGRAM, effort.pipe)?;
            figures.extend(cost.iter().flat_map(|cost| of_pipe(cost, round)));
        }
    }
    Ok(figures)
}

fn instructions(contenders: &[Contender], material: &Material, folder: &Path) -> Result<Vec<Count>> {
    let mut counts = Vec::new();
    for workload in Workload::ALL {
        for &contender in contenders {
            eprintln!("bench: instructions of {workload:?}, {}", contender.label());
            let (material, datagram) = (material.clone(), PIPE_DATAGRAM);
            let task = instructions::Task { contender, material, datagram, workload, amount: 0 };
            counts.extend(instructions::count(task, folder)?);
        }
    }
    Ok(counts)
}
