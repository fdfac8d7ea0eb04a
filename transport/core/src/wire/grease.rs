//! Greasing: what means nothing is varied, so that nobody between or behind the ends comes to depend on it.

use super::header::FIXED;
use rand::RngCore;

/// The setting of greasing: tells whether an endpoint sends reserved transport parameters and versions (RFC 9000 §15,
/// §18.1), and lets the QUIC bit vary if its peer does too (RFC 9287).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Greasing {
    /// It does.
    #[default]
    On,
    /// It says nothing without a meaning.
    Off,
}

impl Greasing {
    /// The bits of something that means nothing, drawn from `rng`; none if nothing of the kind is to be said.
    pub fn draw(self, rng: &mut impl RngCore) -> Option<u32> {
        (self == Self::On).then(|| rng.next_u32())
    }

    /// Returns the values of the QUIC bit that an endpoint that greases accepts in packets.
    pub const fn quic_bit(self) -> QuicBit {
        match self {
            Self::On => QuicBit::Free,
            Self::Off => QuicBit::Fixed,
        }
    }
}

/// The values that the QUIC bit may have in packets that an endpoint receives: the second bit of the first byte (RFC
/// 9287 §3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum QuicBit {
    /// It is set; packets without it are none (RFC 9000 §17.2, §17.3.1).
    #[default]
    Fixed,
    /// It means nothing: the endpoint sent the transport parameter grease_quic_bit.
    Free,
}

impl QuicBit {
    /// Returns true if a packet may start with `first`.
    pub const fn permits(self, first: u8) -> bool {
        matches!(self, Self::Free) || first & FIXED != 0
    }
}

/// Clears the QUIC bit of `packet`, which is not sealed yet, if `random` says so: one time in two.
pub fn vary_quic_bit(packet: &mut [u8], random: u32) {
    if let Some(first) = packet.first_mut().filter(|_| random & 1 == 0) {
        *first &= !FIXED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bit_is_required_unless_it_is_free() {
        assert!(QuicBit::Fixed.permits(0x40) && QuicBit::Fixed.permits(0xc3));
        assert!(!QuicBit::Fixed.permits(0) && !QuicBit::Fixed.permits(0x83));
        assert!(QuicBit::Free.permits(0) && QuicBit::Free.permits(0x83));
        assert_eq!((Greasing::On.quic_bit(), Greasing::Off.quic_bit()), (QuicBit::Free, QuicBit::Fixed));
    }

    #[test]
    fn no_other_bit_varies() {
        let mut packet = [0xff, 0xff];
        vary_quic_bit(&mut packet, 1);
        assert_eq!(packet, [0xff, 0xff]);
        vary_quic_bit(&mut packet, 2);
        assert_eq!(packet, [0xbf, 0xff]);
        vary_quic_bit(&mut [], 2);
    }
}
