//! The exchange with the endpoint's knowledge of paths: what it says of a path that begins, and what it learns of those in use.

use crate::connection::{Connection, Role, TransportConfig};
use crate::knowledge::{Knowledge, PathKey};
use crate::path::path::Path;
use crate::time::Instant;
use crate::trace::{ResumePhase, ResumeTrigger, TraceEvent};
use std::time::Duration;

/// The time after which the endpoint learns again of a path in use.
const INTERVAL: Duration = Duration::from_millis(500);

/// Looks up the paths that begin, and has those that resume share what is remembered. `epoch` is the time at the endpoint's
/// first instant, by which the knowledge is dated.
pub(crate) fn consult(connection: &mut Connection, knowledge: &mut Knowledge, epoch: Duration, now: Instant) {
    let Some(lifetime) = connection.config.path_memory.lifetime() else { return };
    if !connection.paths.open().any(Path::asks_knowledge) {
        return;
    }
    for id in connection.paths.ids() {
        let key = connection
            .paths
            .get(id)
            .filter(|path| path.is_lookup_due())
            .map(|path| path_key(connection, path));
        let Some(path) = connection.paths.get_mut(id) else { continue };
        match key {
            Some(Some(key)) => {
                let before = knowledge.get(&key, lifetime, now + epoch);
                if path.remember(key, before, lifetime, now) {
                    let window = path.route.window();
                    let (phase, trigger) = (ResumePhase::Reconnaissance, ResumeTrigger::Remembered);
                    let event = TraceEvent::ResumeChanged { path: id, phase, trigger, window };
                    connection.observer.trace(&event, now);
                }
            }
            Some(None) => path.forgo_memory(),
            None => {}
        }
        path.claim_window(knowledge, now);
    }
}

/// Has the endpoint learn of its paths, if it is time; of all that are over it does.
pub(crate) fn report(connection: &mut Connection, knowledge: &mut Knowledge, epoch: Duration, now: Instant) {
    let Some(lifetime) = connection.config.path_memory.lifetime() else { return };
    let is_over = !connection.lifecycle.is_open();
    let is_due = is_over || connection.paths.is_learning_due(INTERVAL, now);
    for path in connection.paths.open_mut() {
        let (changes, is_refuted) = path.route.take_resume_changes();
        for (phase, trigger) in changes {
            let window = path.route.window();
            connection
                .observer
                .trace(&TraceEvent::ResumeChanged { path: path.id, phase, trigger, window }, now);
        }
        if is_refuted {
            path.refute_knowledge(knowledge);
        }
        if is_due || path.is_account_wrong() {
            path.leave_knowledge(knowledge, lifetime, now + epoch);
        }
        if is_over {
            path.release_claim(knowledge);
        }
    }
    for path in connection.paths.abandoned_mut() {
        path.leave_knowledge(knowledge, lifetime, now + epoch);
        path.release_claim(knowledge);
    }
}

/// The connection is gone: it has nothing in flight.
pub(crate) fn leave(connection: &mut Connection, knowledge: &mut Knowledge) {
    connection.paths.open_mut().for_each(|path| path.release_claim(knowledge));
    connection.paths.abandoned_mut().for_each(|path| path.release_claim(knowledge));
}

/// The key of `path`; `None` if another open path has the same, for then neither can be told from the other.
fn path_key(connection: &Connection, path: &Path) -> Option<PathKey> {
    let key = key_of(path, &connection.config, connection.role);
    let is_same =
        |other: &Path| other.id != path.id && key_of(other, &connection.config, connection.role) == key;
    let is_unique = !connection.paths.open().any(is_same);
    is_unique.then_some(key)
}

fn key_of(path: &Path, config: &TransportConfig, role: Role) -> PathKey {
    let tuple = path.route.tuple;
    PathKey::new(config.link_of(tuple.local), tuple.local.ip(), tuple.remote.ip(), role)
}
