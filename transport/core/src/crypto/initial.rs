//! Keys of Initial packets, which everybody who sees the first packet can derive (RFC 9001 §5.2).

use crate::connection::Role;
use crate::crypto::keys::{Suite, expand_label_from};
use crate::crypto::protect::{OpenKey, SealKey};
use crate::wire::connection_id::ConnectionId;
use crate::wire::version::Version;
use ring::hkdf;

/// The salt of version 1 (RFC 9001 §5.2).
const SALT_V1: [u8; 20] = [
    0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc,
    0xbb, 0x7f, 0x0a,
];

/// The keys with which `role` seals and opens Initial packets, when the first Initial packet of the client went to
/// `client_destination` (after a Retry: the connection ID that the Retry gave).
///
/// Packets of versions other than 1 never get here; they would get the keys of version 1.
pub fn initial_keys(_version: Version, client_destination: &ConnectionId, role: Role) -> (SealKey, OpenKey) {
    let (client, server) = initial_secrets(client_destination);
    let (local, remote) = match role {
        Role::Client => (client, server),
        Role::Server => (server, client),
    };
    (SealKey::new(Suite::Aes128Gcm, &local), OpenKey::new(Suite::Aes128Gcm, &remote))
}

/// The secrets of client and server.
fn initial_secrets(client_destination: &ConnectionId) -> ([u8; 32], [u8; 32]) {
    let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, &SALT_V1).extract(client_destination.as_slice());
    let (mut client, mut server) = ([0; 32], [0; 32]);
    expand_label_from(&secret, b"client in", &mut client);
    expand_label_from(&secret, b"server in", &mut server);
    (client, server)
}

#[cfg(test)]
mod tests;
