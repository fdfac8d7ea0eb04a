//! Encryption levels: they decide which keys protect a packet and which frames it may hold (RFC 9000 §12.4).

/// An encryption level (RFC 9001 §2.1), in the order of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Initial packets: keys that everybody can derive.
    Initial,
    /// 0-RTT packets.
    ZeroRtt,
    /// Handshake packets.
    Handshake,
    /// 1-RTT packets.
    OneRtt,
}
