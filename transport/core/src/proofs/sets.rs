//! Sets of ranges against a bitmap: every sequence of changes of a small set.

use super::sequences;
use crate::ranges::Ranges;

/// The integers that the sets are of.
const SIZE: u64 = 6;

#[derive(Clone, Copy, Debug)]
enum Change {
    Insert(u64),
    InsertRange(u64, u64),
    RemoveRange(u64, u64),
    RemoveBelow(u64),
    PopFirst,
}

/// Every change of a set of the integers below [`SIZE`].
fn changes() -> Vec<Change> {
    let mut all = vec![Change::PopFirst];
    for first in 0..SIZE {
        all.extend([Change::Insert(first), Change::RemoveBelow(first)]);
        for last in first..SIZE {
            all.extend([Change::InsertRange(first, last), Change::RemoveRange(first, last)]);
        }
    }
    all
}

fn span(first: u64, last: u64) -> u64 {
    (first..=last).fold(0, |bits, n| bits | 1 << n)
}

/// Makes `change` in both.
fn apply(set: &mut Ranges, model: &mut u64, change: Change) {
    match change {
        Change::Insert(n) => {
            assert_eq!(set.insert(n), *model & 1 << n == 0);
            *model |= 1 << n;
        }
        Change::InsertRange(first, last) => {
            set.insert_range(first..=last);
            *model |= span(first, last);
        }
        Change::RemoveRange(first, last) => {
            set.remove_range(first..=last);
            *model &= !span(first, last);
        }
        Change::RemoveBelow(n) => {
            set.remove_below(n);
            *model &= u64::MAX << n;
        }
        Change::PopFirst => {
            let popped = set.pop_first();
            let first = u64::from(model.trailing_zeros());
            let length = u64::from((*model >> (first & 63)).trailing_ones());
            assert_eq!(popped, (*model != 0).then(|| first..=first + length - 1));
            *model &= *model + (1 << (first & 63));
        }
    }
}

/// The set has the members of the model, as few ranges as possible, in order.
fn compare(set: &Ranges, model: u64) {
    let members = |n: &u64| model & 1 << n != 0;
    let starts = (0..SIZE).filter(|n| members(n) && (*n == 0 || !members(&(n - 1))));
    assert_eq!(set.iter().map(|range| *range.start()).collect::<Vec<_>>(), starts.collect::<Vec<_>>());
    assert!((0..=SIZE).all(|n| set.contains(n) == members(&n)), "{set:?} {model:b}");
    assert_eq!((set.is_empty(), set.smallest()), (model == 0, (0..SIZE).find(members)));
    assert_eq!(set.largest(), (0..SIZE).rev().find(members));
}

fn try_all(length: usize) {
    let changes = changes();
    sequences(changes.len(), length, |sequence| {
        let (mut set, mut model) = (Ranges::new(), 0);
        for change in sequence {
            apply(&mut set, &mut model, changes[*change]);
        }
        compare(&set, model);
    });
}

#[test]
fn every_three_changes_of_a_set_leave_what_they_leave_of_a_bitmap() {
    (0..=3).for_each(try_all);
}

#[test]
#[ignore = "takes long: make prove"]
fn every_four_changes_of_a_set_leave_what_they_leave_of_a_bitmap() {
    try_all(4);
}
