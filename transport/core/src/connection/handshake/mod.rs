//! The handshake of a connection: set-up, keys, versions, 0-RTT, and the attempts that follow each other.

pub(crate) mod establish;
pub(crate) mod key_update;
pub(crate) mod setup;
pub(crate) mod succession;
pub(crate) mod versions;
pub(crate) mod zero_rtt;

use crate::handshake::Handshake;
use crate::path::paths::Paths;
use crate::wire::level::Level;

/// Drops the keys and the space of `level`; what was in flight in it is forgotten (RFC 9002 §6.4).
pub(in crate::connection) fn discard_space(handshake: &mut Handshake, paths: &mut Paths, level: Level) {
    if !handshake.discard(level) {
        return;
    }
    if let Some(path) = paths.get_mut(crate::PathId::ZERO) {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2
        //# When Initial or Handshake keys are discarded, the PTO and loss detection timers MUST be reset,
        //# because discarding keys indicates forward progress and the loss detection timer might have
        //# been set for
        path.on_answer();
    }
}
