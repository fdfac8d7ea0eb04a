//! The exchange with the endpoint's knowledge of paths: what it says of a path that begins, and what it learns of those in use.

use crate::PathId;
use crate::connection::observe::Observer;
use crate::connection::{Connection, Role, Step, TransportConfig};
use crate::knowledge::{Knowledge, PathKey};
use crate::path::path::Path;
use crate::time::Instant;
use crate::trace::{ResumePhase, ResumeTrigger, TraceEvent};
use hvq_scheduler::Bandwidth;
use smallvec::SmallVec;
use std::net::SocketAddr;
use std::time::Duration;

/// The time after which the endpoint learns again of a path in use.
const INTERVAL: Duration = Duration::from_millis(500);

/// Polls `connection`, which has no event left to tell. It first hears what the endpoint knows of its paths, and then tells what
/// it measured. `epoch` is the time at the endpoint's first instant, by which the knowledge is dated.
pub(crate) fn poll(
    connection: &mut Connection,
    knowledge: &mut Knowledge,
    epoch: Duration,
    now: Instant,
) -> Step {
    consult(connection, knowledge, epoch, now);
    watch(connection, knowledge);
    let step = connection.serve(now);
    report(connection, knowledge, epoch, now);
    step
}

/// Looks up the paths that begin, and has those that resume share what is remembered.
fn consult(connection: &mut Connection, knowledge: &mut Knowledge, epoch: Duration, now: Instant) {
    let Some(lifetime) = connection.config.path_memory.lifetime() else { return };
    if !connection.paths.open().any(Path::asks_knowledge) {
        return;
    }
    let asking = connection.paths.open().filter(|path| path.asks_knowledge()).map(|path| path.id);
    for id in asking.collect::<SmallVec<[PathId; 4]>>() {
        let path = connection.paths.get(id).expect("the path is open");
        let key = key_of(path, &connection.config, connection.role);
        let is_told_apart = is_unique(connection, id, &key);
        let path = connection.paths.get_mut(id).expect("the path is open");
        if path.is_lookup_due() && !is_told_apart {
            path.forgo_memory();
        } else if path.is_lookup_due()
            && path.remember(knowledge.get(&key, lifetime, now + epoch), lifetime, now)
        {
            let window = path.route.window();
            let (phase, trigger) = (ResumePhase::Reconnaissance, ResumeTrigger::Remembered);
            let event = TraceEvent::ResumeChanged { path: id, phase, trigger, window };
            connection.observer.trace(&event, now);
        }
        path.claim_window(&key, knowledge, now);
    }
}

/// Has the endpoint watch what arrives on the channels of a client of which a rate is promised. Of a server's they are not: what
/// comes from many clients passed as many channels.
fn watch(connection: &mut Connection, knowledge: &mut Knowledge) {
    if connection.role == Role::Server {
        return;
    }
    for path in connection.paths.open_mut().filter(|path| path.channel().asks_receipt()) {
        let local = path.route.tuple.local;
        knowledge.watch(local, &path.channel().promised());
        let _it_goes_with_the_hints = path.hear_received_rate(knowledge.received_rate(local));
    }
}

/// Has the endpoint learn of its paths, if it is time; of all that are over it does.
fn report(connection: &mut Connection, knowledge: &mut Knowledge, epoch: Duration, now: Instant) {
    let Some(lifetime) = connection.config.path_memory.lifetime() else { return };
    let is_over = !connection.lifecycle.is_open();
    let is_due = is_over || connection.paths.is_learning_due(INTERVAL, now);
    let (config, role) = (&connection.config, connection.role);
    for path in connection.paths.open_mut() {
        if path.route.careful_resume().is_some() && tell_of_resume(path, &mut connection.observer, now) {
            knowledge.forget(&key_of(path, config, role));
        }
        if is_due || path.is_account_wrong() {
            path.leave_knowledge(&key_of(path, config, role), knowledge, lifetime, now + epoch);
        }
        if is_over {
            path.release_claim(knowledge);
        }
    }
    for path in connection.paths.abandoned_mut().filter(|path| !path.is_without_memory()) {
        path.leave_knowledge(&key_of(path, config, role), knowledge, lifetime, now + epoch);
        path.release_claim(knowledge);
    }
}

/// Packets arrive at `local` at `rate`, which refutes what was promised; `None` if nothing refutes it any more. Returns true if that is
/// news for a path of `connection`.
pub(crate) fn hear_received_rate(
    connection: &mut Connection,
    local: SocketAddr,
    rate: Option<Bandwidth>,
) -> bool {
    if connection.role == Role::Server {
        return false;
    }
    let mut is_news = false;
    for path in connection.paths.open_mut().filter(|path| path.route.tuple.local == local) {
        is_news |= path.hear_received_rate(rate);
    }
    is_news
}

/// Tells the tracer how careful resume went on. Returns true if what is remembered of `path` does not hold.
fn tell_of_resume(path: &mut Path, observer: &mut Observer, now: Instant) -> bool {
    let (changes, is_refuted) = path.route.take_resume_changes();
    for (phase, trigger) in changes {
        let window = path.route.window();
        observer.trace(&TraceEvent::ResumeChanged { path: path.id, phase, trigger, window }, now);
    }
    is_refuted && path.is_known()
}

/// The connection is gone: it has nothing in flight.
pub(crate) fn leave(connection: &mut Connection, knowledge: &mut Knowledge) {
    connection.paths.open_mut().for_each(|path| path.release_claim(knowledge));
    connection.paths.abandoned_mut().for_each(|path| path.release_claim(knowledge));
}

/// Returns true if no open path but `id` has `key`, for otherwise neither can be told from the other.
fn is_unique(connection: &Connection, id: PathId, key: &PathKey) -> bool {
    let is_same = |other: &Path| other.id != id && key_of(other, &connection.config, connection.role) == *key;
    !connection.paths.open().any(is_same)
}

fn key_of(path: &Path, config: &TransportConfig, role: Role) -> PathKey {
    let tuple = path.route.tuple;
    PathKey::new(config.link_of(tuple.local), tuple.local.ip(), tuple.remote.ip(), role)
}
