//! Slots that clients hold, and the one that gives way when they are short.
//!
//! Clients are told apart by group and member, as by address prefix and address, or by token and address. As long as slots
//! are free, anybody takes them. Once all are taken, a newcomer takes one of the group that holds the most, and of that group
//! the member that holds the most, so that no one group or member keeps the others out (max-min fairness). Every operation
//! takes a time logarithmic in the number of slots, and memory is kept for slots that are held only: whoever is refused
//! leaves none.

mod origin;
#[cfg(test)]
mod tests;

pub use origin::{Prefix, host};

use crate::hashing::{KeyedMap, shrink};
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::time::Duration;

/// A slot that is held. Never given out twice by the same [`Slots`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlotId(u64);

/// A client as slots tell it from others: the keyed hashes of its group, and of it as a member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Holder {
    group: u64,
    member: u64,
}

/// Makes [`Holder`]s with a secret of its own, so that nobody can choose names that count as one, or that win a tie.
#[derive(Clone, Debug, Default)]
pub struct Holders(ahash::RandomState);

impl Holders {
    /// The holder that is `member` of `group`.
    pub fn of(&self, group: &impl Hash, member: &impl Hash) -> Holder {
        Holder { group: self.0.hash_one(group), member: self.0.hash_one(member) }
    }
}

/// The divisor of all slots that gives those which a group may take from itself within the patience of [`Tenure::Passing`].
pub(crate) const RENEWAL: u32 = 4;

/// The time for which holders mean to keep their slots, which decides who gives way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tenure {
    /// An unlimited time. The newest slot of the largest holder gives way, to newcomers that hold less only.
    Lasting,
    /// Briefly, as for a handshake, which ends within a few round trips if both sides mean it. The oldest slot of the largest
    /// holder gives way; one held for longer than this gives way to everybody who holds no more. To its own group it gives way
    /// at a bounded pace, a quarter of all slots in this time: a flood that replaces itself brings nothing but work.
    Passing(Duration),
}

/// The slot that a newcomer may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// One that nobody holds.
    Free,
    /// This one, whose holder gives way.
    Instead(SlotId),
    /// None: nobody holds more than the newcomer would.
    None,
}

#[derive(Clone, Debug)]
struct Held<T> {
    holder: Holder,
    since: Instant,
    what: T,
}

/// Slots that the members of a group hold together.
#[derive(Clone, Copy, Debug)]
struct Group {
    slots: usize,
    /// The time at which it took its newest slot.
    latest: Instant,
}

/// A bounded number of slots, with a value of type `T` for each that is held.
#[derive(Clone, Debug)]
pub struct Slots<T> {
    most: usize,
    tenure: Tenure,
    next: u64,
    /// In the order in which they were taken.
    held: BTreeMap<SlotId, Held<T>>,
    /// The held slots by holder: group, member, slot.
    order: BTreeSet<(u64, u64, SlotId)>,
    /// The groups that hold slots.
    groups: KeyedMap<u64, Group>,
    /// Slots of each member.
    members: KeyedMap<Holder, usize>,
    /// Groups by what they hold, and the members of each group likewise.
    group_ranks: BTreeSet<(usize, u64)>,
    member_ranks: BTreeSet<(u64, usize, u64)>,
}

impl<T> Slots<T> {
    /// Makes at most `most` slots, none of them taken.
    pub fn new(most: usize, tenure: Tenure) -> Self {
        Self {
            most,
            tenure,
            next: 0,
            held: BTreeMap::new(),
            order: BTreeSet::new(),
            groups: KeyedMap::default(),
            members: KeyedMap::default(),
            group_ranks: BTreeSet::new(),
            member_ranks: BTreeSet::new(),
        }
    }

    /// Allows `most` slots from now on. Those that are held stay.
    pub fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// Slots that are taken.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns true if nobody holds a slot.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns true if all slots are taken.
    pub fn is_full(&self) -> bool {
        self.held.len() >= self.most
    }

    /// Slots of all members of the group of `holder`.
    pub fn of_group(&self, holder: Holder) -> usize {
        self.groups.get(&holder.group).map_or(0, |group| group.slots)
    }

    /// Slots of `holder` itself.
    pub fn of_member(&self, holder: Holder) -> usize {
        self.members.get(&holder).copied().unwrap_or(0)
    }

    /// The value of slot `id`.
    pub fn get(&self, id: SlotId) -> Option<&T> {
        self.held.get(&id).map(|held| &held.what)
    }

    /// All slots that are held, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = (SlotId, Holder, &T)> {
        self.held.iter().map(|(id, held)| (*id, held.holder, &held.what))
    }

    /// The slot that `newcomer` may take at `now`. Nothing changes: [`remove`](Self::remove) the one that gives way, then
    /// [`insert`](Self::insert).
    pub fn room(&self, newcomer: Holder, now: Instant) -> Room {
        if !self.is_full() {
            return Room::Free;
        }
        let Some(largest) = self.largest() else { return Room::None };
        let fairer = if largest.group == newcomer.group {
            self.of_member(newcomer) + 1 < self.of_member(largest)
        } else {
            self.of_group(newcomer) + 1 < self.of_group(largest)
        };
        let found = match self.tenure {
            Tenure::Lasting => self.newest(largest).filter(|_| fairer),
            Tenure::Passing(patience) => {
                let may_renew = self.may_renew(newcomer, patience, now);
                let is_overdue = |id: &SlotId| {
                    self.held.get(id).is_some_and(|held| {
                        now.since(held.since) >= patience
                            && (may_renew || held.holder.group != newcomer.group)
                    })
                };
                let oldest = self.oldest(largest).filter(|id| fairer || is_overdue(id));
                oldest.or_else(|| self.first_no_smaller(newcomer).filter(is_overdue))
            }
        };
        found.map_or(Room::None, Room::Instead)
    }

    /// Takes a slot for `holder` at `now`, beyond the most if none was free.
    pub fn insert(&mut self, holder: Holder, what: T, now: Instant) -> SlotId {
        let id = SlotId(self.next);
        self.next += 1;
        self.held.insert(id, Held { holder, since: now, what });
        self.order.insert((holder.group, holder.member, id));
        self.recount(holder, |count| count + 1);
        if let Some(group) = self.groups.get_mut(&holder.group) {
            group.latest = now;
        }
        id
    }

    /// Gives slot `id` back, and returns its value; `None` if nobody holds it any more.
    pub fn remove(&mut self, id: SlotId) -> Option<T> {
        let Held { holder, what, .. } = self.held.remove(&id)?;
        self.order.remove(&(holder.group, holder.member, id));
        self.recount(holder, |count| count.saturating_sub(1));
        Some(what)
    }

    fn recount(&mut self, holder: Holder, change: impl Fn(usize) -> usize) {
        let (of_group, of_member) = (self.of_group(holder), self.of_member(holder));
        self.group_ranks.remove(&(of_group, holder.group));
        self.member_ranks.remove(&(holder.group, of_member, holder.member));
        match change(of_group) {
            0 => drop(self.groups.remove(&holder.group)),
            slots => {
                let latest = self.groups.get(&holder.group).map_or(Instant::ZERO, |group| group.latest);
                self.groups.insert(holder.group, Group { slots, latest });
                self.group_ranks.insert((slots, holder.group));
            }
        }
        match change(of_member) {
            0 => drop(self.members.remove(&holder)),
            count => {
                self.members.insert(holder, count);
                self.member_ranks.insert((holder.group, count, holder.member));
            }
        }
        shrink(&mut self.groups);
        shrink(&mut self.members);
    }

    /// The member that holds the most of the group that holds the most.
    fn largest(&self) -> Option<Holder> {
        let group = self.group_ranks.last()?.1;
        let of_group = self.member_ranks.range((group, 0, 0)..=(group, usize::MAX, u64::MAX));
        of_group.last().map(|(group, _, member)| Holder { group: *group, member: *member })
    }

    fn of(&self, holder: Holder) -> impl DoubleEndedIterator<Item = SlotId> {
        let Holder { group, member } = holder;
        let range = (group, member, SlotId(0))..=(group, member, SlotId(u64::MAX));
        self.order.range(range).map(|(.., id)| *id)
    }

    fn oldest(&self, holder: Holder) -> Option<SlotId> {
        self.of(holder).next()
    }

    fn newest(&self, holder: Holder) -> Option<SlotId> {
        self.of(holder).next_back()
    }

    /// The oldest slot of all, if it is one of the newcomer's group or of one that holds more.
    fn first_no_smaller(&self, newcomer: Holder) -> Option<SlotId> {
        let (id, held) = self.held.first_key_value()?;
        let same = held.holder.group == newcomer.group;
        (same || self.of_group(held.holder) > self.of_group(newcomer)).then_some(*id)
    }

    /// Returns true if the group of `newcomer` took its newest slot long enough ago to take one from itself.
    fn may_renew(&self, newcomer: Holder, patience: Duration, now: Instant) -> bool {
        let most = u32::try_from(self.most.max(1)).unwrap_or(u32::MAX);
        let pace = (patience.saturating_mul(RENEWAL) / most).min(patience);
        self.groups.get(&newcomer.group).is_none_or(|group| now.since(group.latest) >= pace)
    }
}
