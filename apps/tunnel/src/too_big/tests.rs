use super::*;
use std::net::Ipv6Addr;

const V4: (Ipv4Addr, Ipv4Addr) = (Ipv4Addr::new(100, 64, 0, 2), Ipv4Addr::new(192, 0, 2, 1));
const ROOM: Room = Room { now: 1166, later: 1166 };

/// A UDP packet of `size` bytes over IPv4, with `flags` as the seventh byte.
fn four(size: usize, flags: u8) -> Vec<u8> {
    let mut packet = vec![0; size];
    (packet[0], packet[6], packet[8], packet[9]) = (0x45, flags, 64, 17);
    packet[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    packet[12..16].copy_from_slice(&V4.0.octets());
    packet[16..20].copy_from_slice(&V4.1.octets());
    packet.iter_mut().skip(20).enumerate().for_each(|(at, byte)| *byte = at as u8);
    packet
}

/// A UDP packet of `size` bytes over IPv6.
fn six(size: usize) -> Vec<u8> {
    let mut packet = vec![7; size];
    packet[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 0, 17, 64]);
    packet[4..6].copy_from_slice(&((size - 40) as u16).to_be_bytes());
    packet[8..24].copy_from_slice(&"fd68::2".parse::<Ipv6Addr>().unwrap().octets());
    packet[24..40].copy_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
    packet
}

fn judged(packet: &[u8], room: Room) -> Remedy {
    judge(packet, Header::read(packet).as_ref(), room)
}

/// Returns true if the sum over `parts`, the checksum in them included, is right.
fn sums_up(parts: &[&[u8]]) -> bool {
    checksum(parts) == [0, 0]
}

#[test]
fn a_packet_of_every_size_that_may_not_be_divided_is_carried_or_its_sender_told_the_largest() {
    for size in 1167..=1500 {
        let packet = four(size, DO_NOT_FRAGMENT);
        let Remedy::Answer(answer) = judged(&packet, ROOM) else { panic!("{size}") };
        let header = Header::read(&answer).expect("a packet");
        assert_eq!((header.source, header.destination), (V4.1.into(), V4.0.into()));
        assert_eq!((header.transport, answer.len()), (Transport::Icmp, 576));
        // RFC 792, RFC 1191 §4: type 3, code 4, the size in the last two bytes; then the packet.
        assert_eq!((&answer[20..22], &answer[24..28]), (&[3, 4][..], &[0, 0, 0x04, 0x8e][..]));
        assert_eq!(answer[28..], packet[..548]);
        assert!(sums_up(&[&answer[..20]]) && sums_up(&[&answer[20..]]));
        let trying = Room { later: size, ..ROOM };
        assert_eq!(judged(&packet, trying), Remedy::Capsule, "nobody is told a size that is about to grow");
    }
}

#[test]
fn ipv6_is_carried_up_to_1280_bytes_and_told_no_less() {
    for size in 1167..=1500 {
        let packet = six(size);
        match judged(&packet, ROOM) {
            Remedy::Capsule => assert!(size <= 1280, "{size}"),
            Remedy::Answer(answer) => {
                assert!(size > 1280, "{size}");
                assert_eq!((answer.len(), answer[40], &answer[44..48]), (1280, 2, &[0, 0, 5, 0][..]));
                assert_eq!(answer[48..], packet[..1232]);
                let pseudo = [&answer[8..40], &1240_u32.to_be_bytes(), &[0, 0, 0, 58]].concat();
                assert!(sums_up(&[&pseudo, &answer[40..]]));
            }
            other => panic!("{size}: {other:?}"),
        }
    }
    let Remedy::Answer(answer) = judged(&six(1450), Room { now: 1410, later: 1410 }) else { panic!() };
    assert_eq!(answer[44..48], 1410_u32.to_be_bytes());
}

#[test]
fn a_packet_that_may_be_divided_is_and_its_pieces_make_it_again() {
    for size in 1167..=1500 {
        for (first, more) in [(0, 0), (0x20, MORE_FRAGMENTS)] {
            let mut packet = four(size, first);
            packet[7] = 5;
            let Remedy::Fragments(pieces) = judged(&packet, ROOM) else { panic!("{size}") };
            let mut data = Vec::new();
            for (index, piece) in pieces.iter().enumerate() {
                assert!(piece.len() <= ROOM.now && sums_up(&[&piece[..20]]), "{size}");
                assert_eq!(usize::from(u16::from_be_bytes([piece[2], piece[3]])), piece.len());
                let offset = usize::from(u16::from_be_bytes([piece[6] & 0x1f, piece[7]]));
                assert_eq!(offset, 5 + data.len() / 8);
                let last = index + 1 == pieces.len();
                assert_eq!(piece[6] & MORE_FRAGMENTS, if last { more } else { MORE_FRAGMENTS });
                data.extend_from_slice(&piece[20..]);
            }
            assert_eq!((pieces.len(), &data[..]), (2, &packet[20..]));
        }
    }
    let mut options = four(1400, 0);
    options[0] = 0x46;
    assert_eq!(judged(&options, ROOM), Remedy::Drop, "some options belong into the first fragment only");
    assert_eq!(judged(&four(1400, 0), Room { now: 27, later: 27 }), Remedy::Drop);
}

#[test]
fn nobody_is_answered_who_must_not_be() {
    let with = |at: usize, bytes: &[u8]| {
        let mut packet = four(1400, DO_NOT_FRAGMENT);
        packet[at..at + bytes.len()].copy_from_slice(bytes);
        packet
    };
    for (packet, what) in [
        (with(12, &[0; 4]), "from nobody"),
        (with(12, &[127, 0, 0, 1]), "from this machine"),
        (with(16, &[224, 0, 0, 1]), "to many"),
        (with(16, &[255; 4]), "to all"),
        (with(6, &[DO_NOT_FRAGMENT, 9]), "a later fragment"),
        (
            {
                let mut packet = with(9, &[1]);
                packet[20] = 3;
                packet
            },
            "an error",
        ),
        (vec![0x45; 30], "no packet"),
    ] {
        assert_eq!(judged(&packet, ROOM), Remedy::Drop, "{what}");
    }
    let mut echo = with(9, &[1]);
    echo[20] = 8;
    assert!(matches!(judged(&echo, ROOM), Remedy::Answer(_)), "an echo request is no error");
    let mut error = six(1400);
    (error[6], error[40]) = (58, 1);
    assert_eq!(judged(&error, ROOM), Remedy::Drop);
}

#[test]
fn answers_are_limited() {
    let mut answers = Answers::default();
    let permitted = |answers: &mut Answers, second| {
        (0..1000).filter(|_| answers.permit(Duration::from_secs(second))).count()
    };
    assert_eq!((permitted(&mut answers, 0), permitted(&mut answers, 7)), (100, 100));
}
