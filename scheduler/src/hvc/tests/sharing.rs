//! Channels that others share.

use super::*;
use crate::{Hints, Sharing};

fn shared(shared: Sharing) -> PathView {
    PathView { hints: Hints { shared, ..Hints::NONE }, ..urllc() }
}

/// The largest item that the scarce path carries.
fn largest(scarce: PathView) -> usize {
    let carried = |bytes: &usize| place(&data(*bytes), &[embb(), scarce]) == on(URLLC, *bytes);
    (1..5000).take_while(carried).last().unwrap_or(0)
}

#[test]
fn a_byte_costs_twice_its_fare_where_strangers_wait_behind_it() {
    // It arrives after 2.5 ms and its fare, 20 ms over eMBB: 17.5 ms are worth 1 + 0.75 fares of 10 ms, or 1 + 1.5 of 7 ms.
    for own in [Sharing::Unknown, Sharing::Dedicated, Sharing::Endpoint] {
        assert!((2480..=2560).contains(&largest(shared(own))), "{}", largest(shared(own)));
    }
    let strangers = largest(shared(Sharing::Shared));
    assert!((1740..=1790).contains(&strangers), "{strangers}");
}
