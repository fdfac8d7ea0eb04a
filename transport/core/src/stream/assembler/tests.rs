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
    let mut it = Assembler::default();
    let refused = (0..WINDOW / 2).find(|i| it.insert(2 * i + 1, Bytes::from_static(b"x"), WINDOW).is_err());
    assert_eq!(refused, Some(MIN_RUNS as u64));
}

#[test]
fn contiguous_one_byte_fragments_are_joined() {
    for backwards in [false, true] {
        let mut it = Assembler::default();
        for i in 0..WINDOW {
            insert(&mut it, if backwards { WINDOW - 1 - i } else { i }, b"x");
        }
        let chunks = it.gapped.as_ref().map_or(0, |gapped| gapped.chunks.len());
        assert!(chunks <= 2 * WINDOW as usize / JOINED_SIZE, "{chunks} chunks");
        assert_eq!((it.runs(), it.total()), (1, WINDOW));
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
