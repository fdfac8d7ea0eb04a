//! Exchanges data between hvq and other implementations of QUIC and HTTP/3, and prints what was exchanged.

mod content;
mod identity;
mod ours;
mod peer;
mod relay;
mod report;
mod rows;

use anyhow::Result;
use clap::Parser;
use identity::Identity;
use report::Entry;
use rows::{Row, Setup};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a row may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Exchange data with other implementations of QUIC and HTTP/3, and print what was exchanged.
#[derive(Debug, Parser)]
#[command(name = "hvq-interop", version)]
struct Arguments {
    /// Run only this row; may be repeated
    #[arg(long, value_name = "ROW", value_parser = row)]
    only: Vec<Row>,
    /// Print the result as JSON instead of a table
    #[arg(long)]
    json: bool,
    /// The hvq command
    #[arg(long, value_name = "FILE", default_value = "hvq")]
    hvq: PathBuf,
    /// nginx, built with HTTP/3
    #[arg(long, value_name = "FILE", default_value = "nginx")]
    nginx: PathBuf,
    /// A Python that has aioquic
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
}

fn row(text: &str) -> Result<Row, String> {
    let known = text.parse().ok().and_then(Row::numbered);
    known.ok_or_else(|| format!("the rows are 1 to {}", Row::all().count()))
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let rows: Vec<Row> = if arguments.only.is_empty() { Row::all().collect() } else { arguments.only };
    let setup = Setup {
        identity: Identity::new()?,
        hvq: arguments.hvq,
        nginx: arguments.nginx,
        python: arguments.python,
    };
    let mut entries = Vec::new();
    for row in rows {
        eprint!("interop: row {}: {} ... ", row.number(), row.what());
        let started = Instant::now();
        let result = row.run(&setup, PATIENCE).await;
        eprintln!("{}", if result.is_ok() { "ok" } else { "FAIL" });
        entries.push(Entry::new(row.number(), row.what(), result, started.elapsed()));
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&entries)?);
    } else {
        print!("\n{}", report::table(&entries));
    }
    let failed = entries.iter().any(|entry| entry.failure.is_some());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
