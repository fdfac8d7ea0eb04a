//! There is no service manager to tell but on Linux.

use crate::Pulse;

/// Tells nobody.
pub fn ready(_pulse: Pulse) {}

/// Tells nobody.
pub fn stopping() {}
