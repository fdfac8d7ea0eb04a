//! The gate through which clients start connections: it judges the token of a first Initial packet (RFC 9000 §8.1).

use crate::connection::{ClientAddress, IncomingConnection, InitialIds};
use crate::crypto::token::{Fingerprint, RetryToken, TokenKey, TokenKind, ValidToken};
use crate::endpoint::replay::{ReplayFilter, TokenRegister};
use crate::time::Instant;
use crate::wire::connection_id::ConnectionId;
use crate::wire::version::Version;
use rand::RngCore;
use std::net::SocketAddr;
use std::sync::Arc;

/// A client's first Initial packet, as far as it is read before there is a connection.
#[derive(Clone, Copy, Debug)]
pub struct FirstInitial<'a> {
    /// Its version.
    pub version: Version,
    /// Its connection IDs.
    pub ids: InitialIds,
    /// Its token, empty if it has none.
    pub token: &'a [u8],
    /// The address that it came from.
    pub from: SocketAddr,
}

/// The verdict on a first Initial packet.
#[derive(Clone, Copy, Debug)]
pub enum GateDecision {
    /// A connection may start; the token, if one proved something, then counts as used.
    Admit(IncomingConnection, Option<Fingerprint>),
    /// The token of a Retry packet that proves nothing. The client accepts no second Retry, so that nothing can come of
    /// this attempt (RFC 9000 §8.1.2).
    InvalidToken,
    /// A packet that was here before, or one of a client that changed the version after a Retry (RFC 9369 §4.1).
    Ignore,
}

/// Judges tokens and makes those of Retry packets. Instants here count from the Unix epoch, so that tokens outlive the
/// process.
#[derive(Debug)]
pub struct Gate {
    key: TokenKey,
    used: Used,
}

/// The memory of tokens that were used.
#[derive(Debug)]
enum Used {
    /// The memory of this endpoint's clients alone.
    Own(ReplayFilter),
    /// The memory of several endpoints' clients.
    Shared(Arc<dyn TokenRegister>),
}

impl Used {
    fn is_fresh(&self, token: &Fingerprint, issued: Instant) -> bool {
        match self {
            Self::Own(filter) => filter.is_fresh(token, issued),
            Self::Shared(register) => register.is_fresh(token, issued),
        }
    }
}

impl Gate {
    /// A gate for tokens made with `key`, which looks into `register` for those that were used, or into one of its own.
    pub fn new(key: TokenKey, register: Option<Arc<dyn TokenRegister>>) -> Self {
        let used = register.map_or_else(|| Used::Own(ReplayFilter::default()), Used::Shared);
        Self { key, used }
    }

    /// The key of its tokens.
    pub fn key(&self) -> &TokenKey {
        &self.key
    }

    /// Judges the token of `initial` at `now`.
    pub fn judge(&self, initial: &FirstInitial<'_>, now: Instant) -> GateDecision {
        let incoming = IncomingConnection {
            version: initial.version,
            ids: initial.ids,
            retried_from: None,
            address: ClientAddress::Unproven,
        };
        let Some(fingerprint) = Fingerprint::of(initial.token) else {
            return GateDecision::Admit(incoming, None);
        };
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
        //# When a server receives an Initial packet with an address validation token, it MUST attempt to
        //# validate the token, unless it has already completed address validation
        match self.key.open(initial.token, initial.from, now) {
            Ok(ValidToken::Retry(token)) => self.judge_retry(&token, incoming, fingerprint),
            Ok(ValidToken::NewToken(token)) => {
                //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
                //# To protect against such attacks, servers MUST ensure that replay of tokens is prevented or
                //# limited
                let fresh = self.used.is_fresh(&fingerprint, token.issued);
                // RFC 9369 §5: a token is only good for the version of the connection that it came from.
                if !fresh || token.version != initial.version {
                    return GateDecision::Admit(incoming, None);
                }
                GateDecision::Admit(
                    IncomingConnection { address: ClientAddress::Proven, ..incoming },
                    Some(fingerprint),
                )
            }
            //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
            //# If the client IP address has changed, the server MUST adhere to the anti-amplification limit;
            //# see Section 8
            // RFC 9000 §8.1.3: a token that is not valid counts as none, unless it came in a Retry packet.
            Err(rejected) if rejected.kind == TokenKind::NewToken => GateDecision::Admit(incoming, None),
            Err(_) => GateDecision::InvalidToken,
        }
    }

    fn judge_retry(
        &self,
        token: &RetryToken,
        incoming: IncomingConnection,
        fingerprint: Fingerprint,
    ) -> GateDecision {
        if token.version != incoming.version || !self.used.is_fresh(&fingerprint, token.issued) {
            return GateDecision::Ignore;
        }
        if token.retry_source != incoming.ids.destination {
            return GateDecision::InvalidToken;
        }
        let incoming = IncomingConnection {
            retried_from: Some(token.original_destination),
            address: ClientAddress::Proven,
            ..incoming
        };
        GateDecision::Admit(incoming, Some(fingerprint))
    }

    /// Takes note that a connection began with a token.
    pub fn note_used(&mut self, token: Fingerprint, now: Instant) {
        match &mut self.used {
            Used::Own(filter) => filter.note(token, now),
            Used::Shared(register) => register.note(token, now),
        }
    }

    /// The token of a Retry packet in answer to `initial`, which gives the client `retry_source` to write to.
    pub fn retry_token(
        &self,
        initial: &FirstInitial<'_>,
        retry_source: ConnectionId,
        rng: &mut impl RngCore,
        now: Instant,
    ) -> Vec<u8> {
        let token = RetryToken {
            version: initial.version,
            address: initial.from,
            issued: now,
            original_destination: initial.ids.destination,
            retry_source,
        };
        self.key.seal_retry(rng, &token)
    }
}
