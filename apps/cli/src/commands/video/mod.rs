//! `hvq video`: real-time video in layers over several channels, from a file, a camera or a test picture to a file, a
//! window, a page, or as RTP to a player of others.

mod compare;
mod pictures;
mod receive;
mod screen;
mod send;

use crate::failure::Failure;
use crate::output::Console;
use clap::{Args, Subcommand};
use compare::CompareArguments;
use receive::ReceiveArguments;
use send::SendArguments;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The application protocol: one unidirectional stream for each layer, as `hvq_video::message` says.
pub(super) const ALPN: &[u8] = b"hvq-svc/1";

/// The code with which a sender takes back a layer that is late.
pub(super) const LATE: u64 = 1;

/// A peer of which nothing is heard for so long has vanished.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// Arguments of `hvq video`.
#[derive(Debug, Args)]
pub(crate) struct VideoArguments {
    #[command(subcommand)]
    command: VideoCommand,
}

#[derive(Debug, Subcommand)]
enum VideoCommand {
    /// Encode a file, a camera's or a test picture in layers and send it as it plays
    Send(Box<SendArguments>),
    /// Receive a video, record or show it, and say how good it was
    Receive(Box<ReceiveArguments>),
    /// Say how like its source a recording is (SSIM of the brightness, VMAF)
    Compare(Box<CompareArguments>),
}

/// Sends or receives.
pub(crate) async fn run(arguments: Box<VideoArguments>, console: Console) -> Result<(), Failure> {
    match arguments.command {
        VideoCommand::Send(arguments) => send::run(arguments, console).await,
        VideoCommand::Receive(arguments) => receive::run(arguments, console).await,
        VideoCommand::Compare(arguments) => {
            tokio::task::spawn_blocking(move || compare::run(&arguments)).await?
        }
    }
}

/// The time of day, which sender and receiver must have in common for latencies to be right.
pub(super) fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
