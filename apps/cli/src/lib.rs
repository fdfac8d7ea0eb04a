//! The hvq command: serve, get, gateway, proxy, emulate, run, tunnel, up, down, demo, lab, video, decode.
//!
//! A failure is told in one line on standard error, `hvq: …` with its causes, and by the exit code:
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | failed while running |
//! | 2 | wrong arguments or configuration |
//! | 3 | the connection failed |
//! | 4 | TLS or the certificate |
//! | 22 | an HTTP error status, with `--fail` |
//! | 28 | too late |
//! | 130 | ended by SIGINT before all was done |
//! | 143 | ended by SIGTERM before all was done |
//!
//! `hvq run` ends with the exit code of its command, 126 and 127 for one that cannot be run or is not there, and 128 and the
//! number of the signal for one that a signal ended.

mod arguments;
mod commands;
mod memory;

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;
use crate::output::Console;
use hvq_program::{descriptors, duration, failure, output, paths, qlog, signals, tls};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command that `arguments` ask for, the name of the program first, and returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::read(arguments) {
        Ok(arguments) => arguments,
        Err(refusal) => return refusal.report(),
    };
    let console = arguments.console();
    match start(arguments, console) {
        Ok(exit) => exit,
        Err(failure) => {
            failure.report();
            failure.exit().into()
        }
    }
}

fn start(arguments: Arguments, console: Console) -> Result<ExitCode, Failure> {
    output::start_log(arguments.log.as_deref(), console)?;
    match arguments.command {
        // Namespaces are made before there are threads.
        #[cfg(target_os = "linux")]
        Command::Run(run) => commands::run::run(&run, console),
        #[cfg(target_os = "linux")]
        Command::Inside(inside) => commands::inside::run(&inside),
        #[cfg(target_os = "linux")]
        Command::Tunnel(tunnel) => commands::tunnel::run(&tunnel, console),
        #[cfg(target_os = "linux")]
        Command::Up(up) => commands::up::run(&up, console).map(|()| ExitCode::SUCCESS),
        #[cfg(target_os = "linux")]
        Command::Down(down) => commands::up::down(&down, console).map(|()| ExitCode::SUCCESS),
        #[cfg(target_os = "linux")]
        Command::Lab(lab) => {
            commands::lab::prepare(&lab)?;
            perform(Command::Lab(lab), console).map(|()| ExitCode::SUCCESS)
        }
        command => perform(command, console).map(|()| ExitCode::SUCCESS),
    }
}

fn perform(command: Command, console: Console) -> Result<(), Failure> {
    memory::give_back();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        match command {
            Command::Serve(serve) => commands::serve::run(serve, console).await,
            Command::Get(get) => commands::get::run(get, console).await,
            Command::Gateway(gateway) => commands::gateway::run(gateway, console).await,
            Command::Proxy(proxy) => commands::proxy::run(proxy, console).await,
            #[cfg(unix)]
            Command::Paths(paths) => commands::paths::run(paths).await,
            Command::Emulate(emulate) => commands::emulate::run(emulate, console).await,
            Command::Demo(demo) => hvq_live::command::demo::run(demo, console).await,
            Command::Lab(lab) => tokio::task::block_in_place(|| commands::lab::run(&lab, console)),
            #[cfg(feature = "video")]
            Command::Video(video) => commands::video::run(video, console).await,
            Command::Decode(decode) => commands::decode::run(&decode, console),
            Command::Completions(completions) => commands::manual::complete(&completions),
            Command::Manual(manual) => commands::manual::manual(&manual),
            #[cfg(target_os = "linux")]
            Command::Run(_) | Command::Inside(_) | Command::Tunnel(_) | Command::Up(_) | Command::Down(_) => {
                unreachable!("these have no runtime")
            }
        }
    });
    // Blocking reads of files must not keep the program from ending.
    runtime.shutdown_background();
    result
}
