//! The state that is kept while the version of a connection is open (RFC 9368).

use crate::crypto::session::ClientTls;
use crate::wire::client_hello::{Extent, extent};
use crate::wire::transport_parameters::TransportParameters;

/// A ClientHello that a server sees whole before it answers, and what it answers with.
#[derive(Debug)]
pub struct Hello {
    bytes: Vec<u8>,
    /// The server's own transport parameters, but for the version.
    pub parameters: TransportParameters,
}

impl Hello {
    /// Nothing yet.
    pub fn new(parameters: TransportParameters) -> Self {
        Self { bytes: Vec::new(), parameters }
    }

    /// Takes in the next bytes, and says how much there is now.
    pub fn push(&mut self, data: &[u8]) -> Extent {
        self.bytes.extend_from_slice(data);
        extent(&self.bytes)
    }

    /// All bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The material with which a client begins again in another version.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its TLS.
    pub tls: ClientTls,
    /// The server's name.
    pub server_name: Box<str>,
}
