//! NEW_TOKEN frames (RFC 9000 §8.1.3): a server gives its client tokens for later connections.

use crate::crypto::token::{Addresses, MAX_ADDRESSES};
use crate::error::{ErrorCode, TransportError};
use crate::path::amplification::Amplification;
use crate::path::paths::Paths;
use crate::recovery_token::RecoveryToken;
use crate::time::Instant;
use crate::wire::frame::Frame;
use crate::wire::version::Version;
use bytes::Bytes;
use std::net::IpAddr;

/// Tokens of one connection that a client's application is told of; further ones are ignored (attacks.md E16).
const MOST_RECEIVED: u8 = 16;

/// The source of a server's tokens.
pub trait TokenSource {
    /// A token that proves each of `addresses` in later connections of `version`.
    fn issue(&mut self, addresses: &Addresses, version: Version, now: Instant) -> Bytes;
}

/// The tokens that a connection gives or takes.
#[derive(Default)]
pub(super) struct NewTokens {
    source: Option<Box<dyn TokenSource + Send>>,
    /// The addresses that the peer has proven, the latest last.
    proven: Addresses,
    /// Tokens given so far.
    given: u64,
    supply: Supply,
    received: u8,
}

/// Tells whether the client has the tokens that it should have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Supply {
    /// The latest token covers all addresses, and is in flight or arrived.
    #[default]
    Sufficient,
    /// A token is due.
    Due,
}

impl NewTokens {
    /// A supply from `source`; none if there is no source, as on clients.
    pub fn new(source: Option<Box<dyn TokenSource + Send>>) -> Self {
        Self { source, ..Self::default() }
    }

    /// The peer receives at `address`. RFC 10069 §3.1.3: each token proves all addresses that were validated.
    fn prove(&mut self, address: IpAddr) {
        if self.proven.contains(&address) {
            return;
        }
        if self.proven.len() >= MAX_ADDRESSES {
            self.proven.remove(0);
        }
        self.proven.push(address);
        self.supply = Supply::Due;
    }

    /// Returns true if the client should have another token than the latest.
    #[inline]
    pub fn may_have_frame(&self, paths: &Paths) -> bool {
        let is_news = |address: IpAddr| !self.proven.contains(&address);
        self.source.is_some() && (self.supply == Supply::Due || proven_on(paths).any(is_news))
    }

    /// A token, if the client should have one: after the handshake and whenever one more address is validated.
    pub fn next_frame_for(
        &mut self,
        paths: &Paths,
        version: Version,
        now: Instant,
    ) -> Option<(Frame, RecoveryToken)> {
        self.source.as_ref()?;
        proven_on(paths).for_each(|address| self.prove(address));
        self.next_frame(version, now)
    }

    /// The server gave a client `token`. Returns true if its application is told of it: whoever started the connection
    /// decides what becomes of it.
    ///
    /// # Errors
    /// FRAME_ENCODING_ERROR if the token is empty.
    pub fn on_frame(&mut self, token: &Bytes) -> Result<bool, TransportError> {
        if token.is_empty() {
            return Err(ErrorCode::FRAME_ENCODING_ERROR.because("an empty token"));
        }
        let is_told = self.received < MOST_RECEIVED;
        self.received += u8::from(is_told);
        Ok(is_told)
    }

    fn next_frame(&mut self, version: Version, now: Instant) -> Option<(Frame, RecoveryToken)> {
        if self.supply == Supply::Sufficient {
            return None;
        }
        self.supply = Supply::Sufficient;
        let token = self.source.as_mut()?.issue(&self.proven, version, now);
        self.given += 1;
        Some((Frame::NewToken(token), RecoveryToken::NewToken(self.given)))
    }

    /// Token number `number` was lost. If it is the latest, another takes its place (RFC 9000 §13.3).
    pub fn on_lost(&mut self, number: u64) {
        if number == self.given {
            self.supply = Supply::Due;
        }
    }
}

/// The addresses of the peer that are proven on open `paths`.
fn proven_on(paths: &Paths) -> impl Iterator<Item = IpAddr> {
    let proven = paths.open().filter(|path| path.route.amplification == Amplification::Validated);
    proven.map(|path| path.route.tuple.remote.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Listing;

    impl TokenSource for Listing {
        fn issue(&mut self, addresses: &Addresses, _: Version, _: Instant) -> Bytes {
            Bytes::from(format!("{addresses:?}"))
        }
    }

    fn address(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    fn tokens() -> NewTokens {
        NewTokens::new(Some(Box::new(Listing)))
    }

    fn next(tokens: &mut NewTokens) -> Option<(String, u64)> {
        match tokens.next_frame(Version::V1, Instant::from_nanos(1))? {
            (Frame::NewToken(token), RecoveryToken::NewToken(number)) => {
                Some((String::from_utf8(token.to_vec()).unwrap(), number))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_new_address_makes_a_token_due_that_proves_all_of_them() {
        let mut tokens = tokens();
        assert_eq!(next(&mut tokens), None);
        tokens.prove(address(1));
        assert_eq!(next(&mut tokens), Some(("[10.0.0.1]".to_owned(), 1)));
        tokens.prove(address(1));
        assert_eq!(next(&mut tokens), None);
        tokens.prove(address(2));
        assert_eq!(next(&mut tokens), Some(("[10.0.0.1, 10.0.0.2]".to_owned(), 2)));
        (0..20).for_each(|n| tokens.prove(address(n)));
        assert_eq!(tokens.proven.len(), MAX_ADDRESSES);
    }

    #[test]
    fn only_the_loss_of_the_latest_token_matters() {
        let mut tokens = tokens();
        tokens.prove(address(1));
        next(&mut tokens);
        tokens.prove(address(2));
        next(&mut tokens);
        tokens.on_lost(1);
        assert_eq!(next(&mut tokens), None);
        tokens.on_lost(2);
        assert_eq!(next(&mut tokens), Some(("[10.0.0.1, 10.0.0.2]".to_owned(), 3)));
    }
}
