//! Opportunistic retransmission: what waits in the queue of a link that has collapsed is offered to other paths.
//!
//! The transport finds the evidence ([`Path::collapsed_rate`]) and bounds the bytes; the policy says of each packet whether a
//! copy is worth what it costs elsewhere ([`Scheduler::copies`]).
//!
//! [`Path::collapsed_rate`]: crate::path::path::Path::collapsed_rate
//! [`Scheduler::copies`]: hvq_scheduler::Scheduler::copies

use crate::PathId;
use crate::connection::frame_owners::frame_owners;
use crate::connection::send::Sender;
use crate::path::collapse::Overdue;
use crate::time::Instant;
use hvq_scheduler::{Content, History, Item};

/// Bytes that a connection copies whatever else it sends: the queue of an ordinary link.
const FIRST: u64 = 256 * 1024;
/// One over the share of all that a connection sends that it copies beyond.
const SHARE: u64 = 16;
/// Packets of a path that are looked at in a pass.
const LOOKED_AT: usize = 1024;

impl Sender<'_> {
    /// Offers what is in flight on paths that have collapsed to others, the oldest first and no more than they have room for.
    pub(in crate::connection) fn offer_overdue_data(&mut self, now: Instant) {
        // A path that is alone has nobody to leave it to.
        if self.paths.open().nth(1).is_none() {
            return;
        }
        for id in self.paths.ids() {
            let late = self.worth_copying(id, now);
            if late.is_empty() {
                continue;
            }
            let path = self.paths.get_mut(id).expect("the path is open");
            let oldest = path.sent.oldest_unacked().map_or(0, |packet| packet.number);
            late.iter().for_each(|late| path.copies.note(late.number, late.packet.bytes, oldest));
            let mut owners = frame_owners!(self);
            for Overdue { packet, .. } in &late {
                packet.tokens.iter().for_each(|token| owners.on_token_late(token, id, packet.age));
            }
        }
    }

    /// The packets in flight on path `id` of which the policy wants copies now.
    fn worth_copying(&mut self, id: PathId, now: Instant) -> Vec<Overdue> {
        let path = self.paths.get(id).expect("the path is open");
        // Most paths carry what they promise.
        let Some(rate) = path.collapsed_rate(now) else { return Vec::new() };
        let room = self.paths.room_beside(id, now).min(self.copy_allowance());
        if room == 0 {
            return Vec::new();
        }
        let views = self.views(now);
        let (mut late, mut bytes) = (Vec::new(), 0);
        for overdue in path.overdue(now).take(LOOKED_AT) {
            let together = bytes + overdue.packet.bytes;
            let history = History::Unacknowledged { on: id, age: overdue.packet.age };
            let item = self.scheduler.item(Content::Control, together, u64::MAX, now);
            let expected = rate.transmission_time(overdue.ahead);
            if !self.scheduler.copies(&Item { history, ..item }, &views, expected) {
                continue;
            }
            bytes = together;
            late.push(overdue);
            if bytes >= room {
                break;
            }
        }
        late
    }

    /// Bytes that may still be copied.
    fn copy_allowance(&self) -> usize {
        let (sent, copied) = self.paths.open().fold((0_u64, 0_u64), |(sent, copied), path| {
            (sent + path.counters().bytes_sent, copied + path.copies.bytes())
        });
        usize::try_from((FIRST + sent / SHARE).saturating_sub(copied)).unwrap_or(usize::MAX)
    }
}
