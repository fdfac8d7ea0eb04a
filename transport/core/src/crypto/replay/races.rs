//! Threads that strike at once, in every order that the memory model permits (loom).

use loom::sync::Arc;
use loom::sync::atomic;
use loom::thread;

#[expect(clippy::duplicate_mod, reason = "here its atomics and locks are those of the model")]
#[path = "strike.rs"]
mod strike;

use strike::{SECOND_BITS, Slot, WINDOW, strike};

const TICKET: u64 = 77;
const OTHER: u64 = 78;

/// Strikes as often as the register does, and counts whether the ticket was admitted.
fn admit(places: &[Slot], fingerprint: u64, second: u64) -> usize {
    usize::from((0..=places.len()).find_map(|_| strike(places, fingerprint, second)).unwrap_or(false))
}

/// Returns the number of `strikes` (a ticket and its second, a thread each) that were admitted where the places held
/// `entries`.
fn admitted(entries: [u64; 2], strikes: [(u64, u64); 2]) -> usize {
    let places: Arc<[Slot; 2]> = Arc::new(entries.map(Slot::new));
    let [(ticket, second), here] = strikes;
    let far = places.clone();
    let other = thread::spawn(move || admit(&far[..], ticket, second));
    let own = admit(&places[..], here.0, here.1);
    own + other.join().expect("it does not panic")
}

#[test]
fn two_threads_with_one_ticket_admit_it_once() {
    loom::model(|| assert_eq!(admitted([0, 0], [(TICKET, 10), (TICKET, 10)]), 1));
}

#[test]
fn two_threads_in_different_seconds_never_admit_a_ticket_twice() {
    // The first place expires between the two seconds: each thread finds another place free.
    let expiring = OTHER << SECOND_BITS | 10;
    for (early, late) in [(10 + WINDOW - 2, 10 + WINDOW - 1), (10 + WINDOW - 1, 10 + WINDOW)] {
        loom::model(move || {
            assert!(admitted([expiring, 0], [(TICKET, early), (TICKET, late)]) <= 1);
        });
    }
}

#[test]
fn two_threads_with_two_tickets_admit_both() {
    loom::model(|| assert_eq!(admitted([0, 0], [(TICKET, 10), (OTHER, 11)]), 2));
}

#[test]
fn a_clock_that_is_a_second_behind_still_knows_what_the_other_wrote() {
    loom::model(|| assert_eq!(admitted([TICKET << SECOND_BITS | 11, 0], [(TICKET, 10), (TICKET, 11)]), 0));
}
