//! The connection IDs that an endpoint issues, each with the reset token that its key gives (RFC 9000 §10.3.2).

use crate::crypto::reset::ResetKey;
use crate::path::local_ids::IdSource;
use crate::seed::Seed;
use crate::wire::connection_id::{ConnectionId, ResetToken};
use rand::RngCore;
use std::fmt;
use std::sync::Arc;

/// Makes the connection IDs of an endpoint, so that those in front of it know where packets go: load balancers, and the
/// kernel in front of several workers.
pub trait ConnectionIds: Send + Sync + fmt::Debug {
    /// Bytes of every connection ID that it makes, 4 to 20: packets with short headers do not say.
    fn length(&self) -> usize;

    /// A connection ID that differs from those that it made before, but for chance. Strangers see it: it must not tell
    /// which connection it belongs to (RFC 9000 §5.1).
    fn generate(&self, rng: &mut dyn RngCore) -> ConnectionId;

    /// Returns true if `id` may belong to a connection of an endpoint elsewhere that has the same reset key. Packets to it are
    /// not answered with a stateless reset (RFC 9000 §21.11). By default none may.
    fn may_be_elsewhere(&self, _id: &ConnectionId) -> bool {
        false
    }
}

/// Random connection IDs of so many bytes.
#[derive(Clone, Copy, Debug)]
pub struct RandomIds(pub usize);

impl ConnectionIds for RandomIds {
    fn length(&self) -> usize {
        self.0
    }

    fn generate(&self, mut rng: &mut dyn RngCore) -> ConnectionId {
        ConnectionId::random(&mut rng, self.0)
    }
}

/// The connection IDs of one connection.
pub struct IssuedIds {
    /// The source of randomness.
    pub seed: Seed,
    /// The key that the reset tokens are derived from.
    pub key: ResetKey,
    /// The generator of the IDs.
    pub ids: Arc<dyn ConnectionIds>,
}

impl IdSource for IssuedIds {
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
        let id = self.seed.draw(|rng| self.ids.generate(rng));
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        //# The same stateless reset token MUST NOT be used for multiple connection IDs
        (id, self.key.token(&id))
    }
}
