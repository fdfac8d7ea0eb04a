//! hvq as an endpoint of the QUIC interop runner (github.com/quic-interop/quic-interop-runner, `quic.md`): what to do comes
//! in environment variables, what was done is in files and in the exit code.

mod case;
mod client;
mod files;
mod hq;
mod http3;
mod secrets;
mod server;
mod settings;
#[cfg(test)]
mod tests;

use clap::Parser;
use settings::{Role, Settings};
use std::process::ExitCode;

/// The exit code for a test case that is not known, which the runner takes for "not supported".
const UNSUPPORTED: u8 = 127;

#[tokio::main]
async fn main() -> ExitCode {
    let settings = Settings::parse();
    let Some(case) = case::TestCase::named(&settings.testcase) else {
        eprintln!("hvq-endpoint: test case {:?} is not supported", settings.testcase);
        return ExitCode::from(UNSUPPORTED);
    };
    let result = match settings.role {
        Role::Client => client::run(&settings, case).await,
        Role::Server => server::run(&settings, case).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hvq-endpoint: {error:#}");
            ExitCode::FAILURE
        }
    }
}
