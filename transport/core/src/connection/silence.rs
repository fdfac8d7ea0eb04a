//! Paths that fall silent: what they carry is offered to others before it counts as lost, and they are asked now and then
//! whether they are back.
//!
//! A path is silent when its probe timeout fires, or before, when the oldest of several unanswered packets has waited as
//! long and nothing else was answered meanwhile: packets that follow put the timeout off.

use crate::PathId;
use crate::connection::{Connection, Event, PathEvent};
use crate::delivery::Receipts;
use crate::path::path::{Liveness, Path};
use crate::time::Instant;
use std::time::Duration;

/// Probes that one probe timeout allows (RFC 9002 §6.2.4: up to two).
const PROBES: u8 = 2;

impl Connection {
    /// Takes note if path `id` has not answered in time.
    pub(super) fn watch(&mut self, id: PathId, now: Instant) {
        if !self.is_watched(id) {
            return;
        }
        let delay = self.peer_max_ack_delay();
        let Some(path) = self.paths.get(id) else { return };
        if path.silent_at(delay).is_some_and(|at| at <= now) {
            self.demote(id, now);
        }
    }

    /// Whether it matters early that path `id` does not answer: another path could take over.
    pub(super) fn is_watched(&self, id: PathId) -> bool {
        let takes_over =
            |path: &Path| path.liveness == Liveness::Answering && path.route.validation.is_validated();
        self.may_probe() && self.paths.open().any(|path| path.id != id && takes_over(path))
    }

    /// The probe timeout of path `id` fired.
    pub(super) fn probe_path(&mut self, id: PathId, now: Instant) {
        let Some(path) = self.paths.get_mut(id) else { return };
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2
        //# A PTO timer expiration event does not indicate packet loss and MUST NOT cause prior unacknowledged
        //# packets to be marked as lost
        path.pto.on_timeout();
        path.route.ecn.on_probe_timeout();
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
        //# When a PTO timer expires, a sender MUST send at least one ack- eliciting packet in the packet
        //# number space as a probe
        path.probes_due = PROBES;
        path.counters.probe_timeouts += 1;
        self.demote(id, now);
    }

    /// Path `id` is silent from now on, until it answers.
    fn demote(&mut self, id: PathId, now: Instant) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if matches!(path.liveness, Liveness::Silent { .. }) {
            return;
        }
        path.offered_below = 0;
        path.liveness = Liveness::Silent { since: now };
        self.events.push_back(Event::Path(PathEvent::Silent(id)));
    }

    /// Offers what paths carry that do not answer to those that do, oldest first and no more than they have room for:
    /// it may only be late, and the oldest data is what receivers wait for. Each packet is offered once in a silence.
    pub(super) fn offer_late_data(&mut self, now: Instant) {
        for id in self.paths.ids() {
            let quiet = self.paths.get(id).is_some_and(|path| path.liveness != Liveness::Answering);
            let mut room = if quiet { self.room_elsewhere(id, now) } else { 0 };
            while room > 0 {
                let Some((receipts, bytes, age)) = self.next_late(id, now) else { break };
                room = room.saturating_sub(bytes);
                for receipt in &receipts {
                    self.streams.on_silent(receipt, id, age);
                    // Control frames are small: a second copy costs less than waiting (RFC 9002 §6.2.4).
                    self.paths.on_lost(receipt);
                }
            }
        }
    }

    /// The oldest packet of path `id` that was not offered elsewhere yet: its receipts, size and age.
    fn next_late(&mut self, id: PathId, now: Instant) -> Option<(Receipts, usize, Duration)> {
        let path = self.paths.get_mut(id)?;
        let mut packets = path.sent.unacknowledged_from(path.offered_below);
        let packet = packets.find(|packet| packet.class.is_ack_eliciting())?;
        let late = (packet.receipts.clone(), packet.bytes, now.since(packet.sent_at));
        path.offered_below = packet.number + 1;
        Some(late)
    }

    /// Bytes that paths other than `silent` which answer could carry now.
    fn room_elsewhere(&self, silent: PathId, now: Instant) -> usize {
        self.paths
            .open()
            .filter(|path| path.id != silent && path.liveness == Liveness::Answering)
            .map(|path| path.route.room(path.sent.in_flight(), now))
            .fold(0, usize::saturating_add)
    }
}
