//! A certificate for tests. It is stored, and RSA, so that all handshakes have the same sizes; its key is no secret.

use hvq::{Identity, Verify};

/// The name in the certificate of [`identity`].
pub const SERVER_NAME: &str = "server.test";
const CERTIFICATE: &str = include_str!("certificate.pem");
const KEY: &str = include_str!("key.pem");

/// Returns a certificate for [`SERVER_NAME`] and its key, for servers in tests.
pub fn identity() -> Identity {
    Identity::Pem { chain: CERTIFICATE.into(), key: KEY.into() }
}

/// Returns the verification by which a client trusts the certificate of [`identity`] and no other.
pub fn trust() -> Verify {
    Verify::CaPem(CERTIFICATE.into())
}
