//! The certificate of the servers in tests. It is stored, and RSA, so that all handshakes have the same sizes.
//!
//! Its key has 1024 bits and no more, with which signing takes a sixth of the time; it is no secret. A comment in the
//! certificate makes both together, certificate and signature, as long as with the longer key.

use hvq_transport::crypto::session::{
    ClientTls, EarlyData, Identity, ServerTls, SessionStore, SessionTicket, Verify,
};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The name in the certificate.
pub const SERVER_NAME: &str = "server.test";
const CERTIFICATE: &str = include_str!("certificate.pem");
const KEY: &str = include_str!("key.pem");

/// Certificate and key of [`SERVER_NAME`], for servers with choices of their own.
pub fn identity() -> Identity {
    Identity::Pem { chain: CERTIFICATE.into(), key: KEY.into() }
}

/// Returns the verification by which a client trusts the certificate of [`SERVER_NAME`] and no other.
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

/// Tickets of servers with one certificate, each for one use (RFC 8446 §8.1).
#[derive(Debug, Default)]
struct Tickets(Mutex<Vec<SessionTicket>>);

impl SessionStore for Tickets {
    fn put(&self, _: &str, ticket: SessionTicket) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ticket);
    }

    fn take(&self, _: &str, _: &[Vec<u8>]) -> Option<SessionTicket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// A client that keeps the tickets it gets and sends early data with them, and a server that takes it.
pub fn resuming() -> (ClientTls, ServerTls) {
    let client = ClientTls::builder().alpn(["hvq"]).verify(trust());
    let client = client.sessions(Arc::new(Tickets::default())).early_data(EarlyData::On).build();
    let server = ServerTls::builder(identity()).alpn(["hvq"]).early_data(EarlyData::On);
    let server = server.early_data_context("hvq-lab").build();
    (
        client.expect("the stored certificate is one"),
        server.expect("the stored certificate and key fit together"),
    )
}
