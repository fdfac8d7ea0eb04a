//! The connection IDs that an endpoint issues, each with the reset token that its key gives (RFC 9000 §10.3.2).

use crate::crypto::reset::ResetKey;
use crate::endpoint::seed::Seed;
use crate::path::local_ids::IdSource;
use crate::wire::connection_id::{ConnectionId, ResetToken};

/// Random connection IDs of one length.
pub struct RandomIds {
    /// Where they come from.
    pub seed: Seed,
    /// What the tokens come from.
    pub key: ResetKey,
    /// Their length in bytes.
    pub length: usize,
}

impl IdSource for RandomIds {
    fn issue(&mut self) -> (ConnectionId, ResetToken) {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        //# An endpoint that uses this design MUST either use the same connection ID length for all
        //# connections or encode the length of the connection ID such that it can be recovered without state
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        //# This method for choosing the stateless reset token means that the combination of connection ID and
        //# static key MUST NOT be used for another connection
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        //# A connection ID from a connection that is reset by revealing the stateless reset token MUST NOT be
        //# reused for new connections at nodes that share a static key.
        let id = self.seed.draw(|rng| ConnectionId::random(rng, self.length));
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        //# The same stateless reset token MUST NOT be used for multiple connection IDs
        (id, self.key.token(&id))
    }
}
