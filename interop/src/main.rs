//! Exchanges data between hvq and other implementations of QUIC and HTTP/3, and prints what was exchanged.

mod content;
mod identity;
mod ours;
mod peer;
mod relay;
mod report;
mod rows;
mod tally;

use anyhow::Result;
use clap::Parser;
use identity::Identity;
use report::Entry;
use rows::{Row, Setup};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The time that a row may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Exchange data with other implementations of QUIC and HTTP/3, and print what was exchanged.
#[derive(Debug, Parser)]
#[command(name = "hvq-interop", version)]
struct Arguments {
    /// Run only this row; may be repeated
    #[arg(long, value_name = "ROW")]
    only: Vec<Row>,
    /// List the rows
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    programs: Programs,
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
}

/// The places of programs.
#[derive(Debug, clap::Args)]
struct Programs {
    /// The hvq command
    #[arg(long, value_name = "FILE", default_value = "hvq")]
    hvq: PathBuf,
    /// nginx, built with HTTP/3
    #[arg(long, value_name = "FILE", default_value = "nginx")]
    nginx: PathBuf,
    /// A Python that has aioquic and pycurl
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
    /// Program that the folder quic-go builds
    #[arg(long, value_name = "FILE", default_value = "quic-go-peer")]
    quic_go: PathBuf,
    /// Program that the folder masque-go builds
    #[arg(long, value_name = "FILE", default_value = "masque-go-peer")]
    masque_go: PathBuf,
    /// h2load, built with HTTP/3
    #[arg(long, value_name = "FILE", default_value = "h2load")]
    h2load: PathBuf,
    /// Chromium
    #[arg(long, value_name = "FILE", default_value = "chromium")]
    chromium: PathBuf,
    /// h3spec
    #[arg(long, value_name = "FILE", default_value = "h3spec")]
    h3spec: PathBuf,
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let Arguments { only, list, output, programs } = Arguments::parse();
    let rows = if only.is_empty() { Row::ALL.to_vec() } else { only };
    if list {
        rows.iter().for_each(|row| println!("{:<24} {}", row.name(), row.what()));
        return Ok(ExitCode::SUCCESS);
    }
    let Programs { hvq, nginx, python, quic_go, masque_go, h2load, chromium, h3spec } = programs;
    let identity = Identity::new()?;
    let setup = Setup { identity, hvq, nginx, python, quic_go, masque_go, h2load, chromium, h3spec };
    let mut entries = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        eprint!("interop {}/{}: {}: {} ... ", index + 1, rows.len(), row.name(), row.what());
        let started = Instant::now();
        let result = row.run(&setup, PATIENCE).await;
        eprintln!("{}", if result.is_ok() { "ok" } else { "FAIL" });
        entries.push(Entry::new(*row, result, started.elapsed()));
    }
    let table = report::table(&entries);
    if output.json {
        println!("{}", serde_json::to_string_pretty(&entries)?);
    } else {
        print!("\n{table}");
    }
    if let Some(file) = output.write {
        let text = std::fs::read_to_string(&file)?;
        std::fs::write(&file, report::with_table(&text, &table)?)?;
    }
    let failed = entries.iter().any(|entry| entry.failure.is_some());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
