//! RTP over QUIC (draft-ietf-avtcore-rtp-over-quic, "RoQ"): how packets lie in streams and datagrams.

/// The application protocol (draft, "Connection Establishment and Application-Layer Protocol Negotiation").
pub const ALPN: &[u8] = b"roq";
/// ROQ_PACKET_ERROR: what a stream or datagram carries is no RTP.
pub const PACKET_ERROR: u64 = 3;
/// ROQ_FRAME_CANCELLED: packets are not needed any more.
pub const FRAME_CANCELLED: u64 = 5;
/// ROQ_UNKNOWN_FLOW_ID.
pub const UNKNOWN_FLOW: u64 = 6;
/// The largest packet that is taken from a stream: that of UDP, to which it goes on.
pub const LARGEST: usize = 65_507;

/// The reason for which bytes are no RTP over QUIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MalformedFlow {
    /// They end within a number or a packet.
    #[error("RTP over QUIC ends within a packet")]
    Truncated,
    /// A packet is longer than any that UDP carries.
    #[error("a packet of {0} bytes in RTP over QUIC")]
    TooLong(u64),
    /// It belongs to a flow that nobody announced.
    #[error("flow {0} is unknown")]
    UnknownFlow(u64),
}

impl MalformedFlow {
    /// The error code that tells the peer.
    pub const fn code(self) -> u64 {
        match self {
            Self::Truncated | Self::TooLong(_) => PACKET_ERROR,
            Self::UnknownFlow(_) => UNKNOWN_FLOW,
        }
    }
}

/// The bytes of a stream that carries `packets` of `flow`: the flow, then each packet with its length in front.
pub fn stream(flow: u64, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + packets.iter().map(|packet| packet.len() + 4).sum::<usize>());
    put_number(&mut bytes, flow);
    for packet in packets {
        put_number(&mut bytes, packet.len() as u64);
        bytes.extend(packet);
    }
    bytes
}

/// A datagram that carries `packet` of `flow`.
pub fn datagram(flow: u64, packet: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(8 + packet.len());
    put_number(&mut bytes, flow);
    bytes.extend(packet);
    bytes
}

/// The packet in a datagram of `flow`.
pub fn packet_of(flow: u64, datagram: &[u8]) -> Result<&[u8], MalformedFlow> {
    let (found, packet) = number(datagram).ok_or(MalformedFlow::Truncated)?;
    if found == flow { Ok(packet) } else { Err(MalformedFlow::UnknownFlow(found)) }
}

/// Takes packets out of a stream as its bytes come.
#[derive(Clone, Debug)]
pub struct Unpacker {
    flow: u64,
    begun: bool,
    bytes: Vec<u8>,
}

impl Unpacker {
    /// For a stream of `flow`.
    pub fn new(flow: u64) -> Self {
        Self { flow, begun: false, bytes: Vec::new() }
    }

    /// Takes the next bytes of the stream, and returns the packets that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, MalformedFlow> {
        self.bytes.extend_from_slice(bytes);
        let mut rest = self.bytes.as_slice();
        let mut packets = Vec::new();
        if !self.begun {
            let Some((found, after)) = number(rest) else { return Ok(packets) };
            if found != self.flow {
                return Err(MalformedFlow::UnknownFlow(found));
            }
            (rest, self.begun) = (after, true);
        }
        while let Some((length, after)) = number(rest) {
            let length = usize::try_from(length).ok().filter(|length| *length <= LARGEST);
            let length =
                length.ok_or(MalformedFlow::TooLong(number(rest).map_or(0, |(length, _)| length)))?;
            let Some((packet, after)) = after.split_at_checked(length) else { break };
            packets.push(packet.to_vec());
            rest = after;
        }
        self.bytes = rest.to_vec();
        Ok(packets)
    }

    /// The stream is over: nothing may be left.
    pub fn finish(&self) -> Result<(), MalformedFlow> {
        if self.bytes.is_empty() && self.begun { Ok(()) } else { Err(MalformedFlow::Truncated) }
    }
}

/// Writes a variable-length integer (RFC 9000, §16).
fn put_number(bytes: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x3f => bytes.push(value as u8),
        0x40..=0x3fff => bytes.extend((value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => bytes.extend((value as u32 | 0x8000_0000).to_be_bytes()),
        _ => bytes.extend((value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Reads one, and returns what follows (RFC 9000, §16).
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, _) = bytes.split_first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = number.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
    // The two highest bits say the length.
    let bits = 8 * number.len() as u32 - 2;
    Some((value & (u64::MAX >> (64 - bits)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_come_out_of_a_stream_as_they_went_in_however_it_is_cut(
            flow in 0..1_u64 << 62,
            packets: Vec<Vec<u8>>,
            cut in 1..50_usize,
        ) {
            let bytes = stream(flow, &packets);
            let mut unpacker = Unpacker::new(flow);
            let mut found = Vec::new();
            for part in bytes.chunks(cut) {
                found.extend(unpacker.push(part).expect("it is well formed"));
            }
            prop_assert_eq!(found, packets);
            prop_assert_eq!(unpacker.finish(), Ok(()));
        }

        #[test]
        fn no_bytes_from_the_network_cause_a_panic(bytes: Vec<u8>, flow: u64) {
            let _ = packet_of(flow, &bytes);
            let _ = Unpacker::new(0).push(&bytes);
        }
    }

    #[test]
    fn numbers_are_those_of_rfc_9000() {
        // RFC 9000, Appendix A.1.
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(number(bytes), Some((value, &[][..])));
            let mut written = Vec::new();
            put_number(&mut written, value);
            assert_eq!(written, bytes);
            assert_eq!(number(&bytes[..bytes.len() - 1]), None);
        }
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        assert_eq!(packet_of(0, &[1, 2, 3]), Err(MalformedFlow::UnknownFlow(1)));
        assert_eq!(packet_of(0, &[]), Err(MalformedFlow::Truncated));
        assert_eq!(Unpacker::new(0).push(&[7, 1, 0]).map_err(MalformedFlow::code), Err(UNKNOWN_FLOW));
        let long = Unpacker::new(0).push(&[0, 0x80, 1, 0, 0]);
        assert_eq!(long, Err(MalformedFlow::TooLong(65_536)));
        assert_eq!(long.map_err(MalformedFlow::code), Err(PACKET_ERROR));
        let mut short = Unpacker::new(0);
        assert_eq!(short.push(&[0, 5, 1, 2]), Ok(Vec::new()));
        assert_eq!(short.finish(), Err(MalformedFlow::Truncated));
    }
}
