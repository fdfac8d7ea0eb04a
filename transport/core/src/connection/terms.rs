//! The terms of a connection, which its parts read and do not change.

use crate::connection::lifecycle::Lifecycle;
use crate::connection::{Peer, Role, TransportConfig};
use std::time::Duration;

/// The sides of a connection, what each of them said, and how far the connection has come.
#[derive(Clone, Copy, Debug)]
pub(in crate::connection) struct Terms<'a> {
    pub role: Role,
    pub config: &'a TransportConfig,
    pub lifecycle: Lifecycle,
    pub peer: &'a Peer,
}

/// The [`Terms`] of a connection.
macro_rules! terms {
    ($of:expr) => {
        $crate::connection::terms::Terms {
            role: $of.role,
            config: &$of.config,
            lifecycle: $of.lifecycle,
            peer: &$of.peer,
        }
    };
}
pub(in crate::connection) use terms;

impl Terms<'_> {
    /// The longest that the peer says it delays acknowledgements; zero while no connection is established.
    pub fn max_ack_delay(&self) -> Duration {
        self.peer.max_ack_delay(self.lifecycle)
    }
}
