//! Hibernation: what a connection gives up while nothing happens. Servers hold many, and most of them idle most of the time.

use crate::connection::Connection;
use crate::connection::activity::Quiet;
use crate::time::Instant;
use std::time::Duration;

/// Silence after which a connection hibernates. To wake takes some microseconds, once.
pub(in crate::connection) const QUIET: Duration = Duration::from_millis(250);

impl Connection {
    /// There is nothing to do at `now`: hibernates, if nothing was heard for a while, or has that looked at later. Before
    /// the handshake is complete there is always something to wait for, and a connection that ends is gone soon.
    pub(in crate::connection) fn hibernate_if_idle(&mut self, now: Instant) {
        let keys = &self.keys;
        let is_active = || keys.current().is_some_and(|keys| keys.is_active());
        let connected = self.lifecycle.is_connected();
        if self.activity.review_hibernation(QUIET, connected, is_active, now) == Quiet::Stay {
            return;
        }
        if let Some(keys) = self.keys.current_mut() {
            keys.hibernate();
        }
        self.rng.hibernate();
        self.streams.hibernate();
        self.paths.hibernate();
        self.events.hibernate();
    }
}
