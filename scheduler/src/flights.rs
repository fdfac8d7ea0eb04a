//! The bytes that a handshake is expected to send and receive.

/// Bytes of a handshake, headers included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flights {
    /// The bytes of the client, until it has keys.
    pub sent: usize,
    /// The bytes of the server: mostly its certificates.
    pub received: usize,
}

impl Flights {
    /// A full ClientHello, which fills a datagram (RFC 9000 §14.1), and a server's flight with a certificate and that of its
    /// issuer, some 3 KB.
    pub const USUAL: Self = Self { sent: 1250, received: 3000 };
}
