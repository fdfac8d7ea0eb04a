//! `hvq tunnel`: IP packets over all channels to a gateway.

mod connect;
mod serve;

use crate::failure::{Exit, Failure, OrFail};
use crate::output::Console;
use clap::{Args, Subcommand};
use hvq_tunnel::TcpLane;
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `hvq tunnel`.
#[derive(Debug, Args)]
pub(crate) struct TunnelArguments {
    #[command(subcommand)]
    end: End,
}

/// The end of the tunnel.
#[derive(Debug, Subcommand)]
enum End {
    /// Ask a server for a tunnel, and send the packets of a command or of this machine through it
    Connect(Box<connect::ConnectArguments>),
    /// Serve tunnels: their packets come out of a TUN device of this machine
    Serve(Box<serve::TunnelServeArguments>),
}

/// Bytes of a TCP flow that wait in its stream at least, before the transport has learned how much it carries.
const SEND_BUFFER: usize = 512 << 10;
/// The longest name of a device, in bytes.
const LONGEST_DEVICE: usize = 15;

/// Reads the name of a device.
fn device(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    match (1..=LONGEST_DEVICE).contains(&text.len()) && plain {
        true => Ok(text.to_owned()),
        false => Err("a device's name has 1 to 15 letters, digits, dots and dashes".to_owned()),
    }
}

/// The tokens of those who may use the tunnel.
#[derive(Debug, Args)]
struct TokenArguments {
    /// A file with a token on each line, 16 characters or more (a client sends the first); by default $HVQ_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl TokenArguments {
    /// The tokens. They are no arguments, which every user of a machine can see.
    fn read(&self) -> Result<Vec<String>, Failure> {
        let text = match &self.token_file {
            Some(path) => std::fs::read_to_string(path)
                .or_fail(Exit::Usage, || format!("cannot read {}", path.display()))?,
            None => std::env::var("HVQ_TOKEN").unwrap_or_default(),
        };
        let tokens = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(tokens.map(str::to_owned).collect())
    }
}

/// The use of streams for TCP flows, as of the flag `--no-tcp-lane`.
fn lane(is_off: bool) -> TcpLane {
    if is_off { TcpLane::Off } else { TcpLane::On }
}

/// Runs one end, and returns its exit code, or that of its command. There must be no other thread yet.
pub(crate) fn run(arguments: &TunnelArguments, console: Console) -> Result<ExitCode, Failure> {
    match &arguments.end {
        End::Connect(connect) => connect::run(connect, console),
        End::Serve(serve) => serve::run(serve, console).map(|()| ExitCode::SUCCESS),
    }
}
