//! Key updates of 1-RTT packets and the limits of keys (RFC 9001 §6, RFC 10069 §2.5: timers count the largest PTO of all
//! paths).

use crate::connection::Connection;
use crate::connection::lifecycle::Lifecycle;
use crate::crypto::keys::Suite;
use crate::crypto::one_rtt::{AeadLimits, KeyGeneration, LimitState, OneRttKeys, UpdateNotPermitted};
use crate::error::{Dropped, ErrorCode, PacketError};
use crate::time::Instant;
use crate::trace::{Side, TraceEvent};
use std::time::Duration;

/// Packet numbers that are left when a connection ends for want of them: more than one round over the paths uses.
const NUMBER_RESERVE: u64 = 256;

/// The keys of 1-RTT packets, and the times of their updates.
#[derive(Debug, Default)]
pub(in crate::connection) struct TrafficKeys {
    keys: Option<OneRttKeys>,
    /// Limits that the application set in place of those of the suite.
    limits: Option<AeadLimits>,
    /// The time at which the keys of the generation before are dropped.
    discard_at: Option<Instant>,
    /// The time at which the next update may begin; not known before a packet of the current generation is
    /// acknowledged.
    permitted_at: Option<Instant>,
    /// Generations so far after the first.
    count: u64,
    /// Initial, 0-RTT and Handshake packets that failed to authenticate before there were 1-RTT keys.
    failed: u64,
}

impl TrafficKeys {
    /// Makes the state before there are keys; `limits` replace those of the suite.
    pub fn new(limits: Option<AeadLimits>) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The keys, once there are any.
    pub fn current(&self) -> Option<&OneRttKeys> {
        self.keys.as_ref()
    }

    /// The keys, once there are any.
    pub fn current_mut(&mut self) -> Option<&mut OneRttKeys> {
        self.keys.as_mut()
    }

    /// Returns true once there are keys.
    pub fn are_installed(&self) -> bool {
        self.keys.is_some()
    }

    /// Takes the first generation into use.
    pub fn install(&mut self, keys: OneRttKeys) {
        let keys = match self.limits {
            Some(limits) => keys.with_limits(limits),
            None => keys,
        };
        // RFC 9001 §6.6: packets that fail to authenticate count over all keys of the connection.
        self.keys = Some(keys.with_failed(self.failed));
    }

    /// Updates the keys, both ways: the peer follows (RFC 9001 §6.1).
    ///
    /// # Errors
    /// Returns [`UpdateNotPermitted`] before a packet of the current generation is acknowledged, and for a while after it.
    pub fn update(&mut self, now: Instant) -> Result<(), UpdateNotPermitted> {
        let keys = self.keys.as_mut().ok_or(UpdateNotPermitted::Unconfirmed)?;
        match self.permitted_at {
            None => return Err(UpdateNotPermitted::Unacknowledged),
            Some(at) if at > now => return Err(UpdateNotPermitted::TooSoon),
            //= https://www.rfc-editor.org/rfc/rfc9001#section-6
            //= type=implication
            //= reason=Keys are updated here, without a message of TLS.
            //# Endpoints MUST NOT send a TLS KeyUpdate message
            Some(_) => keys.initiate_update()?,
        }
        self.on_updated();
        Ok(())
    }

    /// The number of updates, by either side.
    pub fn updates(&self) -> u64 {
        self.count
    }

    /// Takes note of the generation that opened a packet. The one before is kept for `grace` at `now`.
    pub fn on_generation(
        &mut self,
        generation: KeyGeneration,
        grace: impl FnOnce() -> Duration,
        now: Instant,
    ) {
        if generation == KeyGeneration::Next {
            self.on_updated();
        }
        let followed = self.keys.as_ref().is_some_and(|keys| keys.has_previous() && keys.is_answered());
        if followed && self.discard_at.is_none() {
            // RFC 9001 §6.5: old keys stay for late packets, three times the PTO of the slowest path.
            self.discard_at = Some(now + grace());
        }
    }

    /// Takes note of acknowledgements: the first of a generation confirms the update to it. The next is permitted `grace`
    /// later.
    pub fn on_packets_acknowledged(&mut self, grace: impl FnOnce() -> Duration, now: Instant) {
        let acknowledged = self.keys.as_ref().is_some_and(OneRttKeys::is_acknowledged);
        if !acknowledged || self.permitted_at.is_some() {
            return;
        }
        // The first generation has no predecessor whose packets could be late.
        let wait = if self.count == 0 { Duration::ZERO } else { grace() };
        self.permitted_at = Some(now + wait);
    }

    /// Counts a long-header packet that failed to authenticate (RFC 9001 §6.6: over all keys and paths).
    pub fn on_forged(&mut self, dropped: Dropped) -> PacketError {
        if dropped != Dropped::Undecryptable {
            return dropped.into();
        }
        if let Some(keys) = self.keys.as_mut() {
            return keys.failed(dropped);
        }
        self.failed += 1;
        // Initial packets are sealed with AES-128-GCM (RFC 9001 §5.2).
        let suite = Suite::Aes128Gcm.integrity_limit();
        let limit = self.limits.map_or(suite, |limits| limits.integrity.min(suite));
        if self.failed >= limit {
            return ErrorCode::AEAD_LIMIT_REACHED.because("too many packets failed to authenticate").into();
        }
        dropped.into()
    }

    /// The time at which [`Self::expire`] has something to drop.
    pub fn discard_at(&self) -> Option<Instant> {
        self.discard_at
    }

    /// Drops keys that are due to go.
    pub fn expire(&mut self, now: Instant) {
        if self.discard_at.is_some_and(|at| at <= now) {
            self.discard_at = None;
            if let Some(keys) = self.keys.as_mut() {
                keys.discard_previous();
            }
        }
    }

    /// The next generation is in use.
    fn on_updated(&mut self) {
        self.count += 1;
        self.permitted_at = None;
        self.discard_at = None;
    }
}

impl Connection {
    /// Updates the keys of 1-RTT packets, both ways: the peer follows (RFC 9001 §6.1).
    ///
    /// Not before the handshake is confirmed, and not before three times the largest PTO of all paths has passed since
    /// the previous update was acknowledged (RFC 9001 §6.5, RFC 10069 §2.5).
    pub fn update_keys(&mut self, now: Instant) -> Result<(), UpdateNotPermitted> {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.1
        //# An endpoint MUST NOT initiate a key update prior to having confirmed the handshake (Section 4.1.2)
        if self.lifecycle != Lifecycle::Confirmed {
            return Err(UpdateNotPermitted::Unconfirmed);
        }
        self.keys.update(now)?;
        self.observer.trace(&TraceEvent::KeysUpdated { by: Side::Local }, now);
        Ok(())
    }

    /// Returns the number of updates of the keys of 1-RTT packets, by either side.
    pub fn key_updates(&self) -> u64 {
        self.keys.updates()
    }

    /// Updates the keys in good time before they are worn out. If that is not permitted until it is nearly too late, the
    /// connection closes while its last packets can still be sealed (RFC 9001 §6.6).
    pub(in crate::connection) fn guard_limits(&mut self, now: Instant) {
        let Some(keys) = self.keys.current() else { return };
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
}
