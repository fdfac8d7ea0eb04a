//! Throughput, CPU time and scheduling cost of hvq, compared with quinn, noq and quiche in one run.

mod bulk;
mod contender;
mod decisions;
mod instructions;
mod machine;
mod meter;
mod pipe;
mod report;
mod spread;

use anyhow::{Context, Result};
use bulk::{Plan, Sample};
use clap::{Parser, ValueEnum};
use contender::{Contender, Material, Task};
use decisions::{Decision, Effort};
use instructions::Count;
use machine::Machine;
use pipe::Cost;
use report::{Costs, Report};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The first argument of the processes that the benchmark starts; the second is their task.
const WORK: &str = "work";

/// UDP payload of full datagrams in bytes where there is no network.
const PIPE_DATAGRAM: u16 = 1350;

/// Compares hvq with quinn, noq and quiche over loopback, and measures what a scheduling decision costs.
///
/// Server and client of every transfer are processes of their own, whose CPU time the system counts. Contenders take
/// turns in every round, so that what else the machine does hits all of them. Progress goes to standard error.
#[derive(Parser, Debug)]
#[command(name = "hvq-bench", version)]
struct Arguments {
    /// A smoke test of less than a minute: one datagram size, 2 rounds of 64 MiB
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
    /// MiB of a transfer [default: 512]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    size: Option<u64>,
    /// Transfers of each contender and datagram size [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// UDP payload of full datagrams in bytes, several times for several sizes [default: 1200 and 1452]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1200..=1472))]
    datagram: Vec<u16>,
    /// Who takes part, several times for several [default: all]
    #[arg(long, value_enum)]
    contender: Vec<Contender>,
    /// Measure only this, several times for several [default: all]
    #[arg(long, value_enum)]
    only: Vec<Part>,
}

/// How the result is written.
#[derive(clap::Args, Debug)]
struct Output {
    /// Write JSON, with every single transfer, instead of a table
    #[arg(long)]
    json: bool,
}

/// A part of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Part {
    /// Transfers.
    Bulk,
    /// Scheduling decisions.
    Decisions,
    /// CPU time of both ends in one thread, without sockets.
    Pipe,
    /// Instructions for a datagram, counted by callgrind.
    Instructions,
}

impl Arguments {
    fn wants(&self, part: Part) -> bool {
        match self.only.as_slice() {
            [] => !(self.quick && part == Part::Instructions),
            some => some.contains(&part),
        }
    }

    fn plan(&self) -> Plan {
        let or = |given: &[u16], default: &[u16]| if given.is_empty() { default } else { given }.to_vec();
        let (size, rounds, datagrams): (_, _, &[u16]) =
            if self.quick { (64, 2, &[1200]) } else { (512, 5, &[1200, 1452]) };
        Plan {
            contenders: match self.contender.as_slice() {
                [] => Contender::ALL.to_vec(),
                some => some.to_vec(),
            },
            datagrams: or(&self.datagram, datagrams),
            bytes: self.size.unwrap_or(size) << 20,
            rounds: usize::from(self.rounds.unwrap_or(rounds)),
        }
    }

    fn effort(&self) -> Effort {
        match self.quick {
            true => Effort { batches: 5, batch: Duration::from_millis(10) },
            false => Effort { batches: 25, batch: Duration::from_millis(40) },
        }
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
    contender::work(&task)
}

fn count(task: &str) -> Result<()> {
    let (contender, material, datagram, bytes) =
        serde_json::from_str(task).context("not a task of the benchmark")?;
    instructions::work(contender, &material, datagram, bytes)
}

fn compare(arguments: &Arguments) -> Result<()> {
    let machine = Machine::now();
    if let Some(warning) = machine.warning() {
        eprintln!("bench: caution: {warning}");
    }
    let plan = arguments.plan();
    let samples = if arguments.wants(Part::Bulk) { bulk(&plan)? } else { Vec::new() };
    let decisions = if arguments.wants(Part::Decisions) { decide(arguments)? } else { Vec::new() };
    let folder = tempfile::tempdir()?;
    let material = Material::create(folder.path())?;
    let pipe = if arguments.wants(Part::Pipe) { pipes(&plan, arguments, &material)? } else { Vec::new() };
    let instructions = match arguments.wants(Part::Instructions) {
        true => instructions(&plan, &material, folder.path())?,
        false => Vec::new(),
    };
    let report = Report::new(machine, plan, samples, Costs { decisions, pipe, instructions });
    if arguments.output.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}

fn bulk(plan: &Plan) -> Result<Vec<Sample>> {
    let total = plan.contenders.len() * plan.datagrams.len() * plan.rounds;
    let (started, mut done) = (Instant::now(), 0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(bulk::measure(plan, |sample| {
        done += 1;
        let left = started.elapsed().as_secs_f64() / f64::from(done) * (total as f64 - f64::from(done));
        eprintln!(
            "bench {done}/{total}: {} bytes, round {}, {:<20} {:>6.0} Mbit/s, {:.2} CPU s/GiB; about {left:.0} s left",
            sample.datagram,
            sample.round + 1,
            sample.contender.label(),
            sample.mbit(),
            sample.cpu(),
        );
    }))
}

/// Both ends in one thread, contenders in turn.
fn pipes(plan: &Plan, arguments: &Arguments, material: &Material) -> Result<Vec<Cost>> {
    let effort = match arguments.quick {
        true => pipe::Effort { bytes: 32 << 20, handshakes: 100 },
        false => pipe::Effort { bytes: 256 << 20, handshakes: 1000 },
    };
    let mut costs = Vec::new();
    for round in 0..plan.rounds {
        for &contender in &plan.contenders {
            eprintln!("bench: pipe, round {}, {}", round + 1, contender.label());
            costs.push(pipe::measure(contender, material, PIPE_DATAGRAM, effort)?);
        }
    }
    Ok(costs)
}

fn instructions(plan: &Plan, material: &Material, folder: &Path) -> Result<Vec<Count>> {
    let mut counts = Vec::new();
    for &contender in &plan.contenders {
        eprintln!("bench: instructions, {}", contender.label());
        counts.push(instructions::count(contender, material, PIPE_DATAGRAM, folder)?);
    }
    Ok(counts)
}

fn decide(arguments: &Arguments) -> Result<Vec<Decision>> {
    eprintln!("bench: scheduling decisions");
    decisions::measure(arguments.effort())
}
