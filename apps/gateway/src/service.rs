//! A gateway as a service: it runs until a signal says to stop, and tells the service manager.

use crate::{Config, ConfigError, Gateway, service_manager};
use hvq_program::failure::{Exit, Failure};
use hvq_program::output::Console;
use hvq_program::signals::{Request, Signals};
use std::time::Duration;

/// The time for which a broken gateway tells of it (`/health`) before it ends.
const NOTICE: Duration = Duration::from_secs(1);

/// Runs `gateway` until a signal says to stop, then finishes the requests under way. On SIGHUP the configuration that `load` returns
/// takes the place of the one before.
///
/// # Errors
/// Something of the gateway has ended that should not have ([`Exit::Runtime`]). Its health has said so for a second.
pub async fn run(
    mut gateway: Gateway,
    signals: &mut Signals,
    load: impl Fn() -> Result<Config, ConfigError>,
    console: Console,
) -> Result<(), Failure> {
    service_manager::ready(gateway.pulse());
    let ended = attend(&mut gateway, signals, load, console).await;
    if ended.is_ok() {
        console.say("stopping: requests under way are finished (a second signal stops at once)");
    }
    service_manager::stopping();
    tokio::select! {
        () = gateway.stop() => {}
        _ = signals.next() => console.say("stopped at once"),
    }
    ended
}

/// Has the gateway run until it is told to stop, and read its configuration again when it is told to.
///
/// # Errors
/// Something of it has ended that should not have. Its health has said so for long enough to be noticed.
async fn attend(
    gateway: &mut Gateway,
    signals: &mut Signals,
    load: impl Fn() -> Result<Config, ConfigError>,
    console: Console,
) -> Result<(), Failure> {
    loop {
        tokio::select! {
            request = signals.request() => match request {
                Request::Reload => reload(gateway, load(), console),
                Request::Stop(_) => return Ok(()),
            },
            broken = gateway.attend() => {
                let failure = Failure::new(Exit::Runtime, format!("{broken}; the gateway ends, to be started again"));
                tokio::select! {
                    () = tokio::time::sleep(NOTICE) => {}
                    _ = signals.next() => {}
                }
                return Err(failure);
            }
        }
    }
}

/// A configuration that is wrong changes nothing.
fn reload(gateway: &mut Gateway, config: Result<Config, ConfigError>, console: Console) {
    let reloaded = match config {
        Ok(config) => gateway.reload(config).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match reloaded {
        Ok(kept) if kept.is_empty() => console.say("the configuration was read again"),
        Ok(kept) => console.say(format!(
            "the configuration was read again; these stay as they are until a restart: {}",
            kept.join(", ")
        )),
        Err(problem) => eprintln!("hvq: the configuration stays as it was: {problem}"),
    }
}

#[cfg(test)]
mod tests;
