//! `hvq video`: real-time video in layers over several channels, from a file, a camera or a test picture to a file, a
//! window, a page, or as RTP to a player of others.

mod compare;
mod receive;
mod send;

use crate::failure::Failure;
use crate::output::Console;
use clap::{Args, Subcommand};
use compare::CompareArguments;
use hvq_video::session::Size;
use receive::ReceiveArguments;
use send::SendArguments;

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

/// Sends, receives or compares.
pub(crate) async fn run(arguments: Box<VideoArguments>, console: Console) -> Result<(), Failure> {
    match arguments.command {
        VideoCommand::Send(arguments) => send::run(arguments, console).await,
        VideoCommand::Receive(arguments) => receive::run(arguments, console).await,
        VideoCommand::Compare(arguments) => {
            tokio::task::spawn_blocking(move || compare::run(&arguments)).await?
        }
    }
}

/// Width and height, as in 640x360.
fn size(text: &str) -> Result<Size, String> {
    let parsed =
        text.split_once('x').and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    let sides = 16..=4096_usize;
    let size = parsed.map(|(width, height)| Size { width, height });
    size.filter(|size| sides.contains(&size.width) && sides.contains(&size.height))
        .ok_or_else(|| format!("{text:?} is no size such as 640x360, with sides of 16 to 4096"))
}
