//! Tunnels for IP packets, which only Linux has.

use crate::configuration::TunnelConfig;
use crate::health::Alarm;
use crate::request::ActiveRequest;
use crate::tunnel::Denied;
use std::io;

/// There are none.
pub(crate) enum Tunnels {}

impl Tunnels {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn start(_config: &TunnelConfig, _alarm: Alarm) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has the devices that tunnels need"))
    }
}

/// Nobody is asked for any.
pub(crate) const fn is_asked(_protocol: &str, _path: &str) -> bool {
    false
}

/// No flow is of a tunnel.
pub(crate) const fn is_flow(_active: &ActiveRequest) -> bool {
    false
}

/// Refuses.
pub(crate) async fn serve_flow(active: Box<ActiveRequest>) {
    serve(active).await;
}

/// Refuses.
pub(crate) async fn serve(mut active: Box<ActiveRequest>) {
    active.deny(Denied::Closed).await;
}
