use super::*;
use proptest::prelude::*;

/// An IPv4 packet with a UDP datagram that holds `payload`.
fn ipv4(payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(28 + payload.len()).unwrap().to_be_bytes();
    let udp = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
    let mut packet =
        vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([0x03, 0xe8, 0x01, 0xbb, udp[0], udp[1], 0, 0]);
    packet.extend_from_slice(payload);
    packet
}

/// An IPv6 packet, with a hop-by-hop header before the UDP datagram that holds `payload`.
fn ipv6(payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(16 + payload.len()).unwrap().to_be_bytes();
    let udp = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, length[0], length[1], 0, 64];
    packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    packet.extend([17, 0, 1, 4, 0, 0, 0, 0]);
    packet.extend([0x03, 0xe8, 0x01, 0xbb, udp[0], udp[1], 0, 0]);
    packet.extend_from_slice(payload);
    packet
}

fn big_pcap(link: u32, records: &[&[u8]]) -> Vec<u8> {
    let mut file = vec![0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0];
    file.extend(link.to_be_bytes());
    for record in records {
        let length = u32::try_from(record.len()).unwrap().to_be_bytes();
        file.extend([7_u32.to_be_bytes(), 500_000_u32.to_be_bytes(), length, length].concat());
        file.extend_from_slice(record);
    }
    file
}

/// A block of a little-endian pcapng file.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let length = u32::try_from(12 + body.len()).unwrap().to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}

fn little_pcapng(link: u16, packet: &[u8]) -> Vec<u8> {
    let section = [&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat();
    // Nanoseconds, and an offset of 5 seconds.
    let options = [&[9, 0, 1, 0, 9, 0, 0, 0, 14, 0, 8, 0][..], &5_u64.to_le_bytes(), &[0; 4]].concat();
    let interface = [&link.to_le_bytes()[..], &[0, 0, 0, 0, 4, 0], &options].concat();
    let ticks = 2_500_000_000_u64;
    let length = u32::try_from(packet.len()).unwrap().to_le_bytes();
    let words = [[0; 4], ((ticks >> 32) as u32).to_le_bytes(), (ticks as u32).to_le_bytes(), length, length];
    let enhanced = [&words.concat()[..], packet].concat();
    [block(0x0a0d_0d0a, &section), block(1, &interface), block(99, b"unknown"), block(6, &enhanced)].concat()
}

/// The datagrams of a whole file, what was passed over, and how it ended.
fn read(file: &[u8]) -> (Vec<Datagram>, Skipped, Result<(), String>) {
    let mut capture = match Capture::open(file) {
        Ok(capture) => capture,
        Err(error) => return (Vec::new(), Skipped::default(), Err(error.to_string())),
    };
    let mut datagrams = Vec::new();
    loop {
        match capture.next_datagram() {
            Ok(Some(datagram)) => datagrams.push(datagram),
            Ok(None) => return (datagrams, capture.skipped(), Ok(())),
            Err(error) => return (datagrams, capture.skipped(), Err(error.to_string())),
        }
    }
}

#[test]
fn every_link_type_leads_to_the_datagram() {
    let ethernet = |kind: [u8; 2]| [&[2; 12][..], &kind].concat();
    let tagged = [&[2; 12][..], &[0x81, 0, 0, 5, 0x08, 0]].concat();
    let cooked_2 = [&[0x86, 0xdd][..], &[0; 18]].concat();
    for (link, header, packet) in [
        (1, ethernet([0x08, 0]), ipv4(b"hello")),
        (1, ethernet([0x86, 0xdd]), ipv6(b"hello")),
        (1, tagged, ipv4(b"hello")),
        (113, [&[0; 14][..], &[0x08, 0]].concat(), ipv4(b"hello")),
        (276, cooked_2, ipv6(b"hello")),
        (101, vec![], ipv6(b"hello")),
        (0, vec![2, 0, 0, 0], ipv4(b"hello")),
        (108, vec![0, 0, 0, 24], ipv6(b"hello")),
        (228, vec![], ipv4(b"hello")),
    ] {
        let (datagrams, _, end) = read(&big_pcap(link, &[&[header, packet].concat()]));
        assert_eq!((datagrams.len(), end), (1, Ok(())), "link type {link}");
        assert_eq!(datagrams[0].payload, b"hello", "link type {link}");
        assert_eq!((datagrams[0].source.port(), datagrams[0].destination.port()), (1000, 443));
        assert_eq!(datagrams[0].at, Duration::from_millis(7_500));
    }
}

#[test]
fn pcapng_has_interfaces_with_a_resolution_of_their_own() {
    let (datagrams, _, end) = read(&little_pcapng(101, &ipv4(b"hello")));
    assert_eq!((datagrams.len(), end), (1, Ok(())));
    assert_eq!(datagrams[0].at, Duration::from_millis(7_500));
    assert_eq!(datagrams[0].payload, b"hello");
}

#[test]
fn a_padded_frame_gives_no_padding() {
    let padded = [ipv4(b"hi"), vec![0; 20]].concat();
    assert_eq!(read(&big_pcap(101, &[&padded])).0[0].payload, b"hi");
}

#[test]
fn what_is_no_whole_datagram_is_counted() {
    let mut fragment = ipv4(b"hello");
    fragment[6] = 0x20;
    let mut tcp = ipv4(b"hello");
    tcp[9] = 6;
    let (datagrams, skipped, _) = read(&big_pcap(101, &[&fragment, &tcp, &[]]));
    assert!(datagrams.is_empty());
    assert_eq!((skipped.fragments, skipped.others), (1, 2));
    let (_, skipped, _) = read(&big_pcap(105, &[&fragment]));
    assert_eq!((skipped.unknown_links, skipped.unknown_link), (1, 105));
}

#[test]
fn a_file_that_is_no_capture_or_ends_early_is_said_to_be_so() {
    let says = |file: &[u8]| read(file).2.unwrap_err();
    assert_eq!(says(b""), "it is neither a pcap nor a pcapng file");
    assert_eq!(says(b"<html>"), "it is neither a pcap nor a pcapng file");
    let file = big_pcap(101, &[&ipv4(b"hello"), &ipv4(b"hello")]);
    let (datagrams, _, end) = read(&file[..file.len() - 3]);
    assert_eq!((datagrams.len(), end.unwrap_err().as_str()), (1, "it ends in the middle of a record"));
    let mut huge = big_pcap(101, &[&ipv4(b"hello")]);
    huge[32..36].copy_from_slice(&[0xff; 4]);
    assert_eq!(says(&huge), "it is damaged: a record of more than a mebibyte");
    let short = [&little_pcapng(101, &[])[..28], &[6, 0, 0, 0, 3, 0, 0, 0]].concat();
    assert_eq!(says(&short), "it is damaged: a block is too short");
}

proptest! {
    #[test]
    fn damaged_captures_never_panic(index in 0..3_usize, changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..8), cut: u16) {
        let mut file = match index {
            0 => big_pcap(1, &[&[&[2; 12][..], &[0x08, 0], &ipv4(b"hello")].concat()]),
            1 => little_pcapng(101, &ipv6(b"hello")),
            _ => big_pcap(276, &[&[&[0x86, 0xdd][..], &[0; 18], &ipv6(b"hello")].concat()]),
        };
        for (at, byte) in changes {
            let at = usize::from(at) % file.len();
            file[at] = byte;
        }
        file.truncate(file.len() - usize::from(cut) % file.len() / 2);
        let (datagrams, _, _) = read(&file);
        prop_assert!(datagrams.len() <= 1);
    }
}
