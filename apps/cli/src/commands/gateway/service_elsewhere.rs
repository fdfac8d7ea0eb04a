//! There is no service manager to tell but on Linux.

use hvq_gateway::Pulse;

/// Tells nobody.
pub(super) fn ready(_pulse: Pulse) {}

/// Tells nobody.
pub(super) fn stopping() {}
