//! Headers, whole and broken.

use super::*;
use proptest::prelude::*;

fn sum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let mut all: u32 = words.sum();
    while all > 0xffff {
        all = (all & 0xffff) + (all >> 16);
    }
    all as u16
}

/// An IPv4 packet with a right checksum.
fn v4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut packet = vec![0x45, 1, 0, 0, 0, 7, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet[6..8].copy_from_slice(&fragment.to_be_bytes());
    let checksum = !sum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(payload);
    packet
}

fn v6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0x10, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend([[1; 16], [2; 16]].concat());
    packet.extend(payload);
    packet
}

fn tcp(flags: u8, data: usize) -> Vec<u8> {
    let mut segment = vec![0x04, 0xd2, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0];
    segment.extend(vec![7; data]);
    segment
}

#[test]
fn ports_flags_and_data_of_a_segment_are_read() {
    for packet in [v4(6, 0, &tcp(0x12, 3)), v6(6, &tcp(0x12, 3))] {
        let header = Header::read(&packet).unwrap();
        let Transport::Tcp { ports, flags } = header.transport else { panic!("{header:?}") };
        assert_eq!((ports, flags.to_string().as_str(), header.payload), ((1234, 80), "SA", 3));
        assert!(flags.opens() && !flags.ends());
    }
}

#[test]
fn extension_headers_are_passed_over_and_fragments_have_no_ports() {
    let mut payload = vec![6, 0, 0, 0, 0, 0, 0, 0];
    payload.extend(tcp(2, 0));
    let header = Header::read(&v6(60, &payload)).unwrap();
    assert_eq!(header.transport.ports(), Some((1234, 80)));
    let mut fragment = vec![17, 0, 0, 8, 0, 0, 0, 1];
    fragment.extend([9; 24]);
    let header = Header::read(&v6(44, &fragment)).unwrap();
    assert_eq!((header.transport, header.payload), (Transport::Fragment(17), 24));
    // RFC 791 §3.1: the first fragment has the flag, the last the offset.
    for word in [0x2000, 0x00b9] {
        let header = Header::read(&v4(17, word, &[0; 16])).unwrap();
        assert_eq!(header.transport, Transport::Fragment(17));
    }
}

#[test]
fn name_lookups_are_recognised_both_ways() {
    for ports in [[0xd4, 0x31, 0, 53], [0, 53, 0xd4, 0x31]] {
        let mut datagram = ports.to_vec();
        datagram.extend([0, 12, 0, 0, 1, 2, 3, 4]);
        let header = Header::read(&v4(17, 0, &datagram)).unwrap();
        assert!(header.is_name_lookup() && header.payload == 4);
    }
    assert!(!Header::read(&v4(6, 0, &tcp(2, 0))).unwrap().is_name_lookup());
}

#[test]
fn flows_are_told_apart_by_direction_and_ports_and_fragments_stay_together() {
    let flows = Flows::default();
    let of = |packet: &[u8]| flows.of(Header::read(packet).as_ref());
    assert_eq!(of(&v4(6, 0, &tcp(2, 0))), of(&v4(6, 0, &tcp(16, 900))));
    assert_ne!(of(&v4(6, 0, &tcp(2, 0))), of(&v6(6, &tcp(2, 0))));
    assert_eq!(of(&v4(17, 0x2000, &[1; 16])), of(&v4(17, 0x00b9, &[2; 16])));
    assert_eq!(of(b""), of(&[0xff; 60]));
}

#[test]
fn the_mark_of_congestion_keeps_the_checksum_right() {
    let mut packet = v4(6, 0, &tcp(16, 1));
    assert_eq!((packet[1] & 3, sum(&packet[..20])), (1, 0xffff));
    mark_congestion(&mut packet);
    assert_eq!((packet[1] & 3, sum(&packet[..20])), (3, 0xffff));
    let mut other = v4(6, 0, &tcp(16, 1));
    other[1] = 0;
    let before = other.clone();
    mark_congestion(&mut other);
    assert_eq!(other, before, "a packet that is not ECN-capable");
    let mut six = v6(6, &tcp(16, 1));
    mark_congestion(&mut six);
    assert_eq!(six[1], 0x30);
}

proptest! {
    #[test]
    fn no_bytes_upset_it(mut packet in proptest::collection::vec(any::<u8>(), 0..120), version in 0u8..16) {
        if let Some(first) = packet.first_mut() {
            *first = (*first & 15) | (version << 4);
        }
        let header = Header::read(&packet);
        prop_assert!(header.is_none_or(|header| header.payload <= packet.len()));
        mark_congestion(&mut packet);
        let _flow = Flows::default().of(header.as_ref());
    }
}
