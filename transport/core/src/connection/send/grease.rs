//! The QUIC bit of sent packets, which varies once the peer said that it may (RFC 9287 §3.1).

use crate::connection::send::Sender;
use crate::wire::grease::{QuicBit, vary_quic_bit};

impl Sender<'_> {
    /// Varies the QUIC bit of `packet`, which starts with its header and is to be sealed next.
    ///
    /// Not before the peer's transport parameters are here: a server must not (RFC 9287 §3.1), a client could only by what
    /// it remembers from before.
    pub(in crate::connection) fn grease(&mut self, packet: &mut [u8]) {
        if self.peer.parameters().quic_bit == QuicBit::Free
            && let Some(random) = self.config.greasing.draw(self.rng.get())
        {
            vary_quic_bit(packet, random);
        }
    }
}
