//! A tunnel for this machine from one file: what `hvq up` and `hvq down` do.
//!
//! ```text
//!   file ──▶ Settings ──▶ plan: changes ──▶ journal, on the disk ──▶ the system
//!                                               ▲
//!                     the end, a failure, the next start: undone, the last first
//! ```
//!
//! Every change of the system that outlives the process is written to a journal before it is made, and undone at the end; after
//! SIGKILL by the next `hvq up` or `hvq down`. The device, its addresses and its routes end with the process by themselves.

mod change;
mod client;
mod file;
mod journal;
mod netlink;
mod plan;
mod resolver;
mod server;
#[cfg(test)]
mod tests;

pub use file::Settings;

use crate::prefix::Prefix;
use crate::server::Destinations;
use change::Change;
use file::End;
use hvq_program::configuration::ConfigError;
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::output::{Console, ResultFormat, print};
use hvq_program::signals::Signals;
use journal::{Holder, Journal};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

/// The addresses that the clients of a server may reach, by its routes and the networks that its file says to be reached though
/// they are not public.
pub type Judge = dyn Fn(&[Prefix], &[Prefix]) -> Destinations;

/// The time that a tunnel may take to go down.
const PATIENCE: Duration = Duration::from_secs(15);
/// The interval at which it is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Reads the file at `path`.
///
/// # Errors
/// The first thing that is wrong with it, with its line ([`Exit::Usage`]).
pub fn read(path: &Path) -> Result<Settings, Failure> {
    Settings::read(path).map_err(wrong)
}

fn wrong(error: ConfigError) -> Failure {
    Failure::new(Exit::Usage, error.to_string())
}

impl Settings {
    /// Runs the tunnel until a signal says to stop, and leaves the system as it was. For a server, `judge` says which
    /// addresses clients may reach.
    ///
    /// # Errors
    /// The tunnel is up already, cannot be had, or ends; or the system refuses a change. The system is as it was then, too.
    pub fn up(&self, judge: &Judge, format: ResultFormat, console: Console) -> Result<(), Failure> {
        let mut journal = match Journal::take(&self.name)? {
            Holder::Us(journal) => journal,
            Holder::Other(process) => {
                let text = format!("the tunnel {} is up already (process {process})", self.name);
                return Err(Failure::new(Exit::Usage, text));
            }
        };
        clean(&mut journal, &self.name, console)?;
        let runtime = runtime()?;
        let ended = runtime.block_on(async {
            // SIGHUP, as of a terminal that is closed, ends it, too: nothing else would undo the changes.
            let mut signals = Signals::of_service()?;
            let running = async {
                match &self.end {
                    End::Client(client) => client::run(client, &mut journal, format, console).await,
                    End::Server(server) => {
                        let destinations = judge(&server.routes, &server.reach);
                        server::run(server, &mut journal, destinations, (format, console)).await
                    }
                }
            };
            tokio::select! {
                ended = running => ended,
                _ = signals.request() => Ok(()),
            }
        });
        let restored = journal.undo(console);
        runtime.shutdown_background();
        match (&ended, restored) {
            (Ok(()), false) => {
                let text = "the system is not as it was: `hvq down` tries again";
                Err(Failure::new(Exit::Runtime, text))
            }
            _ => ended,
        }
    }

    /// Prints the changes that [`up`](Self::up) would make. Nothing is changed, and no server is asked; names are resolved.
    ///
    /// # Errors
    /// A name does not resolve.
    pub fn print_plan(&self, format: ResultFormat) -> Result<(), Failure> {
        let lines = match &self.end {
            End::Client(client) => {
                let facts = runtime()?.block_on(client::facts(client))?;
                let changes = plan::guard(client, &facts).into_iter().map(|change| change.to_string());
                let mut lines: Vec<String> = changes.collect();
                lines.extend(plan::routing(client, &facts).iter().map(ToString::to_string));
                lines.extend(client::told(client, &facts));
                lines.extend(client::told_names(client));
                lines
            }
            End::Server(server) => {
                let changes = server::changes(server).into_iter().map(|change| change.to_string());
                changes.chain(server::told(server)).collect()
            }
        };
        match format {
            ResultFormat::Json => print(&json!({ "tunnel": self.name, "changes": lines }).to_string()),
            ResultFormat::Text => lines.iter().try_for_each(|line| print(line)),
        }
    }
}

/// Ends the tunnel of the file at `path`, if it is up, and undoes what it left if it was killed. The file itself need not be there.
///
/// # Errors
/// The tunnel does not end, or the system refuses to have a change undone.
pub fn down(path: &Path, console: Console) -> Result<(), Failure> {
    let name = file::name_of(path).map_err(wrong)?;
    runtime()?.block_on(async {
        let begun = Instant::now();
        let mut told = None;
        loop {
            match Journal::take(&name)? {
                Holder::Us(mut journal) => {
                    if told.is_none() && journal.len() == 0 {
                        console.say(format!("the tunnel {name} is not up"));
                    }
                    return clean(&mut journal, &name, console);
                }
                Holder::Other(process) if told != Some(process) => {
                    told = Some(process);
                    terminate(process).or_fail(Exit::Runtime, || format!("cannot end process {process}"))?;
                }
                Holder::Other(process) if begun.elapsed() > PATIENCE => {
                    let text = format!("process {process} does not end; kill it, and say hvq down again");
                    return Err(Failure::new(Exit::Runtime, text));
                }
                Holder::Other(_) => sleep(LOOK).await,
            }
        }
    })
}

/// Makes changes, one after the other.
fn apply(journal: &mut Journal, changes: Vec<Change>) -> Result<(), Failure> {
    for change in changes {
        let told = change.to_string();
        let told = told.lines().next().unwrap_or_default().to_owned();
        journal.apply(change).or_fail(Exit::Runtime, || format!("`{told}` is refused"))?;
    }
    Ok(())
}

/// Undoes what a process that was killed left.
fn clean(journal: &mut Journal, name: &str, console: Console) -> Result<(), Failure> {
    if journal.len() == 0 {
        return Ok(());
    }
    console.say(format!("the tunnel {name} was killed: undoing {} changes of the system", journal.len()));
    match journal.undo(console) {
        true => Ok(()),
        false => Err(Failure::new(Exit::Runtime, "the system is not as it was")),
    }
}

/// Sends SIGTERM to `process`.
fn terminate(process: u32) -> nix::Result<()> {
    use nix::sys::signal::{Signal, kill};
    let process = i32::try_from(process).map_err(|_| nix::errno::Errno::ESRCH)?;
    kill(nix::unistd::Pid::from_raw(process), Signal::SIGTERM)
}

fn runtime() -> Result<Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}
