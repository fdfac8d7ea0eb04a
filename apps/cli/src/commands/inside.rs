//! The first process of a network that `hvq run` made.

use crate::failure::{Exit, Failure, OrFail};
use clap::Args;
use hvq_emulation::tun::inside::{self, Instructions};
use std::ffi::OsString;
use std::process::ExitCode;

/// Arguments of the first process.
#[derive(Debug, Args)]
pub(crate) struct InsideArguments {
    /// Setup instructions, as JSON
    instructions: String,
    /// The command to run
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Runs the command, and returns its exit code.
pub(crate) fn run(arguments: &InsideArguments) -> Result<ExitCode, Failure> {
    let instructions: Instructions = serde_json::from_str(&arguments.instructions)
        .or_fail(Exit::Usage, || "this command is called by hvq run only".to_owned())?;
    let code = inside::run(&instructions, &arguments.command)
        .or_fail(Exit::Runtime, || "cannot set up the namespace of a command".to_owned())?;
    Ok(ExitCode::from(code))
}
