//! The bytes that a handshake is expected to send and receive.

/// Bytes of a handshake, headers included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flights {
    /// The bytes of the client, until it has keys.
    pub sent: usize,
    /// The bytes of the server: mostly its certificates.
    pub received: usize,
    /// The bytes of the client from then on: acknowledgements, and what completes the handshake.
    pub completing: usize,
}

impl Flights {
    /// A ClientHello with a key share of X25519MLKEM768 (draft-ietf-tls-ecdhe-mlkem), which takes two datagrams of 1200 bytes (RFC
    /// 9000 §14.1), a server's flight with its own share and a small certificate, and an acknowledgement of each of its two
    /// Initial packets, a datagram of that size, too, with the rest of the handshake. Counted in the lab.
    pub const USUAL: Self = Self { sent: 2400, received: 2700, completing: 2900 };

    /// The bytes of a whole handshake, in both directions.
    pub const fn total(&self) -> usize {
        self.sent + self.received + self.completing
    }
}
