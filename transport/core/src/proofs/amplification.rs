//! The anti-amplification limit (RFC 9000 §8) for every short exchange with an unproven address.

use super::sequences;
use crate::path::amplification::Amplification;

/// Sizes of datagrams at which the limit could be off by one.
const SIZES: [usize; 4] = [0, 1, 400, 1200];

/// Eight things that can happen: a datagram of each size arrives, or is sent if the limit has room for it.
fn play(sequence: &[usize]) {
    let (mut limit, mut received, mut sent) = (Amplification::default(), 0_u64, 0_u64);
    for step in sequence {
        let size = SIZES[step % SIZES.len()];
        if *step < SIZES.len() {
            limit.on_received(size);
            received += size as u64;
        } else if limit.allowance() >= size {
            limit.on_sent(size);
            sent += size as u64;
        }
        assert!(sent <= 3 * received, "{sequence:?}: sent {sent} for {received}");
        assert_eq!(
            limit.allowance() as u64,
            3 * received - sent,
            "{sequence:?}: all that is left may be sent"
        );
    }
}

#[test]
fn no_exchange_of_six_datagrams_sends_more_than_three_times_what_came() {
    sequences(2 * SIZES.len(), 6, play);
}

#[test]
#[ignore = "takes long: make prove"]
fn no_exchange_of_eight_datagrams_sends_more_than_three_times_what_came() {
    sequences(2 * SIZES.len(), 8, play);
}

/// The allowance of sums near the end of the integers is never more than three times what came.
#[test]
fn sums_at_the_end_of_the_integers_saturate_downwards() {
    let edges = [0, 1, u64::MAX / 3, u64::MAX / 3 + 1, u64::MAX - 1, u64::MAX];
    for received in edges {
        for sent in edges {
            let allowed = Amplification::Limited { received, sent }.allowance();
            assert!(allowed as u128 <= (u128::from(received) * 3).saturating_sub(u128::from(sent)));
        }
    }
}
