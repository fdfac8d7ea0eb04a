//! The connection IDs that an endpoint issues, each with the reset token that its key gives (RFC 9000 §10.3.2).

use crate::crypto::reset::ResetKey;
use crate::path::local_ids::IdSource;
use crate::wire::connection_id::{ConnectionId, ResetToken};
use rand::rngs::StdRng;

/// Random connection IDs of one length.
pub struct RandomIds {
    /// Where they come from.
    pub rng: StdRng,
    /// What the tokens come from.
    pub key: ResetKey,
    /// Their length in bytes.
    pub length: usize,
}

impl IdSource for RandomIds {
    fn issue(&mut self) -> (ConnectionId, ResetToken) {
        let id = ConnectionId::random(&mut self.rng, self.length);
        (id, self.key.token(&id))
    }
}
