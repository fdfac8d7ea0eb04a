//! Hints about paths: what the peer tells, and whether it is told (docs/spec/path-hints.md).

use crate::PathId;
use crate::connection::paths::maintenance::PathMaintenance;
use crate::connection::receive::violation;
use crate::connection::{Connection, Event, PathEvent, Peer, TransportConfig};
use crate::error::{ErrorCode, TransportError};
use crate::path::hints::Told;
use crate::wire::frame::PathHints;
use crate::wire::transport_parameters::HintExchange;
use hvq_scheduler::Hints;

/// Returns true if both ends take part in the exchange of hints.
pub(in crate::connection) fn exchanges_hints(config: &TransportConfig, peer: &Peer) -> bool {
    config.path_hints == HintExchange::On && peer.parameters().path_hints == HintExchange::On
}

impl Connection {
    /// Returns the peer's latest hints about path `id`, as this end sees the channel: `rate` is that of what this end
    /// sends. `None` if the path is not open, or if the peer told nothing about it.
    ///
    /// They are shown as they were told. The connection itself believes less: see docs/spec/path-hints.md §5.
    pub fn peer_hints(&self, id: PathId) -> Option<Hints> {
        self.paths.get(id)?.channel().told()
    }
}

impl PathMaintenance<'_> {
    /// Takes PATH_HINTS. About paths that are over they are ignored.
    ///
    /// FRAME_ENCODING_ERROR if this end did not offer to take them, or if they name a path without multipath;
    /// PROTOCOL_VIOLATION if the peer did not offer, or for a path ID above the limit.
    pub(super) fn on_path_hints(&mut self, frame: &PathHints) -> Result<(), TransportError> {
        if self.terms.config.path_hints == HintExchange::Off {
            return Err(ErrorCode::FRAME_ENCODING_ERROR.because("PATH_HINTS was not offered"));
        }
        if !exchanges_hints(self.terms.config, self.terms.peer) {
            return Err(violation("PATH_HINTS without its transport parameter"));
        }
        let id = frame.path;
        // Path 0 is there without multipath, too.
        if id != PathId::ZERO {
            self.check_multipath(id)?;
        }
        if !self.owners.paths.lifecycles.accepts(id) {
            return Ok(());
        }
        let told = Told::of(frame);
        match self.owners.paths.get_mut(id) {
            Some(_) => self.hear_hints(id, told),
            None => self.owners.paths.early_hints.hear(id, told),
        }
        Ok(())
    }

    /// Takes the hints about path `id` that came before it was open.
    pub(super) fn take_early_hints(&mut self, id: PathId) {
        if let Some(told) = self.owners.paths.early_hints.take(id) {
            self.hear_hints(id, told);
        }
    }

    fn hear_hints(&mut self, id: PathId, told: Told) {
        let role = self.terms.role;
        if self.owners.paths.get_mut(id).is_some_and(|path| path.hear_hints(told, role)) {
            self.events.push(Event::Path(PathEvent::PeerHints(id)));
        }
    }
}
