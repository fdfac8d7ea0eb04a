//! Paths that move to other local addresses (RFC 9000 §9).

use crate::connection::Connection;
use crate::handle_state::Move;
use crate::{Endpoint, LocalAddress, MigratePathError, PathId};
use hvq_transport::connection::{FourTuple, MigrateError, Moving};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

/// The longest time that a move is waited for; the transport ends it itself, earlier.
const PATIENCE: Duration = Duration::from_secs(30);

impl Connection {
    /// Moves a path to `local`, to the same remote address, once the server has answered there (RFC 9000 §9.2). Until
    /// then, and if it does not answer, the path stays where it is. Only a client moves paths. A port of 0 binds a new
    /// socket. Waits until the handshake is confirmed and the server has issued a connection ID for the move, at most
    /// three seconds.
    ///
    /// # Errors
    /// See [`MigratePathError`].
    pub async fn migrate_path(
        &self,
        id: PathId,
        local: impl Into<LocalAddress>,
    ) -> Result<(), MigratePathError> {
        self.move_to(id, &local.into(), Moving::Validated).await
    }

    /// Moves a path to `local` at once, because its local address is gone: a network that was left, for instance. Waits
    /// until the server has answered there; if it does not, the path goes back. Waits for all that
    /// [`migrate_path`](Self::migrate_path) waits for, too.
    ///
    /// # Errors
    /// See [`MigratePathError`].
    pub async fn rebind_path(
        &self,
        id: PathId,
        local: impl Into<LocalAddress>,
    ) -> Result<(), MigratePathError> {
        self.move_to(id, &local.into(), Moving::AtOnce).await
    }

    async fn move_to(
        &self,
        id: PathId,
        local: &LocalAddress,
        moving: Moving,
    ) -> Result<(), MigratePathError> {
        self.once_permitted(
            || self.start_move(id, local, moving),
            // An application has the connection a flight before the server's HANDSHAKE_DONE is here.
            |error| {
                matches!(
                    error,
                    MigratePathError::Refused(MigrateError::NotConfirmed | MigrateError::NoConnectionId)
                )
            },
        )
        .await?;
        self.path_moved(id).await
    }

    pub(crate) fn start_move(
        &self,
        id: PathId,
        local: &LocalAddress,
        moving: Moving,
    ) -> Result<(), MigratePathError> {
        let (shared, handle) = (self.reference().shared(), self.reference().handle());
        let now = shared.now();
        let mut state = shared.lock();
        let state = &mut *state;
        let slot = state.slots.get_mut(&handle).expect("a slot lives as long as its reference");
        slot.check_open()?;
        let core = state.core.connection(handle).ok_or(MigrateError::NotConfirmed)?;
        let remote = core.path_stats(id).ok_or(MigrateError::UnknownPath)?.tuple.remote;
        let bind = |source| MigratePathError::Bind { local: local.clone(), source };
        let socket = state.sockets.obtain(Some(local), remote).map_err(bind)?;
        let started = core.migrate(id, FourTuple { local: socket.source_for(remote), remote }, moving, now);
        if started.is_ok() {
            slot.moves.insert(id, Move::UnderWay);
            state.sockets.hold(&socket, handle);
        }
        state.sockets.release_unused();
        state.wake_driver();
        Ok(started?)
    }

    async fn path_moved(&self, id: PathId) -> Result<(), MigratePathError> {
        let moved = poll_fn(|context| self.poll_moved(context, id));
        let moved = self.reference().shared().within(PATIENCE, moved).await;
        moved.unwrap_or(Err(MigratePathError::Unreachable(id)))
    }

    fn poll_moved(&self, context: &mut Context<'_>, id: PathId) -> Poll<Result<(), MigratePathError>> {
        self.reference().look(|_, slot| {
            match slot.moves.get(&id) {
                Some(Move::Done) => return Poll::Ready(Ok(())),
                Some(Move::Failed) => return Poll::Ready(Err(MigratePathError::Unreachable(id))),
                Some(Move::UnderWay) | None => {}
            }
            slot.check_open()?;
            slot.path_wakers.register(context.waker());
            Poll::Pending
        })
    }
}

impl Endpoint {
    /// Moves every path that starts at the socket bound to `from` to one bound to `to`, at once, and returns how many
    /// moved. For an interface that changed its address; servers do not move.
    ///
    /// # Errors
    /// `to` cannot be bound.
    pub fn rebind(&self, from: SocketAddr, to: &LocalAddress) -> io::Result<usize> {
        let shared = self.shared();
        let now = shared.now();
        let mut state = shared.lock();
        let state = &mut *state;
        let mut moved = 0;
        let handles: Vec<_> = state.core.handles().collect();
        for handle in handles {
            let Some(core) = state.core.connection(handle) else { continue };
            for path in core.stats().paths.into_iter().filter(|path| path.tuple.local == from) {
                let remote = path.tuple.remote;
                let socket = state.sockets.obtain(Some(to), remote)?;
                let tuple = FourTuple { local: socket.source_for(remote), remote };
                if core.migrate(path.id, tuple, Moving::AtOnce, now).is_ok() {
                    state.sockets.hold(&socket, handle);
                    moved += 1;
                }
            }
        }
        state.sockets.release_unused();
        state.wake_driver();
        Ok(moved)
    }
}
