use super::*;
use proptest::prelude::*;

const WINDOW: u64 = 64 * 1024;

fn insert(assembler: &mut Assembler, offset: u64, data: &[u8]) {
    assembler.insert(offset, Bytes::copy_from_slice(data), WINDOW).expect("few pieces");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-2.2
//= type=test
//# Endpoints MUST be able to deliver stream data to an application as an ordered byte stream
#[test]
fn data_is_read_in_order_whatever_the_order_of_arrival() {
    let mut it = Assembler::default();
    insert(&mut it, 3, b"def");
    assert_eq!((it.read(10), it.runs()), (None, 1));
    insert(&mut it, 0, b"abc");
    assert_eq!((it.read(2).as_deref(), it.read(10).as_deref()), (Some(&b"ab"[..]), Some(&b"cdef"[..])));
    assert_eq!((it.read(1), it.runs(), it.total()), (None, 0, 6));
}

#[test]
fn the_first_of_overlapping_data_wins() {
    // attacks E7.
    let mut it = Assembler::default();
    insert(&mut it, 2, b"BB");
    insert(&mut it, 6, b"DD");
    insert(&mut it, 0, b"xxxxxxxxxx");
    assert_eq!(it.read(100).as_deref(), Some(&b"xxBBxxDDxx"[..]));
    insert(&mut it, 4, b"old");
    assert_eq!((it.read(1), it.total()), (None, 10));
}

#[test]
fn large_pieces_are_not_copied_and_small_ones_do_not_pin_their_datagram() {
    let mut it = Assembler::default();
    let datagram = Bytes::from(vec![1; 1400]);
    it.insert(0, datagram.clone(), WINDOW).expect("one piece");
    it.insert(1400, datagram.slice(..10), WINDOW).expect("one piece");
    assert_eq!(it.read(2000).expect("data").as_ptr(), datagram.as_ptr());
    assert_ne!(it.read(2000).expect("data").as_ptr(), datagram.as_ptr());
}

#[test]
fn a_short_message_shares_memory_with_others_and_only_while_nothing_waits_before_it() {
    let (mut it, mut other, mut blocks) = (Assembler::default(), Assembler::default(), Blocks::default());
    let datagram = Bytes::from(vec![1; 1400]);
    assert!(!it.insert_next(1, &datagram.slice(1..10), &mut blocks), "a gap");
    assert!(!it.insert_next(0, &datagram, &mut blocks), "large");
    assert!(!it.insert_next(0, &datagram.slice(..SMALL_PIECE), &mut blocks), "just as large");
    assert!(it.insert_next(0, &datagram.slice(..10), &mut blocks));
    assert!(other.insert_next(0, &datagram.slice(..20), &mut blocks));
    assert!(!it.insert_next(10, &datagram.slice(10..20), &mut blocks), "the first is not read yet");
    let (first, second) = (it.read(100).expect("data"), other.read(100).expect("data"));
    assert_eq!((first.len(), second.len(), it.total()), (10, 20, 10));
    assert_eq!(second.as_ptr(), first.as_ptr().wrapping_add(10));
    assert!(it.insert_next(10, &datagram.slice(10..20), &mut blocks));
}

#[test]
fn one_byte_fragments_with_gaps_are_bounded() {
    // attacks E6.
    for (window, most) in [(WINDOW, MIN_RUNS as u64), (16 * WINDOW, 4096)] {
        let mut it = Assembler::default();
        let refused =
            (0..window / 2).find(|i| it.insert(2 * i + 1, Bytes::from_static(b"x"), window).is_err());
        assert_eq!(refused, Some(most), "in a window of {window} bytes");
    }
}

#[test]
fn contiguous_one_byte_fragments_are_joined() {
    for backwards in [false, true] {
        let (mut it, mut held) = (Assembler::default(), 0);
        for i in 0..WINDOW {
            insert(&mut it, if backwards { WINDOW - 1 - i } else { i }, b"x");
            held = held.max(it.gapped.as_ref().map_or(0, |gapped| gapped.chunks.len()));
        }
        assert!(held <= 2 * WINDOW as usize / JOINED_SIZE, "{held} chunks behind a gap");
        assert_eq!((it.runs(), it.total()), (1, WINDOW));
        let chunks = std::iter::from_fn(|| it.read(usize::MAX)).count();
        assert!(chunks <= 2 * WINDOW as usize / JOINED_SIZE, "{chunks} chunks");
    }
}

#[test]
fn small_pieces_are_joined_up_to_four_kibibytes() {
    let mut it = Assembler::default();
    (0..128).for_each(|index| insert(&mut it, 64 * index, &[7; 64]));
    let sizes: Vec<usize> = std::iter::from_fn(|| it.read(usize::MAX)).map(|piece| piece.len()).collect();
    assert_eq!(sizes, [JOINED_SIZE, JOINED_SIZE]);
}

/// The number of bytes that can be read, and of pieces that are left then.
fn drain(it: &mut Assembler) -> (usize, usize) {
    let pieces: Vec<usize> = std::iter::from_fn(|| it.read(usize::MAX)).map(|piece| piece.len()).collect();
    assert!(!pieces.contains(&0), "an empty piece would say that there is more to read");
    let bytes = pieces.iter().sum();
    (bytes, it.runs())
}

#[test]
fn of_what_is_truncated_nothing_behind_is_held_or_read() {
    // In order: two pieces of 1500 bytes, cut within the second, between them, and within the first.
    for (to, left) in [(2000, 2000), (1500, 1500), (7, 7), (9000, 3000)] {
        let mut it = Assembler::default();
        insert(&mut it, 0, &[1; 1500]);
        insert(&mut it, 1500, &[2; 1500]);
        assert_eq!((it.truncate(to), drain(&mut it)), (to, (left, 0)), "cut at {to}");
        assert!(!it.is_readable());
    }
    // Behind a gap: two pieces that touch, and one behind another gap.
    for (to, held, left) in
        [(4000, 1, 4000), (3500, 1, 3500), (2100, 1, 2100), (2000, 0, 2000), (6000, 2, 5000)]
    {
        let mut it = Assembler::default();
        insert(&mut it, 2000, &[1; 1500]);
        insert(&mut it, 3500, &[2; 1500]);
        insert(&mut it, 5500, &[3; 1500]);
        assert_eq!((it.truncate(to), it.runs()), (to, held), "cut at {to}");
        insert(&mut it, 0, &[4; 2000]);
        assert_eq!(drain(&mut it), (left, held.saturating_sub(1)), "cut at {to}");
    }
}

#[test]
fn missing_data_is_taken_even_when_there_is_no_room_for_another_gap() {
    let mut it = Assembler::default();
    for i in 0..MIN_RUNS as u64 {
        insert(&mut it, 2 * i + 2, b"x");
    }
    insert(&mut it, 0, b"y");
    assert_eq!(it.read(1).as_deref(), Some(&b"y"[..]));
    insert(&mut it, 1, b"z");
    assert_eq!(it.read(9).as_deref(), Some(&b"zx"[..]));
}

proptest! {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-2.2
    //= type=test
    //# Endpoints MUST be able to deliver stream data to an application as an ordered byte stream
    #[test]
    fn it_agrees_with_an_array(
        steps in proptest::collection::vec((0usize..9000, 1usize..3000, 0usize..2500, any::<u8>()), 1..60),
    ) {
        let (mut it, mut blocks) = (Assembler::default(), Blocks::default());
        let mut model: Vec<Option<u8>> = vec![None; 12_000];
        let mut read = 0;
        for (offset, length, take, fill) in steps {
            let data: Vec<u8> = (0..length).map(|i| fill.wrapping_add(i as u8)).collect();
            let bytes = Bytes::from(data.clone());
            if !it.insert_next(offset as u64, &bytes, &mut blocks) {
                it.insert(offset as u64, bytes, WINDOW).expect("few pieces");
            }
            for (cell, byte) in model[offset..offset + length].iter_mut().zip(data) {
                cell.get_or_insert(byte);
            }
            let mut taken = 0;
            while taken < take && let Some(bytes) = it.read(take - taken) {
                prop_assert!(!bytes.is_empty());
                let expected: Option<Vec<u8>> = model[read..read + bytes.len()].iter().copied().collect();
                prop_assert_eq!(Some(bytes.to_vec()), expected);
                read += bytes.len();
                taken += bytes.len();
            }
            prop_assert!(taken == take || model[read].is_none(), "stopped early at {}", read);
            prop_assert_eq!(it.total(), model.iter().flatten().count() as u64);
            let unread = &model[read..];
            let runs = (0..unread.len()).filter(|&i| unread[i].is_some() && (i == 0 || unread[i - 1].is_none())).count();
            prop_assert_eq!(it.runs(), runs);
            let gapped = it.gapped.as_ref().and_then(|gapped| gapped.chunks.first_key_value());
            prop_assert!(gapped.is_none_or(|(start, _)| *start >= it.read_offset()));
        }
    }
}

/// All that can be read now, each piece with its offset.
fn unordered(it: &mut Assembler, most: usize) -> Vec<(u64, Bytes)> {
    let next = || {
        let offset = it.begin_unordered();
        it.read(most).map(|bytes| (offset, bytes))
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn data_behind_a_gap_is_read_at_once_by_who_reads_in_any_order_and_never_twice() {
    let mut it = Assembler::default();
    insert(&mut it, 0, b"ab");
    insert(&mut it, 6, b"gh");
    let read = |pieces: &[(u64, &'static [u8])]| -> Vec<(u64, Bytes)> {
        pieces.iter().map(|(at, data)| (*at, Bytes::from_static(data))).collect()
    };
    assert_eq!(unordered(&mut it, 1), read(&[(0, b"a"), (1, b"b"), (6, b"g"), (7, b"h")]));
    insert(&mut it, 0, b"xxxxxxxxxx");
    assert_eq!(unordered(&mut it, 100), read(&[(2, b"xxxx"), (8, b"xx")]));
    assert_eq!((it.total(), it.is_readable()), (10, false));
    assert!(!it.insert_next(10, &Bytes::from_static(b"k"), &mut Blocks::default()), "there is no order");
}

#[test]
fn gaps_are_bounded_for_who_reads_in_any_order_too() {
    let mut it = Assembler::default();
    it.begin_unordered();
    let failed = (0..2_000).find(|index| it.insert(index * 2, Bytes::from_static(b"x"), WINDOW).is_err());
    assert_eq!(failed, Some(MIN_RUNS as u64));
    // What was read is remembered, so that it is not read twice.
    let mut it = Assembler::default();
    it.begin_unordered();
    let failed = (0..2_000).find(|index| {
        let is_refused = it.insert(index * 2, Bytes::from_static(b"x"), WINDOW).is_err();
        it.read(1);
        is_refused
    });
    assert_eq!(failed, Some(MIN_RUNS as u64));
}

#[test]
fn who_begins_to_read_in_any_order_gets_each_piece_with_its_offset_and_no_empty_one() {
    let mut it = Assembler::default();
    insert(&mut it, 0, &[1; 1500]);
    insert(&mut it, 1500, &[2; 1500]);
    insert(&mut it, 4000, &[3; 1500]);
    let pieces = unordered(&mut it, 2000).into_iter().map(|(at, bytes)| (at, bytes.len()));
    assert_eq!(pieces.collect::<Vec<_>>(), [(0, 1500), (1500, 1500), (4000, 1500)]);
    for offset in [0, 7, 9000] {
        insert(&mut it, offset, b"");
    }
    assert!(!it.is_readable(), "the mere end of a stream is no data");
    insert(&mut it, 6000, &[4; 1500]);
    insert(&mut it, 3000, &[5; 1000]);
    assert_eq!(it.truncate(6000), 1500, "the gap below, and what was not read");
    assert_eq!(
        unordered(&mut it, 2000).iter().map(|(at, bytes)| (*at, bytes.len())).collect::<Vec<_>>(),
        [(3000, 1000)]
    );
    assert!(!it.is_readable());
}

proptest! {
    #[test]
    fn in_any_order_each_byte_is_read_once_at_its_offset(
        pieces in proptest::collection::vec((0_usize..300, 1_usize..60, any::<bool>()), 1..60),
        begin in 0_usize..30,
    ) {
        let data: Vec<u8> = (0..400_u32).map(|at| (at * 7 % 251) as u8).collect();
        let (mut it, mut got, mut sent) = (Assembler::default(), vec![None; 400], vec![false; 400]);
        for (index, (at, length, reads)) in pieces.into_iter().enumerate() {
            insert(&mut it, at as u64, &data[at..at + length]);
            sent[at..at + length].fill(true);
            if reads && index >= begin {
                for (offset, bytes) in unordered(&mut it, 17) {
                    for (place, byte) in got[offset as usize..].iter_mut().zip(&bytes) {
                        prop_assert_eq!(place.replace(*byte), None, "a byte was read twice");
                    }
                }
            }
        }
        for (offset, bytes) in unordered(&mut it, 400) {
            for (place, byte) in got[offset as usize..].iter_mut().zip(&bytes) {
                prop_assert_eq!(place.replace(*byte), None, "a byte was read twice");
            }
        }
        let expected: Vec<Option<u8>> = data.iter().zip(sent).map(|(byte, sent)| sent.then_some(*byte)).collect();
        prop_assert_eq!(got, expected);
    }
}
