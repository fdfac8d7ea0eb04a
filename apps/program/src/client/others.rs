//! The paths beside the first: opened while requests are under way, and what became of each.

use crate::failure::Failure;
use crate::output::Console;
use hvq::path_manager::LinkUse;
use hvq::{Connection, PathManager, PathOptions};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A path that is not validated after so long is worth a warning; a shorter transfer may well do without it.
const NOTABLE: Duration = Duration::from_secs(1);

/// A path that nothing was received over, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unused {
    /// The name of the path.
    name: String,
    /// The reason for which it was of no use.
    reason: String,
}

impl Unused {
    /// One line about it.
    pub fn line(&self) -> String {
        format!("path {} cannot be used: {}", self.name, self.reason)
    }
}

/// The progress of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Progress {
    Opening,
    Validated,
    Failed(String),
}

/// The paths beside the first, in the order in which they were named.
#[derive(Clone, Debug)]
pub struct Others {
    paths: Arc<Mutex<Vec<(String, Progress)>>>,
    /// The manager of the paths, if they follow the links.
    manager: Option<Arc<PathManager>>,
    since: Instant,
}

impl Others {
    /// Opens `paths`. Requests do not wait for them, and do without those that fail.
    pub fn open(connection: &Connection, paths: impl Iterator<Item = PathOptions>, console: Console) -> Self {
        let paths: Vec<_> = paths.collect();
        let named = paths.iter().map(|path| (path.name.clone(), Progress::Opening)).collect();
        let others = Self { paths: Arc::new(Mutex::new(named)), manager: None, since: Instant::now() };
        for (index, path) in paths.into_iter().enumerate() {
            tokio::spawn(others.clone().follow(connection.clone(), index, path, console));
        }
        others
    }

    /// The paths that `manager` opens and gives up.
    pub fn managed(manager: Arc<PathManager>) -> Self {
        Self { paths: Arc::default(), manager: Some(manager), since: Instant::now() }
    }

    async fn follow(self, connection: Connection, index: usize, path: PathOptions, console: Console) {
        let name = path.name.clone();
        let progress = match connection.open_path(path).await {
            Ok(id) => {
                console.detail(|| format!("* path {id} ({name}) is validated"));
                Progress::Validated
            }
            Err(_) if connection.close_reason().is_some() => return,
            Err(error) => {
                let reason = Failure::from(error).line();
                console.say(format!("hvq: warning: {}", Unused { name, reason: reason.clone() }.line()));
                Progress::Failed(reason)
            }
        };
        if let Some((_, known)) = self.lock().get_mut(index) {
            *known = progress;
        }
    }

    /// The paths that are not validated so far, and the links that none uses.
    pub fn unused(&self) -> Vec<Unused> {
        let mut unused = self.those(|_| true);
        let status = self.manager.as_ref().map(|manager| manager.status()).unwrap_or_default();
        unused.extend(status.links.iter().filter_map(|link| match &link.usage {
            LinkUse::Path { .. } => None,
            LinkUse::Unused(reason) => Some(Unused { name: link.name.clone(), reason: reason.to_string() }),
        }));
        unused
    }

    /// The paths that are not validated and whose progress is `such`.
    fn those(&self, such: impl Fn(&Progress) -> bool) -> Vec<Unused> {
        let waited = crate::duration::milliseconds(self.since.elapsed());
        let reason = |progress: &Progress| match progress {
            Progress::Validated => None,
            Progress::Failed(reason) => Some(reason.clone()),
            Progress::Opening => Some(format!("the server has not answered over it within {waited}")),
        };
        let unused = |(name, progress): &(String, Progress)| {
            reason(progress).map(|reason| Unused { name: name.clone(), reason })
        };
        self.lock().iter().filter(|(_, progress)| such(progress)).filter_map(unused).collect()
    }

    /// Warns of the paths that had time enough and are still being opened; those that failed were told of.
    pub fn warn(&self, console: Console) {
        if self.since.elapsed() < NOTABLE {
            return;
        }
        let opening = |progress: &Progress| *progress == Progress::Opening;
        for unused in self.those(opening) {
            console.say(format!("hvq: warning: {}", unused.line()));
        }
    }

    /// Locks the paths; their state is whole even after a panic elsewhere.
    fn lock(&self) -> MutexGuard<'_, Vec<(String, Progress)>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
