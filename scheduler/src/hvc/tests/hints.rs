//! Prices, losses, and copies.

use super::*;
use crate::{Duplicating, Hints, PathSet, PerMille};

fn priced(price: u64, path: PathView) -> PathView {
    PathView { hints: Hints { price_per_byte: Some(price), ..Hints::NONE }, ..path }
}

fn lossy(thousandths: u16, path: PathView) -> PathView {
    PathView { loss: PerMille::new(thousandths), ..path }
}

/// A second path as wide as eMBB, with a third of the delay.
fn near(path: PathView) -> PathView {
    PathView { delay: milliseconds(7), ..PathView { id: URLLC, ..path } }
}

/// The largest item that the second path carries beside eMBB that costs 1.
fn largest(second: PathView) -> usize {
    let carried = |bytes: &usize| place(&data(*bytes), &[priced(1, embb()), second]) == on(URLLC, *bytes);
    (1..400_000).step_by(100).take_while(carried).last().unwrap_or(0)
}

#[test]
fn a_path_has_to_be_worth_its_price() {
    // 13 ms are worth the transmission cost at 0.75 times the ratio of prices: of 100 Mbit/s it takes 1/12500 ms a byte.
    assert_eq!(place(&data(100_000), &[priced(1, embb()), priced(1, near(embb()))]), on(URLLC, 100_000));
    let sizes = [2, 10, 40].map(|price| largest(priced(price, near(embb()))));
    for (size, expected) in sizes.into_iter().zip([108_000, 21_700, 5_400]) {
        assert!(size.abs_diff(expected) <= expected / 20 + 100, "{sizes:?}");
    }
}

#[test]
fn a_price_beyond_all_others_counts_as_the_most_that_is_compared() {
    assert_eq!(largest(priced(u64::MAX, near(embb()))), largest(priced(64, near(embb()))));
}

#[test]
fn a_path_that_loses_packets_counts_with_their_repetition() {
    let far = PathView { id: URLLC, delay: milliseconds(21), ..embb() };
    assert_eq!(place(&data(1200), &[embb(), far]), on(EMBB, 1200));
    // 30 in a thousand of 45 ms are 1.35 ms.
    assert_eq!(place(&data(1200), &[lossy(30, embb()), far]), on(URLLC, 1200));
    assert_eq!(place(&data(1200), &[lossy(10, embb()), far]), on(EMBB, 1200));
}

#[test]
fn control_frames_keep_to_paths_of_little_loss() {
    let control = Item::new(Content::Control, 20);
    assert_eq!(place(&control, &[embb(), lossy(5, urllc())]), on(URLLC, 20));
    assert_eq!(place(&control, &[embb(), lossy(50, urllc())]), on(EMBB, 20));
    assert_eq!(place(&control, &[lossy(45, embb()), lossy(50, urllc())]), on(URLLC, 20));
    assert_eq!(
        place(&control, &[full(embb(), 9), lossy(50, urllc())]),
        on(URLLC, 20),
        "nothing else has a send allowance"
    );
}

#[test]
fn what_is_critical_is_copied_if_that_is_asked_for() {
    let copied = |item: &Item, paths: &[PathView]| Duplicating::default().place(item, paths);
    let both = Placement::OnEach(PathSet::from_iter([0, 1]));
    let paths = [embb(), urllc()];
    let urgent = Item { priority: Priority { urgency: 0, incremental: false }, ..part_of(300) };
    for item in [Item::new(Content::Control, 20), urgent] {
        assert_eq!(copied(&item, &paths), both);
        assert_eq!(
            copied(&item, &[full(embb(), 9), urllc()]),
            on(URLLC, item.bytes),
            "one has a send allowance"
        );
        assert_eq!(place(&item, &paths), on(URLLC, item.bytes), "without being asked");
    }
    for item in [part_of(300), Item { priority: urgent.priority, ..part_of(300_000) }] {
        assert_eq!(copied(&item, &paths), place(&item, &paths), "ordinary, or long");
    }
}
