//! Slots when there are enough, and when there are not.

use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const PATIENCE: Duration = Duration::from_secs(1);

fn at(milliseconds: u64) -> Instant {
    Instant::from_nanos(milliseconds * 1_000_000)
}

/// Slots, and a name for each client: its group and its number in it.
struct World {
    holders: Holders,
    slots: Slots<(u32, u32)>,
}

impl World {
    fn new(most: usize, tenure: Tenure) -> Self {
        Self { holders: Holders::default(), slots: Slots::new(most, tenure) }
    }

    fn holder(&self, name: (u32, u32)) -> Holder {
        self.holders.of(&name.0, &name.1)
    }

    /// Takes a slot for `name` at `now`; returns the name that gave way, or an error if there is no slot.
    fn take(&mut self, name: (u32, u32), now: Instant) -> Result<Option<(u32, u32)>, ()> {
        let holder = self.holder(name);
        let gone = match self.slots.room(holder, now) {
            Room::Free => None,
            Room::Instead(id) => self.slots.remove(id),
            Room::None => return Err(()),
        };
        self.slots.insert(holder, name, now);
        Ok(gone)
    }

    fn held_by(&self, group: u32) -> usize {
        self.slots.iter().filter(|(.., name)| name.0 == group).count()
    }
}

#[test]
fn one_client_may_take_every_slot_that_nobody_else_needs() {
    let mut world = World::new(100, Tenure::Lasting);
    for _ in 0..100 {
        assert_eq!(world.take((1, 1), at(0)), Ok(None));
    }
    assert!(world.slots.is_full());
    assert_eq!(world.take((1, 1), at(0)), Err(()), "it does not displace itself");
}

#[test]
fn the_largest_group_gives_way_and_in_it_the_largest_member() {
    let mut world = World::new(10, Tenure::Lasting);
    for member in [1, 1, 1, 2, 2, 3] {
        world.take((1, member), at(0)).unwrap();
    }
    (0..4).for_each(|_| assert_eq!(world.take((2, 9), at(0)), Ok(None)));
    assert_eq!(world.take((3, 1), at(0)), Ok(Some((1, 1))));
    // A member of the largest group that holds less takes the place of the one that holds the most.
    assert!(matches!(world.take((1, 4), at(0)), Ok(Some((1, 1 | 2)))));
    assert_eq!((world.held_by(1), world.held_by(2), world.held_by(3)), (5, 4, 1));
}

#[test]
fn no_member_is_displaced_by_one_of_its_group_that_would_then_hold_as_much() {
    let mut world = World::new(3, Tenure::Lasting);
    for member in [1, 1, 2] {
        assert_eq!(world.take((1, member), at(0)), Ok(None));
    }
    assert_eq!(world.take((1, 2), at(0)), Err(()));
    assert_eq!(world.take((1, 3), at(0)), Ok(Some((1, 1))));
    assert_eq!(world.take((1, 3), at(0)), Err(()), "each has one");
}

#[test]
fn nobody_is_displaced_by_whoever_would_then_hold_as_much() {
    let mut world = World::new(4, Tenure::Lasting);
    for group in [1, 1, 2, 2] {
        world.take((group, 1), at(0)).unwrap();
    }
    for group in [1, 2] {
        assert_eq!(world.take((group, 1), at(60_000)), Err(()));
    }
    assert_eq!(world.take((3, 1), at(0)).map(|gone| gone.is_some()), Ok(true));
    assert_eq!(world.take((4, 1), at(0)).map(|gone| gone.is_some()), Ok(true));
    assert_eq!(world.take((5, 1), at(0)), Err(()), "all hold one now");
}

#[test]
fn what_is_held_briefly_gives_way_once_it_takes_too_long() {
    let mut world = World::new(3, Tenure::Passing(PATIENCE));
    for (group, milliseconds) in [(1, 0), (2, 10), (3, 20)] {
        world.take((group, 1), at(milliseconds)).unwrap();
    }
    assert_eq!(world.take((4, 1), at(999)), Err(()));
    assert!(
        matches!(world.take((4, 1), at(1_000)), Ok(Some((1, 1)))),
        "the oldest of those that hold as much"
    );
    assert_eq!(world.take((5, 1), at(1_000)), Err(()), "the others are within their time");
    // Whoever holds the most may have the slot of its own that takes too long, and no other's.
    let mut world = World::new(8, Tenure::Passing(PATIENCE));
    (0..6).for_each(|n| assert_eq!(world.take((2, 1), at(10 * (n + 1))), Ok(None)));
    world.take((1, 1), at(0)).unwrap();
    world.take((1, 1), at(0)).unwrap();
    assert_eq!(world.take((2, 1), at(1_009)), Err(()));
    assert_eq!(world.take((2, 1), at(1_010)), Ok(Some((2, 1))));
    assert_eq!(world.held_by(1), 2);
}

#[test]
fn a_flood_replaces_its_own_slots_at_a_bounded_pace_and_nobody_else_waits_for_that() {
    const MOST: usize = 1_000;
    let mut world = World::new(MOST, Tenure::Passing(PATIENCE));
    (0..MOST).for_each(|_| assert_eq!(world.take((1, 1), at(0)), Ok(None)));
    let mut renewed = 0;
    for millisecond in 1_000..2_000 {
        // A hundred times as often as slots are renewed.
        renewed += (0..25).filter(|_| world.take((1, 1), at(millisecond)) == Ok(Some((1, 1)))).count();
        if millisecond % 100 == 50 {
            assert_eq!(world.take((millisecond as u32, 1), at(millisecond)), Ok(Some((1, 1))));
        }
    }
    assert_eq!(renewed, MOST / RENEWAL as usize);
}

#[test]
fn of_what_is_held_briefly_the_oldest_goes_first_and_else_the_newest() {
    for (tenure, expected) in [(Tenure::Passing(PATIENCE), 0), (Tenure::Lasting, 4)] {
        let mut world = World::new(5, tenure);
        (0..5).for_each(|n| assert_eq!(world.take((1, 1), at(n)), Ok(None)));
        let room = world.slots.room(world.holder((2, 1)), at(10));
        assert_eq!(room, Room::Instead(SlotId(expected)), "{tenure:?}");
    }
}

#[test]
fn slots_that_were_given_back_leave_nothing_and_are_free() {
    let mut world = World::new(10_000, Tenure::Lasting);
    let holders: Vec<_> = (0..10_000).map(|n| world.holder((n, n))).collect();
    let ids: Vec<_> = holders.iter().map(|holder| world.slots.insert(*holder, (0, 0), at(0))).collect();
    for id in ids {
        assert!(world.slots.remove(id).is_some() && world.slots.remove(id).is_none());
    }
    let slots = &world.slots;
    assert!(
        slots.is_empty() && slots.order.is_empty() && slots.groups.is_empty() && slots.members.is_empty()
    );
    assert!(slots.group_ranks.is_empty() && slots.member_ranks.is_empty());
    assert!(slots.groups.capacity() <= 256 && slots.members.capacity() <= 256);
    assert_eq!(slots.room(holders[0], at(0)), Room::Free);
}

#[test]
fn ten_thousand_refusals_leave_no_memory() {
    let mut world = World::new(10, Tenure::Passing(PATIENCE));
    for n in 0..10_000 {
        let _ = world.take((n, n), at(0));
    }
    assert_eq!((world.slots.len(), world.slots.order.len(), world.slots.members.len()), (10, 10, 10));
    assert!(world.slots.groups.capacity() < 100);
}

#[test]
fn counts_and_ranks_agree_with_a_count_by_hand_whatever_happens() {
    for seed in 0..40 {
        let mut rng = StdRng::seed_from_u64(seed);
        let tenure = if seed % 2 == 0 { Tenure::Lasting } else { Tenure::Passing(PATIENCE) };
        let mut world = World::new(20, tenure);
        for step in 0..500 {
            let name = (rng.random_range(0..6), rng.random_range(0..4));
            let before: Vec<usize> = (0..6).map(|group| world.held_by(group)).collect();
            if rng.random_bool(0.3) {
                let ids: Vec<_> = world.slots.iter().map(|(id, ..)| id).collect();
                if !ids.is_empty() {
                    world.slots.remove(ids[rng.random_range(0..ids.len())]);
                }
            } else if let Ok(Some(gone)) = world.take(name, at(step * 5)) {
                let (loser, winner) = (before[gone.0 as usize], before[name.0 as usize]);
                let overdue = matches!(tenure, Tenure::Passing(_)) && loser >= winner;
                assert!(
                    loser > winner || gone.0 == name.0 || overdue,
                    "seed {seed}: {before:?} {name:?} {gone:?}"
                );
            }
            assert!(world.slots.len() <= 20);
            for group in 0..6 {
                assert_eq!(
                    world.slots.of_group(world.holder((group, 0))),
                    world.held_by(group),
                    "seed {seed}"
                );
            }
            let largest = world.slots.largest().map(|holder| world.slots.of_group(holder)).unwrap_or(0);
            assert_eq!(largest, (0..6).map(|group| world.held_by(group)).max().unwrap(), "seed {seed}");
        }
    }
}

#[test]
fn another_number_of_slots_holds_for_those_who_come_and_not_for_those_who_hold() {
    let mut world = World::new(2, Tenure::Lasting);
    assert_eq!([1, 2].map(|group| world.take((group, 1), at(0))), [Ok(None); 2]);
    assert_eq!(world.take((3, 1), at(0)), Err(()));
    world.slots.set_most(3);
    assert_eq!(world.take((3, 1), at(0)), Ok(None));
    world.slots.set_most(1);
    assert_eq!((world.slots.len(), world.slots.is_full()), (3, true));
    assert_eq!(world.take((4, 1), at(0)), Err(()));
}

#[test]
fn a_slot_held_for_long_gives_way_to_those_who_hold_less_and_to_nobody_who_holds_as_much() {
    // The oldest slot is not of the largest group, whose slots are young.
    for (own, expected) in [(0, Ok(Some((1, 1)))), (1, Err(())), (2, Err(()))] {
        let mut world = World::new(4 + own, Tenure::Passing(PATIENCE));
        assert_eq!(world.take((1, 1), at(0)), Ok(None));
        for _ in 0..own {
            assert_eq!(world.take((2, 1), at(900)), Ok(None));
        }
        for _ in 0..3 {
            assert_eq!(world.take((3, 1), at(900)), Ok(None));
        }
        let holder = world.holder((2, 1));
        let gone = match world.slots.first_no_smaller(holder) {
            Some(id) => Ok(world.slots.remove(id)),
            None => Err(()),
        };
        assert_eq!(gone, expected, "the newcomer's group holds {own}");
    }
}
