//! Long segments, divided as the kernel would.

use super::*;
use proptest::prelude::*;

/// A TCP packet with `payload`, without checksums.
fn packet(six: bool, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).unwrap();
    let mut packet = match six {
        false => {
            let mut header = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            header[2..4].copy_from_slice(&(length + 20).to_be_bytes());
            header
        }
        true => {
            let mut header = vec![0x60, 0, 0, 0, 0, 0, TCP, 64];
            header[4..6].copy_from_slice(&length.to_be_bytes());
            header.extend((0..32).map(|at| at * 7));
            header
        }
    };
    packet.extend([0, 80, 0, 90, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 0x50, 0x19, 1, 0, 0, 0, 0, 0]);
    packet.extend_from_slice(payload);
    packet
}

/// The bytes that a device would leave of `packet`, to be divided by `piece`.
fn left(mut packet: Vec<u8>, piece: Option<NonZeroU16>) -> Vec<u8> {
    let header = unfinished(&mut packet, piece).unwrap();
    [&header[..], &packet].concat()
}

#[test]
fn a_long_segment_becomes_packets_with_right_checksums_and_numbers() {
    let payload: Vec<u8> = (0..10_000_u32).map(|at| (at % 251) as u8).collect();
    for six in [false, true] {
        let mut bytes = left(packet(six, &payload), NonZeroU16::new(1_320));
        let segment = Segment::read(&mut bytes).unwrap();
        assert!(segment.is_sound_tcp());
        let mut pieces = Pieces::default();
        let packets: Vec<&[u8]> = segment.split(&mut pieces).unwrap().collect();
        assert_eq!(packets.len(), 8);
        let start = if six { 40 } else { 20 };
        let mut carried = Vec::new();
        for packet in packets {
            assert_eq!(Tcp::of(packet).unwrap().sum(packet), Some(u16::MAX));
            let number = u32::from_be_bytes(packet[start + 4..start + 8].try_into().unwrap());
            assert_eq!(number, 0xffff_ff00_u32.wrapping_add(carried.len() as u32));
            carried.extend_from_slice(&packet[start + 20..]);
            // FIN and PSH are those of the last.
            assert_eq!(packet[start + 13] & 9 != 0, carried.len() == payload.len());
        }
        assert!(carried == payload);
    }
}

#[test]
fn a_packet_gets_its_checksum_and_a_damaged_one_is_found_out() {
    for six in [false, true] {
        let mut bytes = left(packet(six, b"hello"), NonZeroU16::new(1_320));
        let segment = Segment::read(&mut bytes).unwrap();
        let mut pieces = Pieces::default();
        let mut whole = segment.split(&mut pieces).unwrap().next().unwrap().to_vec();
        assert!(Segment::plain(&mut whole).is_sound_tcp());
        *whole.last_mut().unwrap() ^= 1;
        assert!(!Segment::plain(&mut whole).is_sound_tcp(), "nobody has looked at it");
        let compared = VirtioNetHdr { flags: DATA_VALID, ..VirtioNetHdr::default() };
        assert!(Segment { header: compared, packet: &mut whole }.is_sound_tcp());
    }
    let mut other = packet(false, b"");
    other[9] = 17;
    assert!(!Segment::plain(&mut other).is_sound_tcp(), "it is not of TCP");
}

#[test]
fn room_for_packets_is_used_again() {
    let mut coalescer = Coalescer::default();
    let packets = [Bytes::from_static(b"one"), Bytes::from_static(b"another")];
    assert_eq!(coalescer.fill(&packets), 2);
    assert_eq!(coalescer.fill(&packets[1..]), 1);
    assert_eq!(&coalescer.packets[0][Coalescer::AHEAD..], b"another");
}

proptest! {
    #[test]
    fn segments_without_sense_are_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..6_u8, v6 in any::<bool>(),
    ) {
        if let Some(gso) = bytes.get_mut(1) {
            *gso = kind;
        }
        if let Some(first) = bytes.get_mut(VIRTIO_NET_HDR_LEN) {
            *first = if v6 { 0x60 } else { 0x45 };
        }
        if let Ok(segment) = Segment::read(&mut bytes) {
            let size = segment.bytes().len();
            let _sound = segment.is_sound_tcp();
            let mut pieces = Pieces::default();
            let total: usize = segment.split(&mut pieces).map_or(0, |packets| packets.map(<[u8]>::len).sum());
            prop_assert!(total <= size * (size + 1), "headers come again with each byte at most");
        }
        let _header = unfinished(&mut bytes, NonZeroU16::new(9));
    }
}
