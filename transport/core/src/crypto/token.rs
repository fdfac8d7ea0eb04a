//! Address validation tokens: of Retry packets and of NEW_TOKEN frames (RFC 9000 §8.1), sealed so that only the server
//! that made them can read them.

use crate::time::Instant;
use crate::wire::connection_id::ConnectionId;
use crate::wire::cursor::{SliceReader, Truncated};
use crate::wire::version::Version;
use rand::RngCore;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf;
use smallvec::SmallVec;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Random bytes at the start of a token, which its key is derived with.
const SALT_LENGTH: usize = 16;
/// The longest difference between the clocks of endpoints that share a key.
const SKEW: Duration = Duration::from_secs(1);
/// Addresses that one token covers at most.
pub const MAX_ADDRESSES: usize = 8;

/// Addresses that a token covers, without ports, which may change between connections (RFC 9000 §8.1.3).
pub type Addresses = SmallVec<[IpAddr; 2]>;

/// The way in which a token came to the client.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TokenKind {
    /// In a Retry packet: for one handshake, from the very address and port.
    Retry,
    /// In a NEW_TOKEN frame: for later connections.
    NewToken,
}

impl TokenKind {
    /// The first byte of the token, in the clear, so that a token that fails can still be told apart (RFC 9000 §8.1.1).
    const fn marker(self) -> u8 {
        match self {
            Self::Retry => 0,
            Self::NewToken => 1,
        }
    }
}

/// The contents of a Retry token, which a server finds again in the client's next Initial packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryToken {
    /// The version of the Retry packet, which the client keeps (RFC 9369 §4.1).
    pub version: Version,
    /// The address that the client sent from.
    pub address: SocketAddr,
    /// The time at which the token was made.
    pub issued: Instant,
    /// The destination of the client's first Initial packet.
    pub original_destination: ConnectionId,
    /// The connection ID that the Retry packet gave.
    pub retry_source: ConnectionId,
}

/// The contents of a NEW_TOKEN token, which a server finds again in a later connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressToken {
    /// The version of the connection that the token was given over, the only one that it is good for (RFC 9369 §5).
    pub version: Version,
    /// The client's validated addresses on all paths; the first [`MAX_ADDRESSES`] count.
    pub addresses: Addresses,
    /// The time at which the token was made.
    pub issued: Instant,
}

/// The fingerprint that tells a token from all others: its random salt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fingerprint(pub [u8; SALT_LENGTH]);

impl Fingerprint {
    /// Returns the fingerprint of `token`, `None` if it is too short to be one.
    pub fn of(token: &[u8]) -> Option<Self> {
        token.get(1..)?.first_chunk().copied().map(Self)
    }
}

/// A token that proves the client's address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ValidToken {
    /// The client followed a Retry.
    Retry(RetryToken),
    /// The client was here before.
    NewToken(AddressToken),
}

/// A token that proves nothing.
///
/// One of kind [`TokenKind::Retry`] closes the connection with INVALID_TOKEN (RFC 9000 §8.1.2); others count as no
/// token (§8.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("token rejected: {reason}")]
pub struct Rejected {
    /// The kind that the token says that it is.
    pub kind: TokenKind,
    /// The reason.
    pub reason: Rejection,
}

/// The reason for which a token proves nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum Rejection {
    /// Truncated, changed, or made by somebody else.
    #[error("not made with this key")]
    Forged,
    /// Older than its lifetime, or from the future.
    #[error("expired")]
    Expired,
    /// Made for another address.
    #[error("made for another address")]
    OtherAddress,
}

/// Seals and opens tokens. Servers that share the key accept each other's tokens.
#[derive(Clone)]
pub struct TokenKey {
    master: Arc<hkdf::Prk>,
    retry_lifetime: Duration,
    new_token_lifetime: Duration,
}

impl TokenKey {
    /// The key with these bytes, which are secret and random. Retry tokens live 15 s, others a day.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self {
            master: Arc::new(hkdf::Salt::new(hkdf::HKDF_SHA256, b"hvq address validation").extract(secret)),
            retry_lifetime: Duration::from_secs(15),
            new_token_lifetime: Duration::from_secs(24 * 3600),
        }
    }

    /// Returns the same key with other lifetimes of Retry tokens and of NEW_TOKEN tokens.
    pub fn with_lifetimes(mut self, retry: Duration, new_token: Duration) -> Self {
        self.retry_lifetime = retry;
        self.new_token_lifetime = new_token;
        self
    }

    /// The bytes of a token for a Retry packet.
    pub fn seal_retry(&self, rng: &mut impl RngCore, token: &RetryToken) -> Vec<u8> {
        let mut plain = Vec::with_capacity(80);
        put_instant(&mut plain, token.issued);
        plain.extend_from_slice(&token.version.0.to_be_bytes());
        put_address(&mut plain, token.address.ip());
        plain.extend_from_slice(&token.address.port().to_be_bytes());
        put_id(&mut plain, &token.original_destination);
        put_id(&mut plain, &token.retry_source);
        self.seal(rng, TokenKind::Retry, plain)
    }

    /// The bytes of a token for a NEW_TOKEN frame.
    pub fn seal_address(&self, rng: &mut impl RngCore, token: &AddressToken) -> Vec<u8> {
        let mut plain = Vec::with_capacity(80);
        put_instant(&mut plain, token.issued);
        plain.extend_from_slice(&token.version.0.to_be_bytes());
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
        //# Tokens sent in NEW_TOKEN frames MUST include information that allows the server to verify that the
        //# client IP address has not changed from when the token was issued
        token.addresses.iter().take(MAX_ADDRESSES).for_each(|address| put_address(&mut plain, *address));
        self.seal(rng, TokenKind::NewToken, plain)
    }

    /// Opens a token that came from `from` at `now`.
    pub fn open(&self, token: &[u8], from: SocketAddr, now: Instant) -> Result<ValidToken, Rejected> {
        let kind = match token.first() {
            Some(&marker) if marker == TokenKind::Retry.marker() => TokenKind::Retry,
            _ => TokenKind::NewToken,
        };
        let reject = |reason| Rejected { kind, reason };
        let plain = self.decrypt(token).ok_or(reject(Rejection::Forged))?;
        let forged = |Truncated| reject(Rejection::Forged);
        let valid = match kind {
            TokenKind::Retry => ValidToken::Retry(read_retry(&plain).map_err(forged)?),
            TokenKind::NewToken => ValidToken::NewToken(read_address_token(&plain).map_err(forged)?),
        };
        self.check(&valid, from, now).map_err(reject)?;
        Ok(valid)
    }

    fn check(&self, token: &ValidToken, from: SocketAddr, now: Instant) -> Result<(), Rejection> {
        let (issued, lifetime, is_from) = match token {
            ValidToken::Retry(token) => (token.issued, self.retry_lifetime, token.address == canonical(from)),
            ValidToken::NewToken(token) => {
                (token.issued, self.new_token_lifetime, token.addresses.contains(&from.ip().to_canonical()))
            }
        };
        if issued > now + SKEW || now.since(issued) > lifetime {
            return Err(Rejection::Expired);
        }
        if is_from { Ok(()) } else { Err(Rejection::OtherAddress) }
    }

    fn seal(&self, rng: &mut impl RngCore, kind: TokenKind, mut plain: Vec<u8>) -> Vec<u8> {
        let mut salt = [0; SALT_LENGTH];
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
        //# A token issued with NEW_TOKEN MUST NOT include information that would allow values to be linked by
        //# an observer to the connection on which it was issued
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
        //# A server MUST ensure that every NEW_TOKEN frame it sends is unique across all clients, with the
        //# exception of those sent to repair losses of previously sent NEW_TOKEN frames
        rng.fill_bytes(&mut salt);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.1
        //# A token sent in a NEW_TOKEN frame or a Retry packet MUST be constructed in a way that allows the
        //# server to identify how it was provided to a client
        let header = [kind.marker()];
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
        //# An address validation token MUST be difficult to guess
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
        //# For this design to work, the token MUST be covered by integrity protection against modification or
        //# falsification by clients
        self.key(&salt)
            .seal_in_place_append_tag(nonce(), Aad::from(&header), &mut plain)
            .expect("a token is far shorter than what the AEAD can seal");
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.7
        //# The token MUST NOT be empty
        [&header, salt.as_slice(), &plain].concat()
    }

    fn decrypt(&self, token: &[u8]) -> Option<Vec<u8>> {
        let (header, rest) = token.split_first_chunk::<1>()?;
        let (salt, sealed) = rest.split_first_chunk::<SALT_LENGTH>()?;
        let mut sealed = sealed.to_vec();
        let length = self.key(salt).open_in_place(nonce(), Aad::from(header), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }

    /// A key for one token alone, so that its nonce cannot repeat however many tokens there are.
    fn key(&self, salt: &[u8; SALT_LENGTH]) -> LessSafeKey {
        let info: [&[u8]; 2] = [b"token key", salt];
        let key = self.master.expand(&info, &AES_256_GCM).expect("HKDF gives as many bytes as a key has");
        LessSafeKey::new(UnboundKey::from(key))
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenKey")
            .field("retry_lifetime", &self.retry_lifetime)
            .field("new_token_lifetime", &self.new_token_lifetime)
            .finish_non_exhaustive()
    }
}

/// The only nonce: each key seals one token.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

/// IPv4 addresses that a dual-stack socket shows as IPv6 are the same addresses.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn put_instant(buf: &mut Vec<u8>, instant: Instant) {
    buf.extend_from_slice(&instant.as_nanos().to_be_bytes());
}

fn put_address(buf: &mut Vec<u8>, address: IpAddr) {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            buf.push(4);
            buf.extend_from_slice(&address.octets());
        }
        IpAddr::V6(address) => {
            buf.push(6);
            buf.extend_from_slice(&address.octets());
        }
    }
}

fn put_id(buf: &mut Vec<u8>, id: &ConnectionId) {
    buf.push(id.len() as u8);
    buf.extend_from_slice(id.as_slice());
}

fn read_retry(plain: &[u8]) -> Result<RetryToken, Truncated> {
    let mut reader = SliceReader::new(plain);
    let issued = read_instant(&mut reader)?;
    let version = Version(reader.u32()?);
    let ip = read_address(&mut reader)?;
    Ok(RetryToken {
        version,
        issued,
        address: SocketAddr::new(ip, reader.u16()?),
        original_destination: read_id(&mut reader)?,
        retry_source: read_id(&mut reader)?,
    })
}

fn read_address_token(plain: &[u8]) -> Result<AddressToken, Truncated> {
    let mut reader = SliceReader::new(plain);
    let issued = read_instant(&mut reader)?;
    let version = Version(reader.u32()?);
    let mut addresses = Addresses::new();
    while !reader.is_empty() && addresses.len() < MAX_ADDRESSES {
        addresses.push(read_address(&mut reader)?);
    }
    Ok(AddressToken { version, addresses, issued })
}

fn read_instant(reader: &mut SliceReader<'_>) -> Result<Instant, Truncated> {
    Ok(Instant::from_nanos(u64::from_be_bytes(reader.array()?)))
}

fn read_address(reader: &mut SliceReader<'_>) -> Result<IpAddr, Truncated> {
    match reader.u8()? {
        4 => Ok(Ipv4Addr::from(reader.array::<4>()?).into()),
        _ => Ok(Ipv6Addr::from(reader.array::<16>()?).into()),
    }
}

fn read_id(reader: &mut SliceReader<'_>) -> Result<ConnectionId, Truncated> {
    let length = usize::from(reader.u8()?);
    ConnectionId::new(reader.bytes(length)?).ok_or(Truncated)
}

#[cfg(test)]
mod tests;
