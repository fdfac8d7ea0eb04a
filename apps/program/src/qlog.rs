//! Logs of connections in the qlog format.

use crate::failure::{Exit, Failure, OrFail};
use crate::output::Console;
use hvq::TransportConfig;
use hvq::qlog::{Qlog, QlogOptions};
use hvq::trace::TracerFactory;
use std::path::Path;
use std::time::Duration;

/// The time that the disk may take for the last events.
const PATIENCE: Duration = Duration::from_secs(2);

/// A folder of logs, if one was asked for.
#[derive(Clone, Debug)]
pub struct Logs(Option<Qlog>);

impl Logs {
    /// No logs.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Logs in `folder`, which is made if it is missing.
    pub fn open(folder: Option<&Path>) -> Result<Self, Failure> {
        let Some(folder) = folder else { return Ok(Self(None)) };
        let opened = Qlog::open(QlogOptions::new(folder));
        let log = opened.or_fail(Exit::Usage, || format!("cannot write logs to {}", folder.display()))?;
        Ok(Self(Some(log)))
    }

    /// Returns the same configuration, with connections watched.
    pub fn watch(&self, mut config: TransportConfig) -> TransportConfig {
        config.set_tracer(self.tracer());
        config
    }

    /// Returns the factory of tracers for connections, if a folder was asked for.
    pub fn tracer(&self) -> Option<TracerFactory> {
        self.0.as_ref().map(Qlog::factory)
    }

    /// Waits for the last events, and says what is missing.
    pub fn finish(&self, console: Console) {
        let Some(log) = &self.0 else { return };
        let written = log.flush(PATIENCE);
        match (written, log.dropped()) {
            (true, 0) => {}
            (true, dropped) => {
                console.say(format!("hvq: warning: {dropped} events are missing in the logs (--qlog)"));
            }
            (false, _) => console.say("hvq: warning: the disk did not take all events of the logs (--qlog)"),
        }
    }
}
