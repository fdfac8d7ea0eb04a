//! Answers of an endpoint without a connection: Retry, Version Negotiation, refusals and stateless resets. None of them
//! is longer than what it answers, and none answers one of its kind.

use crate::PathId;
use crate::connection::{Datagram, Dscp, Role, Transmit};
use crate::crypto::initial::initial_keys;
use crate::crypto::reset::{put_stateless_reset, reset_length};
use crate::crypto::retry::integrity_tag;
use crate::endpoint::Endpoint;
use crate::endpoint::gate::FirstInitial;
use crate::error::ErrorCode;
use crate::recovery::ecn::Ecn;
use crate::time::Instant;
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::{ConnectionClose, Frame};
use crate::wire::header::{
    LongHeader, LongKind, destination_of, patch_length, put_retry_without_tag, put_version_negotiation,
};
use crate::wire::overhead::TAG;
use crate::wire::version::Version;
use bytes::Bytes;
use rand::RngCore;

/// Answers that wait for being sent at most. Beyond it strangers get none, so that a flood takes no memory.
pub(super) const OUTBOX_LIMIT: usize = 1_024;
/// The shortest connection ID that a Retry packet gives: as unpredictable as a client's own choice (RFC 9000 §7.2).
const LEAST_RETRY_ID: usize = 8;

impl Endpoint {
    /// Asks the sender of `initial` to prove its address (RFC 9000 §8.1.2).
    pub(super) fn send_retry(&mut self, datagram: &Datagram, initial: &FirstInitial<'_>, now: Instant) {
        let (from, original) = (initial.from, initial.ids.destination);
        if self.retried.contains(from, &original, now) {
            return;
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
        //# This value MUST NOT be equal to the Destination Connection ID field of the packet sent by the
        //# client
        let source = if self.ids.length() >= LEAST_RETRY_ID {
            self.ids.generate(&mut self.rng)
        } else {
            ConnectionId::random(&mut self.rng, LEAST_RETRY_ID)
        };
        let token = self.gate.retry_token(initial, source, &mut self.rng, now + self.config.epoch);
        let mut bytes = Vec::new();
        put_retry_without_tag(&mut bytes, initial.version, &initial.ids.source, &source, &token);
        let tag = integrity_tag(initial.version, &initial.ids.destination, &bytes);
        bytes.extend_from_slice(&tag);
        if self.answer(datagram, bytes) {
            self.retried.note(from, original, now);
            self.stats.retries += 1;
        }
    }

    /// Tells the sender of `initial` that there will be no connection, and keeps no state (RFC 9000 §5.2.2, §8.1.2).
    pub(super) fn send_refusal(&mut self, datagram: &Datagram, initial: &FirstInitial<'_>, code: ErrorCode) {
        let (seal, _) = initial_keys(initial.version, &initial.ids.destination, Role::Server);
        let header = LongHeader {
            kind: LongKind::Initial,
            version: initial.version,
            destination: initial.ids.source,
            source: initial.ids.destination,
            token: &[],
        };
        let mut bytes = Vec::new();
        let layout = header.put(&mut bytes, 0, 4);
        let close = ConnectionClose::Transport { code, frame_type: 0, reason: Bytes::new() };
        Frame::ConnectionClose(close).put(&mut bytes);
        patch_length(&mut bytes, &layout, 0, TAG);
        seal.seal(&mut bytes, 0, &layout, PathId::ZERO, 0);
        if self.answer(datagram, bytes) {
            self.stats.refusals += 1;
        }
    }

    /// Says which versions the server speaks (RFC 9000 §6.1). The connection IDs are those of the packet, which may be
    /// longer than those of version 1.
    pub(super) fn negotiate_version(&mut self, datagram: &Datagram, ids: (&[u8], &[u8]), now: Instant) {
        if !self.budgets.negotiations.take(now) {
            return;
        }
        let random = self.rng.next_u32();
        let mut bytes = Vec::new();
        // RFC 9000 §6.3: one reserved version exercises the peer's negotiation.
        let Some(server) = &self.server else { return };
        let mut versions = server.transport.versions.list().to_vec();
        versions.extend(server.transport.greasing.draw(&mut self.rng).map(Version::reserved));
        let (destination, source) = ids;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
        //# The server MUST include the value from the Source Connection ID field of the packet it receives in
        //# the Destination Connection ID field
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
        //# The value for Source Connection ID MUST be copied from the Destination Connection ID of the
        //# received packet, which is initially randomly selected by a client
        put_version_negotiation(&mut bytes, source, destination, &versions, random.to_be_bytes()[0]);
        if self.answer(datagram, bytes) {
            self.stats.version_negotiations += 1;
        }
    }

    /// Tells the sender of a packet for a connection that is gone that it is gone (RFC 9000 §10.3).
    pub(super) fn send_reset(&mut self, datagram: &Datagram, now: Instant) {
        let Some(length) = reset_length(datagram.bytes.len()) else { return };
        let destination = destination_of(&datagram.bytes, self.config.id_length);
        let Some(id) = destination.filter(|id| !id.is_empty()) else { return };
        //= https://www.rfc-editor.org/rfc/rfc9000#section-21.11
        //# More generally, servers MUST NOT generate a stateless reset if a connection with the corresponding connection
        //# ID could be active on any endpoint using the same static key.
        if self.ids.may_be_elsewhere(&id) {
            return;
        }
        if !self.budgets.resets.take(now) {
            return;
        }
        let mut bytes = Vec::with_capacity(length);
        put_stateless_reset(&mut bytes, &mut self.rng, &self.reset_key.token(&id), length);
        if self.answer(datagram, bytes) {
            self.stats.stateless_resets += 1;
        }
    }

    /// Sends `bytes` back to where `datagram` came from; false if too much waits already.
    fn answer(&mut self, datagram: &Datagram, bytes: Vec<u8>) -> bool {
        if self.transmits.len() >= OUTBOX_LIMIT {
            return false;
        }
        debug_assert!(bytes.len() < datagram.bytes.len(), "an answer to a stranger amplifies");
        self.transmits.push_back(Transmit {
            local: datagram.local,
            remote: datagram.remote,
            ecn: Ecn::NotEct,
            dscp: Dscp::DEFAULT,
            bytes,
            segment: None,
        });
        true
    }
}
