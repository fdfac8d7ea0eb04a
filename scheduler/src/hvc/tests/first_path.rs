//! The channel of the handshake.

use super::*;
use crate::{Flights, Hints};

fn first(paths: &[PathView]) -> usize {
    Hvc::default().first(&Flights::USUAL, paths)
}

/// eMBB of unknown rate with this one-way delay.
fn embb_of(delay: u64) -> PathView {
    PathView { rate: None, delay: milliseconds(delay), ..embb() }
}

#[test]
fn a_connection_begins_on_the_scarce_path_if_its_keys_are_there_soon_after_a_packet_crosses_the_other() {
    // 5 ms for the round trip and 20.4 ms for the bytes: five quarters of 20.3 ms.
    assert_eq!(first(&[embb_of(20), urllc()]), 0);
    assert_eq!(first(&[embb_of(21), urllc()]), 1);
    assert_eq!(first(&[urllc(), embb_of(20)]), 1);
    assert_eq!(first(&[urllc(), embb_of(21)]), 0);
}

#[test]
fn what_other_connections_have_queued_counts() {
    // 4000 bytes take 16 ms more.
    assert_eq!(first(&[embb_of(33), queued(urllc(), 4000)]), 0);
    assert_eq!(first(&[embb_of(34), queued(urllc(), 4000)]), 1);
}

#[test]
fn many_that_begin_at_once_share_both_channels() {
    let mut queue = 0;
    let mut begun = [0; 2];
    for _ in 0..30 {
        let chosen = first(&[embb_of(60), queued(urllc(), queue)]);
        begun[chosen] += 1;
        queue += if chosen == 1 { Flights::USUAL.total() } else { 0 };
    }
    assert_eq!(begun, [28, 2], "over eMBB and over URLLC");
}

#[test]
fn the_soonest_of_paths_of_one_kind_is_taken_and_none_is_no_choice() {
    assert_eq!(first(&[embb_of(40), embb_of(20)]), 1);
    assert_eq!(first(&[urllc()]), 0);
    assert_eq!(first(&[]), 0);
    let dear = PathView { hints: Hints { price_per_byte: Some(9), ..Hints::NONE }, ..embb_of(1) };
    assert_eq!(first(&[dear, embb_of(20)]), 0, "what costs more has to be so much quicker");
    assert_eq!(first(&[PathView { delay: milliseconds(13), ..dear }, embb_of(20)]), 1);
}
