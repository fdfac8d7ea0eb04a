//! Paths of a connection: opening them, watching them, and saying what is known about them.

use crate::config::Dscp;
use crate::connection::Connection;
use crate::handle_state::PathFate;
use crate::path::Status;
use crate::stats::PathStats;
use crate::{Hints, OpenPathError, PathCommandError, PathEvent, PathId, PathOptions};
use hvq_transport::congestion::Congestion;
use hvq_transport::connection::{FourTuple, OpenPathError as Refusal};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// The code of PATH_ABANDON for a path whose link or socket is gone: PATH_UNSTABLE_OR_POOR (RFC 10069 §4.2.1).
pub(crate) const GONE: u64 = 0x3e76;
/// The time for which [`Connection::open_path`] and [`Connection::migrate_path`] wait for the peer to permit it.
const PERMISSION_PATIENCE: Duration = Duration::from_secs(3);
/// The longest time for which they wait for the validation, which the transport ends itself.
const VALIDATION_PATIENCE: Duration = Duration::from_secs(30);

/// The state of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Its validation is under way; data may flow already.
    Validating,
    /// The peer answered over it.
    Validated,
    /// Its probe timeout fired, and nothing has come over it since.
    Silent,
}

/// An open path.
#[derive(Clone, PartialEq, Debug)]
pub struct PathInfo {
    /// The path.
    pub id: PathId,
    /// The name of the path, if this endpoint opened it or was told by [`Connection::name_path`].
    pub name: Option<String>,
    /// The state of the path.
    pub state: PathState,
    /// Counters and estimates.
    pub stats: PathStats,
}

/// The events on the paths of a connection from the call of [`Connection::path_events`] on.
#[derive(Debug)]
pub struct PathEvents {
    receiver: Option<broadcast::Receiver<PathEvent>>,
}

impl PathEvents {
    /// The next event; `None` once the connection ended. A receiver that falls behind by more than 64 events misses the
    /// oldest.
    pub async fn recv(&mut self) -> Option<PathEvent> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match receiver.recv().await {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

impl Connection {
    /// Opens a path (RFC 10069 §3.1), and waits until the peer has answered over it. Data may flow before. Only a client
    /// opens paths. Dropping the future leaves the path open.
    ///
    /// # Errors
    /// See [`OpenPathError`]: among others, the peer permits no further path within three seconds, or nothing comes back.
    pub async fn open_path(&self, options: PathOptions) -> Result<PathId, OpenPathError> {
        let begun = self.begun();
        loop {
            let before = self.successions();
            let path = self.start_path_beside(&options, begun.as_ref()).await?;
            match self.path_validated(path).await {
                Ok(()) => return Ok(path),
                // Another attempt at the connection took over, which has the first path only.
                Err(OpenPathError::Abandoned { .. }) if self.successions() != before => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The path on which the connection began, of several that it was given.
    pub(crate) fn begun(&self) -> Option<PathOptions> {
        self.reference().look(|_, slot| slot.candidates.begun().cloned())
    }

    /// Returns the number of times that another attempt took over.
    fn successions(&self) -> u32 {
        self.reference().look(|_, slot| slot.candidates.successions())
    }

    /// Opens a path and returns as soon as it is there, so that data flows while its validation goes on. Waits until
    /// the peer permits the path, at most three seconds.
    ///
    /// # Errors
    /// See [`OpenPathError`].
    pub async fn start_path(&self, options: PathOptions) -> Result<PathId, OpenPathError> {
        self.start_path_beside(&options, self.begun().as_ref()).await
    }

    /// Opens the path of `options`, or the other of the two if the connection, which had begun on `begun`, goes on over the
    /// former instead.
    async fn start_path_beside(
        &self,
        options: &PathOptions,
        begun: Option<&PathOptions>,
    ) -> Result<PathId, OpenPathError> {
        let open = || {
            let taken = self.begun();
            let other = begun.filter(|begun| taken.as_ref() == Some(options) && *begun != options);
            self.try_start_path(other.unwrap_or(options))
        };
        self.once_permitted(open, |error| match error {
            OpenPathError::Refused(Refusal::NoConnectionId | Refusal::LimitReached) => true,
            // With 0-RTT the application has the connection before the handshake is complete.
            OpenPathError::Refused(Refusal::NotConnected) => self.is_early_data(),
            _ => false,
        })
        .await
    }

    /// Makes an `attempt` at a path again each time that something happened to the paths, for as long as its error
    /// `is_early`: the peer has yet to permit it. After three seconds the last attempt tells what is missing.
    pub(crate) async fn once_permitted<T, E>(
        &self,
        attempt: impl Fn() -> Result<T, E>,
        is_early: impl Fn(&E) -> bool,
    ) -> Result<T, E> {
        let attempts = poll_fn(|context| {
            // Registered before the attempt, so that no event in between is missed.
            self.reference().look(|_, slot| slot.path_wakers.register(context.waker()));
            match attempt() {
                Err(error) if is_early(&error) => Poll::Pending,
                result => Poll::Ready(result),
            }
        });
        match self.reference().shared().within(PERMISSION_PATIENCE, attempts).await {
            Some(result) => result,
            None => attempt(),
        }
    }

    /// Waits until the peer has answered over `path`.
    ///
    /// # Errors
    /// See [`OpenPathError`].
    pub async fn path_validated(&self, path: PathId) -> Result<(), OpenPathError> {
        let validated = poll_fn(|context| self.poll_path_validated(context, path));
        let late = OpenPathError::TimedOut { path, after: VALIDATION_PATIENCE };
        self.reference().shared().within(VALIDATION_PATIENCE, validated).await.unwrap_or(Err(late))
    }

    pub(crate) fn try_start_path(&self, options: &PathOptions) -> Result<PathId, OpenPathError> {
        let remote = options.remote.unwrap_or_else(|| self.remote_address());
        let (shared, handle) = (self.reference().shared(), self.reference().handle());
        let now = shared.now();
        let mut state = shared.lock();
        let state = &mut *state;
        let slot = state.slots.get_mut(&handle).expect("a slot lives as long as its reference");
        slot.check_open()?;
        let core = state.core.connection(handle).ok_or(Refusal::NotConnected)?;
        let bind = |source| OpenPathError::Bind { local: options.local.clone(), source };
        let socket = state.sockets.obtain(Some(&options.local), remote).map_err(bind)?;
        let tuple = FourTuple { local: socket.source_for(remote), remote };
        let opened = core.open_path(tuple, now);
        // A refused attempt too may have something to send: that it was blocked (RFC 10069 §4.6).
        if let Ok(path) = opened {
            if options.hints != Hints::NONE && core.set_hints(path, options.hints).is_err() {
                tracing::debug!(%path, "a path that was just opened takes no hints");
            }
            if let Some(congestion) = options.congestion.clone()
                && core.set_congestion(path, congestion).is_err()
            {
                tracing::debug!(%path, "a path that was just opened takes no congestion controller");
            }
            if core.set_dscp(path, options.dscp).is_err() {
                tracing::debug!(%path, "a path that was just opened takes no codepoint");
            }
            slot.fates.insert(path, PathFate::Validating);
            slot.names.insert(path, options.name.clone());
            state.sockets.hold(&socket, handle);
        }
        state.sockets.release_unused();
        state.wake_driver();
        Ok(opened?)
    }

    fn poll_path_validated(
        &self,
        context: &mut Context<'_>,
        path: PathId,
    ) -> Poll<Result<(), OpenPathError>> {
        self.reference().look(|_, slot| {
            match slot.fates.get(&path) {
                Some(PathFate::Validated | PathFate::Silent) => return Poll::Ready(Ok(())),
                Some(PathFate::Unreachable) => return Poll::Ready(Err(OpenPathError::Unreachable(path))),
                Some(&PathFate::Abandoned { code }) => {
                    return Poll::Ready(Err(OpenPathError::Abandoned { path, code }));
                }
                Some(PathFate::Validating) | None => {}
            }
            slot.check_open()?;
            slot.path_wakers.register(context.waker());
            Poll::Pending
        })
    }

    /// The open paths, by ID; those of the end once the connection ended.
    pub fn paths(&self) -> Vec<PathInfo> {
        self.reference().look(|core, slot| {
            let mut paths: Vec<_> =
                slot.stats(core).paths.into_iter().map(|stats| slot.path_info(stats)).collect();
            paths.sort_by_key(|path| path.id);
            paths
        })
    }

    /// One open path.
    pub fn path(&self, id: PathId) -> Option<PathInfo> {
        self.paths().into_iter().find(|path| path.id == id)
    }

    /// Gives up a path with an error code for the peer, 0 for none (RFC 10069 §3.4). Data in flight on it is sent on
    /// other paths.
    ///
    /// # Errors
    /// The path is not open, or the last one.
    pub fn abandon_path(&self, id: PathId, code: u64) -> Result<(), PathCommandError> {
        self.reference().command(|access| {
            let now = access.now();
            let core = access.core.ok_or(PathCommandError::UnknownPath)?;
            core.abandon_path(id, code, now)
        })
    }

    /// Tells the peer whether it should use a path, or only while no other works (RFC 10069 §3.3); this end does the same.
    ///
    /// # Errors
    /// The path is not open.
    pub fn set_path_status(&self, id: PathId, status: Status) -> Result<(), PathCommandError> {
        self.reference()
            .command(|access| access.core.ok_or(PathCommandError::UnknownPath)?.set_path_status(id, status))
    }

    /// Says what is known about the channel of a path. The peer is told, if both ends exchange hints
    /// ([`TransportConfig::set_path_hints`](crate::TransportConfig::set_path_hints)).
    ///
    /// # Errors
    /// The path is not open.
    pub fn set_hints(&self, id: PathId, hints: Hints) -> Result<(), PathCommandError> {
        self.reference()
            .command(|access| access.core.ok_or(PathCommandError::UnknownPath)?.set_hints(id, hints))
    }

    /// Returns the peer's hints about the channel of a path, as this end sees it: `rate` is that of what this end sends.
    /// `None` if it told nothing. [`PathEvent::PeerHints`](crate::PathEvent) says when there are others.
    ///
    /// # Errors
    /// The path is not open.
    pub fn peer_hints(&self, id: PathId) -> Result<Option<Hints>, PathCommandError> {
        self.reference().command(|access| {
            let core = access.core.ok_or(PathCommandError::UnknownPath)?;
            if core.path_ids().contains(&id) {
                Ok(core.peer_hints(id))
            } else {
                Err(PathCommandError::UnknownPath)
            }
        })
    }

    /// Puts a path under another congestion controller, which begins in its initial state.
    ///
    /// # Errors
    /// The path is not open.
    pub fn set_congestion(
        &self,
        id: PathId,
        congestion: impl Into<Congestion>,
    ) -> Result<(), PathCommandError> {
        self.reference().command(|access| {
            access.core.ok_or(PathCommandError::UnknownPath)?.set_congestion(id, congestion)
        })
    }

    /// Marks what is sent on a path with a Differentiated Services codepoint (RFC 10069 §5.2).
    ///
    /// # Errors
    /// The path is not open.
    pub fn set_dscp(&self, id: PathId, dscp: Dscp) -> Result<(), PathCommandError> {
        self.reference()
            .command(|access| access.core.ok_or(PathCommandError::UnknownPath)?.set_dscp(id, dscp))
    }

    /// Has a PING sent on a path after each `period` of its silence, whatever the configuration says; `None` for no PINGs.
    ///
    /// # Errors
    /// The path is not open.
    pub fn set_path_keep_alive(&self, id: PathId, period: Option<Duration>) -> Result<(), PathCommandError> {
        self.reference().command(|access| {
            access.core.ok_or(PathCommandError::UnknownPath)?.set_path_keep_alive(id, period)
        })
    }

    /// Has a PING sent on a path now, which tells whether it answers: its network may be back, for instance.
    ///
    /// # Errors
    /// The path is not open.
    pub fn ping_path(&self, id: PathId) -> Result<(), PathCommandError> {
        self.reference().command(|access| {
            let now = access.now();
            access.core.ok_or(PathCommandError::UnknownPath)?.ping_path(id, now)
        })
    }

    /// Uses another connection ID of the peer on a path from here on (RFC 9000 §5.1.2).
    ///
    /// # Errors
    /// The path is not open, or the peer has issued no other connection ID yet.
    pub fn rotate_connection_id(&self, id: PathId) -> Result<(), PathCommandError> {
        self.reference().command(|access| {
            let now = access.now();
            let core = access.core.ok_or(PathCommandError::UnknownPath)?;
            core.rotate_connection_id(id, now)
        })
    }

    /// Asks the peer to retire the connection IDs of this endpoint on a path, for new ones (RFC 9000 §5.1.2).
    ///
    /// # Errors
    /// The path is not open, or the connection IDs of this endpoint are empty.
    pub fn retire_connection_ids(&self, id: PathId) -> Result<(), PathCommandError> {
        self.reference()
            .command(|access| access.core.ok_or(PathCommandError::UnknownPath)?.retire_connection_ids(id))
    }

    /// Gives a path the name under which [`paths`](Self::paths) lists it; the peer does not learn it.
    pub fn name_path(&self, id: PathId, name: impl Into<String>) {
        let name = name.into();
        self.reference().look(|_, slot| slot.names.insert(id, name));
    }

    /// Returns the events on paths from now on.
    pub fn path_events(&self) -> PathEvents {
        PathEvents { receiver: self.reference().look(|_, slot| slot.subscribe()) }
    }
}
