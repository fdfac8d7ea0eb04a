//! The hvq command.

use std::process::ExitCode;

fn main() -> ExitCode {
    hvq_cli::run(std::env::args_os())
}
