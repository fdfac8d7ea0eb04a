//! Acknowledged packet numbers: what makes two acknowledgements the same, and how many ranges fit.

use super::*;

#[test]
fn acknowledgements_are_the_same_only_with_the_same_numbers() {
    let numbers = |ranges: &[std::ops::RangeInclusive<u64>]| ack(None, ranges, None);
    let one = numbers(&[1..=3, 7..=9]);
    assert_eq!(one, numbers(&[1..=3, 7..=9]));
    for other in [&[1..=2, 7..=9][..], &[1..=3, 6..=9], &[0..=3, 7..=9], &[7..=9], &[1..=3, 7..=10]] {
        assert_ne!(one, numbers(other), "{other:?}");
    }
    let again = read(&encoded(&one)).pop().expect("a frame").expect("it is well-formed");
    assert_eq!(one, again, "as it was written and as it was read");
}

#[test]
fn ranges_fill_what_there_is_room_for_and_no_more() {
    // Two bytes a range, and one more from the 64th on, where their number takes two.
    let ranges: Ranges = (0..200).map(|n| 10 + 2 * n..=10 + 2 * n).collect();
    let mut written = Vec::new();
    for budget in 5..=300 {
        let ranges = AckRanges::from_ranges(&ranges, budget).expect("room for one range");
        let mut bytes = Vec::new();
        let frame = Frame::Ack(Ack { path: None, largest: ranges.largest(), delay: 0, ranges, ecn: None });
        frame.put(&mut bytes);
        // Type and delay are beside what the budget is for.
        let size = bytes.len() - 2;
        assert!(size <= budget && budget <= size + 3, "{size} bytes of {budget}");
        written.push(size);
    }
    assert!(written.is_sorted());
}
