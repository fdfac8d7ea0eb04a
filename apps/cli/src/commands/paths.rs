//! `hvq paths`: the paths of the proxies and tunnels that run.

use crate::arguments::Format;
use crate::failure::{Exit, Failure, OrFail};
use crate::output::{self, ResultFormat};
use crate::signals::Signals;
use clap::Args;
use hvq_program::control;
use std::io::IsTerminal as _;
use std::time::Duration;

/// The interval of `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// Arguments of `hvq paths`.
#[derive(Debug, Args)]
pub(crate) struct PathsArguments {
    /// The process (by default all proxies and tunnels of this user)
    #[arg(long, value_name = "NUMBER")]
    process: Option<u32>,
    /// Show them again each second, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    format: Format,
}

/// Shows the paths, once or again and again.
pub(crate) async fn run(arguments: Box<PathsArguments>) -> Result<(), Failure> {
    let clears = arguments.watch && !arguments.format.json && std::io::stdout().is_terminal();
    let mut signals = Signals::new()?;
    loop {
        let mut lines = Vec::new();
        for status in tokio::task::block_in_place(|| control::programs(arguments.process))? {
            lines.push(match arguments.format.results() {
                ResultFormat::Text => control::text(&status),
                ResultFormat::Json => {
                    serde_json::to_string(&status).or_fail(Exit::Runtime, || "the status".to_owned())?
                }
            });
        }
        let clear = if clears { "\x1b[2J\x1b[H" } else { "" };
        output::print(&format!("{clear}{}", lines.join("\n")))?;
        if !arguments.watch {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            _ = signals.next() => return Ok(()),
        }
    }
}
