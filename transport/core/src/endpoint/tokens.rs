//! Tokens for later connections (RFC 9000 §8.1.3): a server's supply of them, and those that a client got.

use crate::connection::TokenSource;
use crate::crypto::token::{AddressToken, Addresses, TokenKey};
use crate::endpoint::ConnectionHandle;
use crate::seed::Seed;
use crate::time::Instant;
use crate::wire::version::Version;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Tokens that a client keeps at most, of all servers.
const MOST: usize = 256;
/// Tokens that a client keeps at most of one server.
const MOST_OF_ONE: usize = 8;
/// Bytes of a token that is worth keeping: an Initial packet has to carry it beside the ClientHello.
const LONGEST: usize = 512;

/// Makes the tokens of one connection.
pub struct Issuer {
    /// Seals them.
    pub key: TokenKey,
    /// The time at the endpoint's first instant, since the Unix epoch.
    pub epoch: Duration,
    /// Randomness.
    pub seed: Seed,
}

impl TokenSource for Issuer {
    fn issue(&mut self, addresses: &Addresses, version: Version, now: Instant) -> Bytes {
        let token = AddressToken { version, addresses: addresses.clone(), issued: now + self.epoch };
        self.seed.draw(|rng| self.key.seal_address(rng, &token)).into()
    }
}

/// The server that a client's token is for: its name and port.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Server {
    /// The name in its certificate.
    pub name: Box<str>,
    /// Its UDP port.
    pub port: u16,
}

/// A token, for one later connection.
#[derive(Debug)]
struct ReceivedToken {
    server: Server,
    version: Version,
    token: Bytes,
}

/// The tokens that servers gave a client, the latest last.
#[derive(Debug, Default)]
pub struct ReceivedTokens {
    kept: VecDeque<ReceivedToken>,
    servers: HashMap<ConnectionHandle, Server>,
}

impl ReceivedTokens {
    /// `handle` is a connection to `server`.
    pub fn begin(&mut self, handle: ConnectionHandle, server: Server) {
        self.servers.insert(handle, server);
    }

    /// The connection is over.
    pub fn end(&mut self, handle: ConnectionHandle) {
        self.servers.remove(&handle);
    }

    /// Keeps a token that came over a connection of `version`.
    pub fn put(&mut self, handle: ConnectionHandle, version: Version, token: Bytes) {
        // Connections that peers began are to no server.
        let server = self.servers.get(&handle).filter(|_| token.len() <= LONGEST);
        let Some(server) = server.cloned() else { return };
        let of_same = |token: &ReceivedToken| token.server == server;
        if self.kept.iter().filter(|kept| of_same(kept)).count() >= MOST_OF_ONE
            && let Some(oldest) = self.kept.iter().position(of_same)
        {
            self.kept.remove(oldest);
        }
        if self.kept.len() >= MOST {
            self.kept.pop_front();
        }
        // A slice would keep the whole datagram that it came in alive.
        let token = Bytes::copy_from_slice(&token);
        self.kept.push_back(ReceivedToken { server, version, token });
    }

    /// Takes the latest token for a connection to `server` that starts with `version`: nobody gets it again (RFC 9000
    /// §8.1.3), and none crosses versions (RFC 9369 §5).
    pub fn take(&mut self, server: &Server, version: Version) -> Option<Bytes> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
        //# A client MUST NOT include a token that is not applicable to the server that it is connecting to
        let fits = |token: &ReceivedToken| token.server == *server && token.version == version;
        let latest = self.kept.iter().rposition(fits)?;
        self.kept.remove(latest).map(|kept| kept.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str, port: u16) -> Server {
        Server { name: name.into(), port }
    }

    fn token(n: usize) -> Bytes {
        Bytes::from(n.to_string())
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
    //= type=test
    //# A client MUST NOT include a token that is not applicable to the server that it is connecting to
    #[test]
    fn the_latest_token_of_a_server_is_used_once_and_for_nobody_else() {
        let mut tokens = ReceivedTokens::default();
        tokens.begin(ConnectionHandle(1), server("a", 443));
        tokens.put(ConnectionHandle(1), Version::V1, token(1));
        tokens.put(ConnectionHandle(1), Version::V1, token(2));
        tokens.put(ConnectionHandle(2), Version::V1, token(3));
        assert_eq!(tokens.take(&server("b", 443), Version::V1), None);
        assert_eq!(tokens.take(&server("a", 444), Version::V1), None);
        assert_eq!(tokens.take(&server("a", 443), Version::V2), None);
        assert_eq!(tokens.take(&server("a", 443), Version::V1), Some(token(2)));
        assert_eq!(tokens.take(&server("a", 443), Version::V1), Some(token(1)));
        assert_eq!(tokens.take(&server("a", 443), Version::V1), None);
    }

    #[test]
    fn a_kept_token_does_not_keep_the_datagram_that_it_came_in() {
        let mut tokens = ReceivedTokens::default();
        tokens.begin(ConnectionHandle(1), server("a", 443));
        let datagram = Bytes::from(vec![7; 1000]);
        tokens.put(ConnectionHandle(1), Version::V1, datagram.slice(10..50));
        assert!(datagram.is_unique());
    }

    #[test]
    fn a_token_of_512_bytes_is_kept_and_a_longer_one_is_not() {
        let mut tokens = ReceivedTokens::default();
        tokens.begin(ConnectionHandle(1), server("a", 443));
        let [kept, dropped] = [512, 513].map(|length| Bytes::from(vec![7; length]));
        tokens.put(ConnectionHandle(1), Version::V1, kept.clone());
        tokens.put(ConnectionHandle(1), Version::V1, dropped);
        assert_eq!(tokens.take(&server("a", 443), Version::V1), Some(kept));
        assert_eq!(tokens.take(&server("a", 443), Version::V1), None);
    }

    #[test]
    fn a_flood_of_tokens_is_bounded() {
        // attacks.md E16.
        let mut tokens = ReceivedTokens::default();
        for host in 0..100 {
            let handle = ConnectionHandle(host);
            tokens.begin(handle, server(&host.to_string(), 443));
            (0..100).for_each(|n| tokens.put(handle, Version::V1, token(n)));
            tokens.put(handle, Version::V1, Bytes::from(vec![0; LONGEST + 1]));
            tokens.end(handle);
        }
        assert_eq!((tokens.kept.len(), tokens.servers.len()), (MOST, 0));
        assert_eq!(tokens.take(&server("99", 443), Version::V1), Some(token(99)));
    }
}
