//! The certificate of the servers in tests. It is stored, and RSA, so that all handshakes have the same sizes.

use hvq_transport::crypto::session::{ClientTls, Identity, ServerTls, Verify};
use std::sync::OnceLock;

/// The name in the certificate.
pub const SERVER_NAME: &str = "server.test";
const CERTIFICATE: &str = include_str!("certificate.pem");
const KEY: &str = include_str!("key.pem");

/// Certificate and key of [`SERVER_NAME`], for servers with choices of their own.
pub fn identity() -> Identity {
    Identity::Pem { chain: CERTIFICATE.into(), key: KEY.into() }
}

/// What makes a client trust the certificate of [`SERVER_NAME`] and no other.
pub fn trust() -> Verify {
    Verify::CaPem(CERTIFICATE.into())
}

/// A server with the certificate of [`SERVER_NAME`].
pub fn server() -> ServerTls {
    static TLS: OnceLock<ServerTls> = OnceLock::new();
    let build = || {
        ServerTls::builder(identity())
            .alpn(["hvq"])
            .build()
            .expect("the stored certificate and key fit together")
    };
    TLS.get_or_init(build).clone()
}

/// A client that trusts the certificate of [`SERVER_NAME`] and no other.
pub fn client() -> ClientTls {
    static TLS: OnceLock<ClientTls> = OnceLock::new();
    let build =
        || ClientTls::builder().alpn(["hvq"]).verify(trust()).build().expect("the stored certificate is one");
    TLS.get_or_init(build).clone()
}
