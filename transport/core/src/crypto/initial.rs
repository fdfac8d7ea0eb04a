//! Keys of Initial packets, which everybody who sees the first packet can derive (RFC 9001 §5.2).

use crate::Role;
use crate::crypto::keys::{Cipher, Suite, expand_label_from};
use crate::crypto::protect::{OpenKey, SealKey};
use crate::wire::connection_id::ConnectionId;
use crate::wire::version::Version;
use ring::hkdf;
use std::sync::LazyLock;

/// The salt of version 1 (RFC 9001 §5.2).
const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc,
    0xbb, 0x7f, 0x0a,
];
/// The salt of version 2 (RFC 9369 §3.3.1).
const SALT_V2: [u8; 20] = [
    0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93, 0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9,
    0xbd, 0x2e, 0xd9,
];

/// The salt that HKDF-Extract begins with, the same for every connection.
static EXTRACT_V1: LazyLock<hkdf::Salt> = LazyLock::new(|| hkdf::Salt::new(hkdf::HKDF_SHA256, &SALT_V1));
static EXTRACT_V2: LazyLock<hkdf::Salt> = LazyLock::new(|| hkdf::Salt::new(hkdf::HKDF_SHA256, &SALT_V2));

/// The keys with which `role` seals and opens Initial packets, when the first Initial packet of the client went to
/// `client_destination` (after a Retry: the connection ID that the Retry gave).
///
/// Versions other than 1 and 2 never get here; they would get the keys of version 1.
pub fn initial_keys(version: Version, client_destination: &ConnectionId, role: Role) -> (SealKey, OpenKey) {
    let (client, server) = initial_secrets(version, client_destination);
    let (local, remote) = match role {
        Role::Client => (client, server),
        Role::Server => (server, client),
    };
    let cipher = Cipher { suite: Suite::Aes128Gcm, version };
    (SealKey::new(cipher, &local), OpenKey::new(cipher, &remote))
}

/// The secrets of client and server.
fn initial_secrets(version: Version, client_destination: &ConnectionId) -> ([u8; 32], [u8; 32]) {
    let salt = if version == Version::V2 { &EXTRACT_V2 } else { &EXTRACT_V1 };
    let secret = salt.extract(client_destination.as_slice());
    let (mut client, mut server) = ([0; 32], [0; 32]);
    //= https://www.rfc-editor.org/rfc/rfc9001#section-5.2
    //# The HKDF-Expand-Label function defined in TLS 1.3 MUST be used for Initial packets even where the TLS
    //# versions offered do not include TLS 1.3.
    expand_label_from(&secret, b"client in", &mut client);
    expand_label_from(&secret, b"server in", &mut server);
    (client, server)
}

#[cfg(test)]
mod tests;
