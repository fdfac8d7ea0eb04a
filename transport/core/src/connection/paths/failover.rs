//! Paths that fall silent: what they carry is offered to others before it counts as lost, and they are asked whether they
//! are back for as long as there is something to carry.
//!
//! A path is silent when its probe timeout fires, or before, when the oldest of several unanswered packets has waited as
//! long and nothing else was answered meanwhile: packets that follow put the timeout off. See [`Liveness`].
//!
//! [`Liveness`]: crate::path::liveness::Liveness

use crate::PathId;
use crate::connection::control::ControlFrames;
use crate::connection::loss_recovery::LossRecovery;
use crate::connection::{Event, PathEvent, Role};
use crate::datagram::Datagrams;
use crate::path::path::Path;
use crate::path::paths::Paths;
use crate::recovery_token::RecoveryToken;
use crate::stream::Streams;
use crate::time::Instant;

/// Packets of each path that are looked at for what they carry, the oldest.
const LOOKED_AT: usize = 16;

impl LossRecovery<'_> {
    /// Takes note if path `id` has not answered in time, or asks it again.
    pub(in crate::connection) fn watch(&mut self, id: PathId, now: Instant) {
        let delay = self.terms.max_ack_delay();
        let Some(path) = self.owners.paths.get(id) else { return };
        if self.may_probe() && self.owners.paths.overdue_at(path, delay).is_some_and(|at| at <= now) {
            self.suspect(id, now);
        } else if self.may_probe()
            && self.owners.paths.ask_at(path, delay).is_some_and(|at| at <= now)
            && has_to_carry(
                self.owners.streams,
                self.owners.datagrams,
                self.owners.control,
                self.owners.paths,
            )
        {
            let Some(path) = self.owners.paths.get_mut(id) else { return };
            path.liveness.on_pace(now);
        }
    }

    /// The probe timeout of path `id` fired.
    pub(in crate::connection) fn probe_path(&mut self, id: PathId, now: Instant) {
        let Some(path) = self.owners.paths.get_mut(id) else { return };
        if path.on_probe_timeout(now) {
            self.on_silent(id, now);
        }
        self.supply_ids(id);
    }

    /// Nothing came back since a client shows another connection ID on path `id`: the server may have none left to answer
    /// with (RFC 9000 §5.1.1, §9.5), and cannot ask for one. It gets new ones with the probes, once until it answers.
    fn supply_ids(&mut self, id: PathId) {
        if self.terms.role == Role::Server
            || !self.terms.lifecycle.is_confirmed()
            || !self.owners.paths.are_silent_everywhere()
        {
            return;
        }
        // A move that is not validated yet may be taken back (RFC 9000 §9.3.2).
        let stays = |path: &&Path| !path.route.validation.is_pending();
        let Some(path) = self.owners.paths.get(id).filter(stays) else { return };
        if path.sent.largest_acknowledged().is_none_or(|largest| largest < path.destination_since()) {
            let _without_connection_ids_none_is_needed = self.owners.paths.local_ids.request_retirement(id);
        }
    }

    /// Path `id` is silent from now on, until it answers.
    fn suspect(&mut self, id: PathId, now: Instant) {
        let Some(path) = self.owners.paths.get_mut(id) else { return };
        if path.liveness.on_unanswered(now) {
            self.on_silent(id, now);
        }
    }

    /// Path `id`, which answered, is silent. Acknowledgements that it carried of late most likely went nowhere: other paths
    /// take them, with probes, which are no bare acknowledgements (RFC 9000 §13.2.1).
    fn on_silent(&mut self, id: PathId, now: Instant) {
        self.events.push(Event::Path(PathEvent::Silent(id)));
        self.owners.paths.advise(id);
        let carrier =
            self.owners.paths.get(id).map(|path| path.liveness).filter(|liveness| liveness.has_steered());
        let Some(since) = carrier.map(|liveness| liveness.acknowledged_at()) else { return };
        for path in self.owners.paths.open_mut().filter(|path| path.id != id) {
            if path.liveness.was_heard_since(since) {
                path.received.repeat(now);
                path.liveness.ask(now);
            }
        }
    }
}

/// Returns true if anything waits to be sent or to be known to have arrived. Probes alone are no reason for more of
/// them.
pub(in crate::connection) fn has_to_carry(
    streams: &Streams,
    datagrams: &Datagrams,
    control: &ControlFrames,
    paths: &Paths,
) -> bool {
    streams.has_sendable()
        || streams.has_control()
        || streams.has_unacknowledged()
        || datagrams.has_waiting()
        || !control.is_empty()
        || paths.are_silent_everywhere() && paths.open().any(carries_control)
}

/// Returns true if `path` has frames in flight that must arrive, beside those of streams.
fn carries_control(path: &Path) -> bool {
    let is_reliable =
        |token: &RecoveryToken| !matches!(token, RecoveryToken::Ack { .. } | RecoveryToken::Datagram(_));
    path.sent.unacknowledged().take(LOOKED_AT).any(|packet| packet.tokens.iter().any(is_reliable))
}
