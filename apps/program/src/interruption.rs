//! SIGINT and SIGTERM while experiments run: what is going on comes to its end, no more is begun.

use crate::failure::{Exit, Failure};
use crate::output::Console;
use crate::signals::Signals;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The signal that ends experiments, once it came.
#[derive(Clone, Debug, Default)]
pub struct Interruption {
    came: Arc<OnceLock<Exit>>,
}

impl Interruption {
    /// Handles signals from now on, for as long as the program runs. The first one calls `stop`, which has no more runs begun.
    /// A second one ends the program at once: what is on disk is whole by then.
    ///
    /// # Errors
    /// The system permits no handlers ([`Exit::Runtime`]).
    pub fn watch(console: Console, stop: impl FnOnce() + Send + 'static) -> Result<Self, Failure> {
        let watched = Self::default();
        let mut signals = Signals::new()?;
        let told = watched.clone();
        tokio::spawn(async move {
            let exit = signals.next().await;
            // It is set here only, and once.
            let _set = told.came.set(exit);
            stop();
            console.say("ending: runs that are going on are finished and kept; a second signal ends at once");
            let exit = signals.next().await;
            std::process::exit(exit as i32);
        });
        Ok(watched)
    }

    /// The exit code of the signal, if one came.
    pub fn exit(&self) -> Option<Exit> {
        self.came.get().copied()
    }

    /// Checks that no signal came; the failure has its exit code, and says how to go on from what is in `folder`.
    ///
    /// # Errors
    /// A signal came.
    pub fn check(&self, folder: &Path) -> Result<(), Failure> {
        let Some(exit) = self.came.get() else { return Ok(()) };
        let text = format!(
            "ended by a signal: the results so far are in {}, and the same command goes on from there",
            folder.display()
        );
        Err(Failure::new(*exit, text))
    }
}
