//! A connection that begins on whichever of several paths answers first (RFC 8305).

use crate::connection::Connection;
use crate::handle_state::HandleState;
use crate::shared::State;
use crate::socket::Socket;
use crate::{ClientConfig, ConnectError, ConnectOptions, ConnectionError, LocalAddress, PathId, PathOptions};
use hvq_transport::connection::{Connection as Core, FourTuple, Role};
use hvq_transport::endpoint::{CandidatePath, ConnectionHandle, Dial, NetworkPath, RaceOptions};
use hvq_transport::time::Instant;
use std::io;
use std::sync::Arc;

/// The paths that a connection was given to begin on.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// Each with its addresses, unless its local address cannot be used.
    paths: Vec<(Option<FourTuple>, PathOptions)>,
    /// The index of the one on which it began.
    begun: Option<usize>,
    /// The number of times that another attempt took over.
    successions: u32,
    /// The reasons for which attempts failed before all had, by the addresses of each.
    failures: Vec<(FourTuple, ConnectionError)>,
}

impl Candidates {
    /// Takes note of where path 0 of `core` is. Returns its candidate if that is news.
    pub(crate) fn follow(&mut self, core: &Core) -> Option<(FourTuple, &PathOptions)> {
        let tuple = core.path_stats(PathId::ZERO)?.tuple;
        let index = self.paths.iter().position(|(known, _)| *known == Some(tuple))?;
        let before = self.begun.replace(index);
        if before == Some(index) {
            return None;
        }
        self.successions += u32::from(before.is_some());
        self.paths.get(index).map(|(_, path)| (tuple, path))
    }

    /// Nothing came of any attempt, and of these for reasons of their own.
    pub(crate) fn on_lost(&mut self, failures: Vec<(FourTuple, ConnectionError)>) {
        self.failures = failures;
    }

    /// All paths, and the reason for which the attempt over each failed before all had.
    pub(crate) fn attempts(&self) -> Vec<(PathOptions, Option<ConnectionError>)> {
        let reason = |tuple: &Option<FourTuple>| {
            let of = self.failures.iter().find(|(failed, _)| Some(*failed) == *tuple);
            of.map(|(_, error)| error.clone())
        };
        self.paths.iter().map(|(tuple, path)| (path.clone(), reason(tuple))).collect()
    }

    /// The path on which the connection began.
    pub(crate) fn begun(&self) -> Option<&PathOptions> {
        self.paths.get(self.begun?).map(|(_, path)| path)
    }

    /// Returns the number of times that another attempt took over.
    pub(crate) fn successions(&self) -> u32 {
        self.successions
    }

    fn others(&self) -> Vec<PathOptions> {
        let others = self.paths.iter().enumerate().filter(|(index, _)| Some(*index) != self.begun);
        others.map(|(_, (_, path))| path.clone()).collect()
    }
}

impl Connection {
    /// The attempts at the connection that were given, and the reasons for which single ones failed.
    pub(crate) fn begun_attempts(&self) -> Vec<(PathOptions, Option<ConnectionError>)> {
        self.reference().look(|_, slot| slot.candidates.attempts())
    }

    /// The paths of [`ConnectOptions`] on which the connection did not begin, in their order, for
    /// [`open_path`](Self::open_path); none if it was given but one.
    pub fn remaining_paths(&self) -> Vec<PathOptions> {
        self.reference().look(|_, slot| slot.candidates.others())
    }
}

/// Starts the attempts of a connection as `options` say.
pub(crate) fn start(
    state: &mut State,
    config: &ClientConfig,
    options: &ConnectOptions,
    now: Instant,
) -> Result<ConnectionHandle, ConnectError> {
    let found = find(state, options);
    let race = RaceOptions::default().with_replay(options.replay);
    let dial = Dial { server_name: &options.server_name, candidates: &found.candidates, options: race };
    let handle = match state.core.connect_racing(config, dial, now) {
        Ok(handle) => handle,
        Err(error) => {
            state.sockets.release_unused();
            return Err(found.refused.unwrap_or_else(|| error.into()));
        }
    };
    found.sockets.iter().for_each(|socket| state.sockets.hold(socket, handle));
    let begun = found.candidates.first().map(|candidate| candidate.way.tuple);
    let mut slot = HandleState::new(Role::Client, begun.expect("an attempt began over the first candidate"));
    slot.candidates = found.known;
    if let Some((_, path)) = state.core.get(handle).and_then(|core| slot.candidates.follow(core)) {
        slot.names.insert(PathId::ZERO, path.name.clone());
    }
    state.slots.insert(handle, Box::new(slot));
    Ok(handle)
}

/// The paths of a connection, with their addresses.
#[derive(Default)]
struct Found {
    known: Candidates,
    candidates: Vec<CandidatePath>,
    sockets: Vec<Arc<Socket>>,
    /// The error of the first destination that cannot be used.
    refused: Option<ConnectError>,
}

fn find(state: &mut State, options: &ConnectOptions) -> Found {
    let mut found = Found::default();
    for path in std::iter::once(&first(options)).chain(&options.alternatives) {
        let remote = path.remote.unwrap_or(options.remote);
        let obtained = state.sockets.obtain(Some(&path.local), remote);
        let obtained = match (obtained, &path.local) {
            (Err(error), LocalAddress::Link(local)) if error.kind() == io::ErrorKind::PermissionDenied => {
                state.sockets.obtain(Some(&local.without_interface()), remote)
            }
            (obtained, _) => obtained,
        };
        let tuple = match obtained {
            Ok(socket) => {
                let local = socket.source_for(remote);
                found.sockets.push(socket);
                Some(FourTuple { local, remote })
            }
            Err(source) => {
                let local = path.local.clone();
                found.refused.get_or_insert(ConnectError::Bind { local, source });
                None
            }
        };
        // Two attempts over the same addresses tell nothing that one does not.
        let tuple = tuple.filter(|tuple| found.candidates.iter().all(|other| other.way.tuple != *tuple));
        if let Some(tuple) = tuple {
            let way = NetworkPath { tuple, hints: path.hints };
            found.candidates.push(CandidatePath {
                way,
                congestion: path.congestion.clone(),
                dscp: path.dscp,
            });
        }
        found.known.paths.push((tuple, path.clone()));
    }
    found
}

/// The path that `options` prefer.
fn first(options: &ConnectOptions) -> PathOptions {
    let any = if options.remote.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    PathOptions {
        name: options.name.clone().unwrap_or_default(),
        local: options.local.clone().unwrap_or(LocalAddress::Ip(any)),
        remote: Some(options.remote),
        hints: options.hints,
        congestion: options.congestion.clone(),
        dscp: options.dscp,
    }
}
