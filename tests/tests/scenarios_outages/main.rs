//! Outages in virtual time, for every policy: while at least one path carries packets both ways, data moves.
//!
//! ```text
//!  server ══ wire 0: URLLC, 2 Mbit/s, 5 ms ═══ client      both ends write a little every 20 ms
//!         ══ wire 1: eMBB, 60 Mbit/s, 50 ms ══
//!         ══ wire 2: 20 Mbit/s, 30 ms ════════             where there are three
//! ```

mod outage;
mod policies;

use outage::{Outage, WIRES};
use policies::Chooser;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Plays every outage with every policy; panics with those in which data stood still for too long.
fn play(outages: &[Outage]) {
    let choosers = Chooser::all();
    let all: Vec<(Chooser, &Outage)> =
        choosers.iter().flat_map(|chooser| outages.iter().map(move |outage| (*chooser, outage))).collect();
    assert!(all.len() > 50, "{} cells", all.len());
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((chooser, outage)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(problem) = outage.play(*chooser) {
                let failure = format!("{chooser}, {outage}: {problem}");
                failures.lock().expect("nobody panics with it").push(failure);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut failures = failures.into_inner().expect("nobody panics with it");
    failures.sort();
    assert!(failures.is_empty(), "{} of {} cells:\n{}", failures.len(), all.len(), failures.join("\n"));
}

#[test]
fn when_all_paths_were_silent_at_both_ends_the_one_that_comes_back_is_used_whatever_the_policy() {
    let each =
        WIRES.iter().flat_map(|count| (0..*count).map(move |back| Outage::all_but_later(*count, back)));
    play(&each.collect::<Vec<_>>());
}

#[test]
fn a_path_that_comes_back_one_direction_first_is_used_once_it_carries_both() {
    let each =
        WIRES.iter().flat_map(|count| (0..*count).flat_map(move |back| Outage::one_way_first(*count, back)));
    play(&each.collect::<Vec<_>>());
}

#[test]
fn the_death_of_one_direction_of_a_path_stalls_neither() {
    let each =
        WIRES.iter().flat_map(|count| (0..*count).flat_map(move |dying| Outage::one_way(*count, dying)));
    play(&each.collect::<Vec<_>>());
}

#[test]
fn a_path_that_got_a_new_address_serves_when_the_others_die() {
    let each = (0..2).flat_map(|moved| [0, 100, 1_000, 3_000].map(|after| Outage::moved(2, moved, after)));
    let three = (0..3).map(|moved| Outage::moved(3, moved, 1_000));
    play(&each.chain(three).collect::<Vec<_>>());
}

#[test]
fn a_path_that_flaps_does_not_hold_up_what_a_steady_one_can_carry() {
    let periods = [50, 80, 150, 300, 700, 1_500, 4_000, 9_000, 20_000];
    let each = (0..2).flat_map(|flapping| periods.map(|period| Outage::flapping(2, flapping, period)));
    let three = (0..3).flat_map(|flapping| [100, 1_000].map(|period| Outage::flapping(3, flapping, period)));
    play(&each.chain(three).collect::<Vec<_>>());
}

#[test]
fn paths_that_work_in_turns_are_used_in_turns() {
    play(&[500, 1_000, 3_000, 10_000].map(|turn| Outage::in_turns(2, turn)));
}
