//! Key updates of 1-RTT packets and the limits of keys (RFC 9001 §6, RFC 10069 §2.5: timers count the largest PTO of all
//! paths).

use crate::connection::Connection;
use crate::crypto::keys::Suite;
use crate::crypto::one_rtt::{Generation, LimitState, OneRttKeys, UpdateNotPermitted};
use crate::error::{Dropped, ErrorCode, PacketError};
use crate::time::Instant;
use crate::trace::Side;
use std::time::Duration;

/// Packet numbers that are left when a connection ends for want of them: more than one round over the paths uses.
const NUMBER_RESERVE: u64 = 256;

/// The state of the current generation of keys.
#[derive(Debug, Default)]
pub(in crate::connection) struct KeyUpdate {
    /// The time at which the keys of the generation before are dropped.
    pub discard_at: Option<Instant>,
    /// The time at which the next update may begin; not known before a packet of the current generation is
    /// acknowledged.
    permitted_at: Option<Instant>,
    /// Generations so far after the first.
    count: u64,
    /// Initial, 0-RTT and Handshake packets that failed to authenticate before there were 1-RTT keys.
    failed: u64,
}

impl Connection {
    /// Updates the keys of 1-RTT packets, both ways: the peer follows (RFC 9001 §6.1).
    ///
    /// Not before the handshake is confirmed, and not before three times the largest PTO of all paths has passed since
    /// the previous update was acknowledged (RFC 9001 §6.5, RFC 10069 §2.5).
    pub fn update_keys(&mut self, now: Instant) -> Result<(), UpdateNotPermitted> {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.1
        //# An endpoint MUST NOT initiate a key update prior to having confirmed the handshake (Section 4.1.2)
        if !self.is_confirmed() {
            return Err(UpdateNotPermitted::Unconfirmed);
        }
        let keys = self.keys.as_mut().ok_or(UpdateNotPermitted::Unconfirmed)?;
        match self.key_update.permitted_at {
            None => return Err(UpdateNotPermitted::Unacknowledged),
            Some(at) if at > now => return Err(UpdateNotPermitted::TooSoon),
            //= https://www.rfc-editor.org/rfc/rfc9001#section-6
            //= type=implication
            //= reason=Keys are updated here, without a message of TLS.
            //# Endpoints MUST NOT send a TLS KeyUpdate message
            Some(_) => keys.initiate_update()?,
        }
        self.key_update.on_updated();
        self.trace_key_update(Side::Local, now);
        Ok(())
    }

    /// Returns the number of updates of the keys of 1-RTT packets, by either side.
    pub fn key_updates(&self) -> u64 {
        self.key_update.count
    }

    /// The first generation of 1-RTT keys, with the limits that the application set.
    pub(in crate::connection) fn install_one_rtt(&mut self, keys: OneRttKeys) {
        let keys = match self.config.aead_limits {
            Some(limits) => keys.with_limits(limits),
            None => keys,
        };
        // RFC 9001 §6.6: packets that fail to authenticate count over all keys of the connection.
        self.keys = Some(keys.with_failed(self.key_update.failed));
    }

    /// Takes note of the generation that opened a packet.
    pub(in crate::connection) fn on_generation(&mut self, generation: Generation, now: Instant) {
        if generation == Generation::Next {
            self.key_update.on_updated();
            self.trace_key_update(Side::Remote, now);
        }
        let followed = self.keys.as_ref().is_some_and(|keys| keys.has_previous() && keys.is_answered());
        if followed && self.key_update.discard_at.is_none() {
            // RFC 9001 §6.5: old keys stay for late packets, three times the PTO of the slowest path.
            self.key_update.discard_at = Some(now + self.longest_probe_timeout() * 3);
        }
    }

    /// Takes note of acknowledgements: the first of a generation confirms the update to it.
    pub(in crate::connection) fn on_packets_acknowledged(&mut self, now: Instant) {
        let acknowledged = self.keys.as_ref().is_some_and(OneRttKeys::is_acknowledged);
        if !acknowledged || self.key_update.permitted_at.is_some() {
            return;
        }
        // The first generation has no predecessor whose packets could be late.
        let wait = if self.key_update.count == 0 { Duration::ZERO } else { self.longest_probe_timeout() * 3 };
        self.key_update.permitted_at = Some(now + wait);
    }

    /// Counts a long-header packet that failed to authenticate (RFC 9001 §6.6: over all keys and paths).
    pub(in crate::connection) fn on_forged(&mut self, dropped: Dropped) -> PacketError {
        if dropped != Dropped::Undecryptable {
            return dropped.into();
        }
        if let Some(keys) = self.keys.as_mut() {
            return keys.failed(dropped);
        }
        self.key_update.failed += 1;
        // Initial packets are sealed with AES-128-GCM (RFC 9001 §5.2).
        let suite = Suite::Aes128Gcm.integrity_limit();
        let limit = self.config.aead_limits.map_or(suite, |limits| limits.integrity.min(suite));
        if self.key_update.failed >= limit {
            return ErrorCode::AEAD_LIMIT_REACHED.because("too many packets failed to authenticate").into();
        }
        dropped.into()
    }

    /// Updates the keys in good time before they are worn out. If that is not permitted until it is nearly too late, the
    /// connection closes while its last packets can still be sealed (RFC 9001 §6.6).
    pub(in crate::connection) fn guard_limits(&mut self, now: Instant) {
        let Some(keys) = &self.keys else { return };
        match keys.limits() {
            LimitState::Fine => {}
            //= https://www.rfc-editor.org/rfc/rfc9001#section-5.3
            //# An endpoint MUST initiate a key update (Section 6) prior to exceeding any limit set for the
            //# AEAD that is in use.
            //= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
            //# Endpoints MUST initiate a key update before sending more protected packets than the
            //# confidentiality limit for the selected AEAD permits
            LimitState::UpdateSoon => {
                // Tried again with every packet until it is permitted.
                let _too_early = self.update_keys(now);
            }
            //= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
            //# If a key update is not possible or integrity limits are reached, the endpoint MUST stop using
            //# the connection and only send stateless resets in response to receiving packets
            LimitState::Reached => {
                self.fail(ErrorCode::AEAD_LIMIT_REACHED.because("the keys are worn out"), now);
            }
        }
        let last = self.config.last_packet_number.saturating_sub(NUMBER_RESERVE);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
        //# If the packet number for sending reaches 2^62-1, the sender MUST close the connection without
        //# sending a CONNECTION_CLOSE frame or any further packets; an endpoint MAY send a Stateless Reset
        if self.lifecycle.is_open() && self.paths.all().any(|path| path.sent.next_unused() >= last) {
            // RFC 9000 §12.3: close without a CONNECTION_CLOSE frame or any further packets.
            let error = ErrorCode::AEAD_LIMIT_REACHED.because("a path is out of packet numbers");
            self.end_silently(crate::error::ConnectionError::Transport(error));
        }
    }

    /// Drops keys that are due to go.
    pub(in crate::connection) fn expire_keys(&mut self, now: Instant) {
        if self.key_update.discard_at.is_some_and(|at| at <= now) {
            self.key_update.discard_at = None;
            if let Some(keys) = self.keys.as_mut() {
                keys.discard_previous();
            }
        }
    }

    /// The largest PTO of all open paths, without backoff.
    pub(in crate::connection) fn longest_probe_timeout(&self) -> Duration {
        let delay = self.peer_max_ack_delay();
        self.paths.open().map(|path| path.probe_period(delay)).max().unwrap_or(Duration::from_secs(1))
    }

    /// The longest that the peer says it delays acknowledgements; zero before the handshake is confirmed.
    pub(in crate::connection) fn peer_max_ack_delay(&self) -> Duration {
        if self.lifecycle.is_connected() { self.peer.parameters.max_ack_delay } else { Duration::ZERO }
    }
}

impl KeyUpdate {
    /// The next generation is in use.
    fn on_updated(&mut self) {
        self.count += 1;
        self.permitted_at = None;
        self.discard_at = None;
    }
}
