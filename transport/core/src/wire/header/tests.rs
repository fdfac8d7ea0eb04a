//! Headers against the RFC, against each other and against garbage.

use super::*;
use crate::error::Dropped;
use crate::wire::grease::QuicBit;
use proptest::prelude::*;

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

fn connection_ids() -> impl Strategy<Value = ConnectionId> {
    proptest::collection::vec(any::<u8>(), 0..=20).prop_map(|bytes| id(&bytes))
}

fn initial(token: &[u8]) -> LongHeader<'_> {
    LongHeader {
        kind: LongKind::Initial,
        version: Version::V1,
        destination: id(&[1; 8]),
        source: id(&[2; 4]),
        token,
    }
}

/// A packet with a long header and `payload` bytes, where `tag_length` bytes of tag would follow.
fn packet(header: &LongHeader<'_>, payload: usize) -> Vec<u8> {
    let mut buf = Vec::new();
    let layout = header.put(&mut buf, 7, 2);
    buf.resize(buf.len() + payload, 0xee);
    patch_length(&mut buf, &layout, 0, 0);
    buf
}

fn only(packet: &[u8]) -> Result<Incoming, Dropped> {
    let mut datagram = BytesMut::from(packet);
    let incoming = next_packet(&mut datagram, 8, QuicBit::Fixed);
    assert!(datagram.is_empty());
    incoming
}

fn protected(incoming: Incoming) -> ProtectedPacket {
    match incoming {
        Incoming::Protected(packet) => packet,
        other => panic!("expected a protected packet, not {other:?}"),
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<_> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).unwrap()).collect()
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
//= type=test
//# The value included prior to protection MUST be set to 0
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1
//= type=test
//# The value included prior to protection MUST be set to 0
#[test]
fn the_headers_of_the_rfc_are_written_as_there() {
    // RFC 9001 §A.2, A.3: the unprotected headers of the client's and the server's Initial.
    let mut buf = Vec::new();
    let mut header = LongHeader {
        kind: LongKind::Initial,
        version: Version::V1,
        destination: id(&bytes_of("8394c8f03e515708")),
        source: ConnectionId::EMPTY,
        token: &[],
    };
    let layout = header.put(&mut buf, 2, 4);
    buf.resize(buf.len() + 1162, 0);
    patch_length(&mut buf, &layout, 0, 16);
    assert_eq!(buf[..layout.payload_offset()], bytes_of("c300000001088394c8f03e5157080000449e00000002"));

    header.destination = ConnectionId::EMPTY;
    header.source = id(&bytes_of("f067a5502a4262b5"));
    buf.clear();
    let layout = header.put(&mut buf, 1, 2);
    buf.resize(buf.len() + 99, 0);
    patch_length(&mut buf, &layout, 0, 16);
    assert_eq!(buf[..layout.payload_offset()], bytes_of("c1000000010008f067a5502a4262b50040750001"));

    // RFC 9001 §A.5.
    buf.clear();
    let short = ShortHeader { destination: ConnectionId::EMPTY, key_phase: KeyPhase::Zero, spin: false };
    let layout = short.put(&mut buf, 654_360_564, 3);
    assert_eq!(buf, bytes_of("4200bff4"));
    assert_eq!(layout, HeaderLayout { length_offset: None, number_offset: 1, number_length: 3 });
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5
//= type=test
//# The value in the Unused field is set to an arbitrary value by the server; a client MUST ignore these bits
#[test]
fn the_retry_of_the_rfc_is_written_and_read() {
    // RFC 9001 §A.4.
    let mut buf = Vec::new();
    put_retry_without_tag(
        &mut buf,
        Version::V1,
        &ConnectionId::EMPTY,
        &id(&bytes_of("f067a5502a4262b5")),
        b"token",
    );
    buf.extend(bytes_of("04a265ba2eff4d829058fb3f0f2496ba"));
    assert_eq!(buf, bytes_of("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba"));
    let Ok(Incoming::Retry { version, destination, source, token, tag, bytes }) = only(&buf) else {
        panic!("not a Retry")
    };
    assert_eq!((version, destination, source), (Version::V1, ConnectionId::EMPTY, id(&buf[7..15])));
    assert_eq!((&token[..], &tag[..], &bytes[..]), (&b"token"[..], &buf[20..], &buf[..]));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
//= type=test
//# A client MUST discard a Retry packet with a zero-length Retry Token field.
#[test]
fn a_retry_without_a_token_is_dropped() {
    let mut buf = Vec::new();
    put_retry_without_tag(&mut buf, Version::V1, &id(&[1; 8]), &id(&[2; 8]), &[]);
    for tag in 0..=16 {
        assert_eq!(only(&[buf.clone(), vec![0; tag]].concat()), Err(Dropped::Malformed));
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.2
//= type=test
//# Receivers MUST be able to process coalesced packets.
//= https://www.rfc-editor.org/rfc/rfc9000#section-12.2
//= type=test
//# The receiver of coalesced QUIC packets MUST individually process each QUIC packet and separately
//# acknowledge them, as if they were received as the payload of different UDP datagrams
#[test]
fn coalesced_packets_come_out_one_by_one() {
    let first = packet(&initial(b"tok"), 40);
    let second = packet(&LongHeader { kind: LongKind::Handshake, ..initial(&[]) }, 50);
    let mut third = Vec::new();
    let short = ShortHeader { destination: id(&[9; 8]), key_phase: KeyPhase::One, spin: true };
    short.put(&mut third, 1, 1);
    third.resize(60, 0);
    let mut datagram = BytesMut::from(&[first.clone(), second.clone(), third.clone()].concat()[..]);

    let packet = protected(next_packet(&mut datagram, 8, QuicBit::Fixed).unwrap());
    assert_eq!(packet.kind, PacketKind::Initial { token: Bytes::from_static(b"tok") });
    assert_eq!(
        (&packet.bytes[..], packet.destination, packet.source),
        (&first[..], id(&[1; 8]), id(&[2; 4]))
    );
    let packet = protected(next_packet(&mut datagram, 8, QuicBit::Fixed).unwrap());
    assert_eq!((packet.kind, &packet.bytes[..]), (PacketKind::Handshake, &second[..]));
    let packet = protected(next_packet(&mut datagram, 8, QuicBit::Fixed).unwrap());
    assert_eq!((packet.kind, &packet.bytes[..]), (PacketKind::OneRtt, &third[..]));
    assert_eq!((packet.destination, packet.number_offset), (id(&[9; 8]), 9));
    assert_eq!(KeyPhase::of(packet.bytes[0]), KeyPhase::One);
    assert_eq!(next_packet(&mut datagram, 8, QuicBit::Fixed), Err(Dropped::Malformed));
}

#[test]
fn a_length_beyond_the_datagram_drops_the_rest() {
    let whole = packet(&initial(b"tok"), 40);
    for end in 0..whole.len() {
        assert_eq!(only(&whole[..end]), Err(Dropped::Malformed), "{end} of {} bytes", whole.len());
    }
}

#[test]
fn a_long_packet_without_room_for_the_sample_is_dropped() {
    assert_eq!(only(&packet(&initial(&[]), 17)), Err(Dropped::Malformed));
    assert!(only(&packet(&initial(&[]), 18)).is_ok());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
//= type=test
//# Endpoints MUST discard packets that are too small to be valid QUIC packets
#[test]
fn a_short_packet_may_be_as_short_as_a_stateless_reset() {
    assert!(only(&[0x40; 21]).is_ok());
    assert_eq!(only(&[0x40; 20]), Err(Dropped::Malformed));
    assert!(next_packet(&mut BytesMut::from(&[0x40; 21][..]), 20, QuicBit::Fixed).is_ok());
    assert_eq!(
        next_packet(&mut BytesMut::from(&[0x40; 30][..]), 21, QuicBit::Fixed),
        Err(Dropped::Malformed)
    );
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
//= type=test
//# Packets containing a zero value for this bit are not valid packets in this version and MUST be discarded
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1
//= type=test
//# Packets containing a zero value for this bit are not valid packets in this version and MUST be discarded
#[test]
fn a_packet_without_the_fixed_bit_is_dropped() {
    assert_eq!(only(&[0x00; 40]), Err(Dropped::Malformed));
    let mut long = packet(&initial(&[]), 40);
    long[0] &= !FIXED;
    assert_eq!(only(&long), Err(Dropped::Malformed));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
//= type=test
//# In QUIC version 1, this value MUST NOT exceed 20 bytes
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
//= type=test
//# Endpoints that receive a version 1 long header with a value larger than 20 MUST drop the packet
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
//= type=test
//# Version- specific rules for the connection ID therefore MUST NOT influence a decision about whether to
//# send a Version Negotiation packet.
#[test]
fn long_connection_ids_are_dropped_in_version_1_and_returned_in_others() {
    for length in 0..=255_u8 {
        for version in [Version::V1, Version::NEGOTIATION, Version(0x1a2a_3a4a)] {
            let mut packet = vec![0xc0];
            packet.extend(version.0.to_be_bytes());
            packet.push(length);
            packet.extend(vec![5; usize::from(length)]);
            packet.push(0);
            // No token, Length 42; or eleven versions.
            packet.extend([0, 42]);
            packet.extend([0; 42]);
            let incoming = only(&packet);
            match (version, incoming) {
                (Version::V1, Ok(Incoming::Protected(packet))) => {
                    assert!(length <= 20 && packet.destination.as_slice() == vec![5; usize::from(length)]);
                }
                (Version::NEGOTIATION, Ok(Incoming::VersionNegotiation { destination, versions, .. })) => {
                    assert!(length <= 20 && destination.len() == usize::from(length) && versions.len() == 11);
                }
                (_, Ok(Incoming::UnsupportedVersion { version: seen, destination, source })) => {
                    assert_eq!((seen, destination.len(), source.len()), (version, usize::from(length), 0));
                }
                (_, incoming) => {
                    assert!(length > 20, "{length}");
                    assert_eq!(incoming, Err(Dropped::Malformed));
                }
            }
        }
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
//= type=test
//# Clients MUST ignore the value of this field
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
//= type=test
//# The Version field of a Version Negotiation packet MUST be set to 0x00000000.
#[test]
fn version_negotiation_is_read_as_written() {
    let mut buf = Vec::new();
    let versions = [Version(0x0a1a_2a3a), Version::V1];
    put_version_negotiation(&mut buf, &[3; 5], &[4; 20], &versions, 0x15);
    assert_eq!(buf[0], 0xd5);
    let expected = Incoming::VersionNegotiation {
        destination: id(&[3; 5]),
        source: id(&[4; 20]),
        versions: versions.to_vec(),
    };
    assert_eq!(only(&buf), Ok(expected));
    assert_eq!(only(&buf[..buf.len() - 1]), Err(Dropped::Malformed));
    assert_eq!(only(&buf[..buf.len() - 8]), Err(Dropped::Malformed));
    // It echoes connection IDs of other versions, up to 255 bytes.
    buf.clear();
    put_version_negotiation(&mut buf, &[3; 255], &[4; 300], &versions, 0);
    assert_eq!((buf.len(), buf[5], buf[5 + 256]), (5 + 256 + 256 + 8, 255, 255));
}

#[test]
fn the_number_of_versions_is_bounded() {
    let mut buf = Vec::new();
    put_version_negotiation(&mut buf, &[3; 5], &[4; 5], &[Version(9); 1000], 0);
    let Ok(Incoming::VersionNegotiation { versions, .. }) = only(&buf) else { panic!("not read") };
    assert_eq!(versions, [Version(9); MAX_VERSIONS]);
}

#[test]
fn reserved_bits_differ_between_the_header_forms() {
    assert!([0xc4, 0xc8, 0x50, 0x48].map(has_reserved_bits).iter().all(|&set| set));
    assert!([0xf3, 0xd0, 0x67, 0x44].map(has_reserved_bits).iter().all(|&set| !set));
    assert_eq!(KeyPhase::Zero.next(), KeyPhase::of(0x44));
    assert_eq!(KeyPhase::One.next(), KeyPhase::default());
}

proptest! {
    #[test]
    fn long_headers_are_read_as_written(
        kind in 0..3_usize,
        destination in connection_ids(),
        source in connection_ids(),
        token in proptest::collection::vec(any::<u8>(), 0..100),
        number: u64,
        number_length in 1..=4_usize,
        payload in 4..2000_usize,
        before in 0..50_usize,
    ) {
        let kind = [LongKind::Initial, LongKind::ZeroRtt, LongKind::Handshake][kind];
        let header = LongHeader { kind, version: Version::V1, destination, source, token: &token };
        let mut buf = vec![0xaa; before];
        let layout = header.put(&mut buf, number, number_length);
        prop_assert_eq!(buf.len() - before, header.size(number_length));
        prop_assert_eq!(buf.len(), layout.payload_offset());
        buf.resize(buf.len() + payload, 0);
        patch_length(&mut buf, &layout, before, 16);
        buf.resize(buf.len() + 16, 0);

        let written = buf.split_off(before);
        prop_assert_eq!(destination_of(&written, 8), Some(destination));
        let mut datagram = BytesMut::from(&written[..]);
        datagram.extend_from_slice(b"rest");
        let packet = protected(next_packet(&mut datagram, 8, QuicBit::Fixed).unwrap());
        prop_assert_eq!(&datagram[..], b"rest");
        let expected = match kind {
            LongKind::Initial => PacketKind::Initial { token: token.clone().into() },
            LongKind::ZeroRtt => PacketKind::ZeroRtt,
            LongKind::Handshake => PacketKind::Handshake,
        };
        prop_assert_eq!((packet.kind, packet.version), (expected, Version::V1));
        prop_assert_eq!((packet.destination, packet.source), (destination, source));
        prop_assert_eq!(packet.number_offset, layout.number_offset - before);
        prop_assert_eq!(&packet.bytes[..], &written[..]);
        prop_assert_eq!(usize::from(packet.bytes[0] & 3) + 1, number_length);
    }

    #[test]
    fn short_headers_are_read_as_written(
        destination in connection_ids(),
        bits in 0..4_u8,
        number: u64,
        number_length in 1..=4_usize,
    ) {
        let key_phase = if bits & 1 == 0 { KeyPhase::Zero } else { KeyPhase::One };
        let header = ShortHeader { destination, key_phase, spin: bits & 2 != 0 };
        let mut buf = Vec::new();
        let layout = header.put(&mut buf, number, number_length);
        prop_assert_eq!(buf.len(), header.size(number_length));
        patch_length(&mut buf, &layout, 0, 16);
        buf.resize(buf.len() + 20, 0);
        prop_assert_eq!(destination_of(&buf, destination.len()), Some(destination));
        let packet = protected(next_packet(&mut BytesMut::from(&buf[..]), destination.len(), QuicBit::Fixed).unwrap());
        prop_assert_eq!((packet.destination, packet.source), (destination, ConnectionId::EMPTY));
        prop_assert_eq!(packet.number_offset, layout.number_offset);
        prop_assert_eq!(KeyPhase::of(packet.bytes[0]), key_phase);
        prop_assert!(!has_reserved_bits(packet.bytes[0]));
        prop_assert_eq!(&packet.bytes[..], &buf[..]);
    }

    #[test]
    fn random_datagrams_never_panic(
        first: u8,
        version in prop_oneof![Just(1_u32), Just(0), any::<u32>()],
        tail in proptest::collection::vec(any::<u8>(), 0..200),
        cut in 0..210_usize,
        short_id_length in 0..25_usize,
    ) {
        let mut bytes = vec![first];
        bytes.extend(version.to_be_bytes());
        bytes.extend(tail);
        bytes.truncate(cut);
        destination_of(&bytes, short_id_length);
        let mut datagram = BytesMut::from(&bytes[..]);
        while !datagram.is_empty() {
            let before = datagram.len();
            let _ = next_packet(&mut datagram, short_id_length, QuicBit::Fixed);
            // Every call makes progress.
            prop_assert!(datagram.len() < before);
        }
    }

    #[test]
    fn a_flipped_bit_never_panics(bit in 0..800_usize) {
        let mut bytes = [packet(&initial(b"tok"), 40), packet(&initial(&[]), 30)].concat();
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
        let mut datagram = BytesMut::from(&bytes[..]);
        let mut packets = 0;
        while !datagram.is_empty() {
            packets += 1;
            let _ = next_packet(&mut datagram, 8, QuicBit::Fixed);
        }
        prop_assert!((1..=4).contains(&packets));
    }
}

#[test]
fn packets_without_the_quic_bit_are_taken_where_it_may_vary() {
    // RFC 9287 §3.
    let mut packets = [packet(&initial(&[]), 30), vec![0x40; 30]];
    for bytes in &mut packets {
        bytes[0] &= !FIXED;
        let read = |quic_bit| next_packet(&mut BytesMut::from(&bytes[..]), 8, quic_bit);
        assert_eq!(read(QuicBit::Fixed), Err(Dropped::Malformed));
        assert_eq!(protected(read(QuicBit::Free).unwrap()).bytes, bytes[..]);
    }
}

#[test]
fn version_negotiation_looks_like_a_long_header_whatever_bits_are_drawn() {
    // RFC 9000 §17.2.1, and the bit of RFC 9443 §3 that tells QUIC from other protocols.
    for random in 0..=0xff {
        let mut bytes = Vec::new();
        put_version_negotiation(&mut bytes, &[1; 8], &[2; 8], &[Version::V1], random);
        assert_eq!(bytes[0], random | 0xc0);
    }
}

#[test]
fn a_short_packet_is_taken_the_same_way_without_looking_for_others() {
    for (first, length, short_id_length) in
        [(0x40, 30, 8), (0x40, 21, 0), (0x40, 20, 8), (0, 30, 8), (0x40, 0, 8)]
    {
        let datagram = BytesMut::from(&[&[first][..], &vec![7; length]].concat()[..]);
        let (mut one, mut other) = (datagram.clone(), datagram);
        let taken = short_packet(&mut one, short_id_length, QuicBit::Fixed).expect("the header is short");
        let expected = next_packet(&mut other, short_id_length, QuicBit::Fixed);
        assert_eq!(taken.map(|short| Incoming::Protected(short.into())), expected);
        assert!(one.is_empty() && other.is_empty(), "all of a datagram is one packet");
    }
    let long = packet(&initial(&[]), 40);
    let mut datagram = BytesMut::from(&long[..]);
    assert_eq!(short_packet(&mut datagram, 8, QuicBit::Fixed), None);
    assert_eq!(datagram, long[..], "it is left for others");
    assert_eq!(short_packet(&mut BytesMut::new(), 8, QuicBit::Fixed), None);
}
