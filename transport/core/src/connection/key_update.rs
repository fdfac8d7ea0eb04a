//! Key updates of 1-RTT packets (RFC 9001 §6, RFC 10069 §2.5: timers count the largest PTO of all paths).

use crate::connection::Connection;
use crate::crypto::one_rtt::Generation;
use crate::time::Instant;
use std::time::Duration;

/// Where the current generation of keys stands.
#[derive(Debug, Default)]
pub(super) struct KeyUpdate {
    /// When the keys of the generation before are dropped.
    pub discard_at: Option<Instant>,
}

impl Connection {
    /// Takes note of the generation that opened a packet.
    pub(super) fn on_generation(&mut self, generation: Generation, now: Instant) {
        let followed = self.keys.as_ref().is_some_and(|keys| keys.has_previous() && keys.is_answered());
        if generation == Generation::Next || followed && self.key_update.discard_at.is_none() {
            // RFC 9001 §6.5: old keys stay for late packets, three times the PTO of the slowest path.
            self.key_update.discard_at = Some(now + self.longest_probe_timeout() * 3);
        }
    }

    /// Drops keys that are due to go.
    pub(super) fn expire_keys(&mut self, now: Instant) {
        if self.key_update.discard_at.is_some_and(|at| at <= now) {
            self.key_update.discard_at = None;
            if let Some(keys) = self.keys.as_mut() {
                keys.discard_previous();
            }
        }
    }

    /// The largest PTO of all open paths, without backoff.
    pub(super) fn longest_probe_timeout(&self) -> Duration {
        let delay = self.peer_max_ack_delay();
        self.paths.open().map(|path| path.probe_period(delay)).max().unwrap_or(Duration::from_secs(1))
    }

    /// The longest that the peer says it delays acknowledgements; zero before the handshake is confirmed.
    pub(super) fn peer_max_ack_delay(&self) -> Duration {
        if self.lifecycle.is_connected() { self.peer.parameters.max_ack_delay } else { Duration::ZERO }
    }
}
