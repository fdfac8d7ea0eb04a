//! `hvq demo` alone. It compiles in a part of the time that the whole program takes; `make demo` runs it.

use clap::Parser;
use hvq_live::command::demo::{self, DemoArguments};
use hvq_program::failure::Failure;
use hvq_program::output::{self, Console};
use std::process::ExitCode;

/// Loads real pages over two emulated channels, compares schedulers, and writes a report.
#[derive(Debug, Parser)]
#[command(name = "hvq-demo", version)]
struct Arguments {
    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
    /// The filter of the log on standard error, such as hvq=debug (by default that in RUST_LOG, or warnings)
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    #[command(flatten)]
    demo: DemoArguments,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.exit().into()
        }
    }
}

fn run(Arguments { quiet, log, demo }: Arguments) -> Result<(), Failure> {
    let console = if quiet { Console::Quiet } else { Console::Normal };
    output::start_log(log.as_deref(), console)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(demo::run(Box::new(demo), console));
    // Blocking reads of files must not keep the program from ending.
    runtime.shutdown_background();
    result
}
