//! Rest: what a connection gives up while nothing happens. Servers hold many, and most of them idle most of the time.

use crate::connection::Connection;
use crate::time::Instant;
use std::time::Duration;

/// Silence after which a connection rests. To wake takes some microseconds, once.
const QUIET: Duration = Duration::from_millis(250);

impl Connection {
    /// There is nothing to do at `now`: rests, if nothing was heard for a while, or has that looked at later.
    pub(in crate::connection) fn hibernate_if_idle(&mut self, now: Instant) {
        let is_active = || self.keys.as_ref().is_some_and(|keys| keys.is_active());
        match self.hibernate_at {
            None if self.may_hibernate() && is_active() => self.hibernate_at = Some(now + QUIET),
            Some(at) if at <= now => {
                let quiet = self.activity.last + QUIET;
                self.hibernate_at = (quiet > now).then_some(quiet);
                if self.hibernate_at.is_none() && self.may_hibernate() {
                    self.hibernate();
                }
            }
            None | Some(_) => {}
        }
    }

    /// Returns true if the connection may hibernate: before the handshake is confirmed there is always something to
    /// wait for, and a connection that ends is gone soon.
    fn may_hibernate(&self) -> bool {
        self.lifecycle.is_connected()
    }

    fn hibernate(&mut self) {
        if let Some(keys) = self.keys.as_mut() {
            keys.hibernate();
        }
        self.rng.hibernate();
        self.streams.hibernate();
    }
}
