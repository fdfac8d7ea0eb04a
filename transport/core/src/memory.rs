//! The ledger of memory: what connections hold for their peers and applications, with a bound for each and one for all.
//!
//! A [`MemoryQuota`] belongs to whoever runs endpoints, and may be shared by several of them. Each connection has a
//! [`MemoryAccount`] with it. Bytes are counted when they are taken from an application (unsent and unacknowledged stream
//! data, datagrams) or from the peer (reassembly, unread data, header sections under way), and until they are gone.
//!
//! Shares follow the dynamic thresholds of Choudhury and Hahne ("Dynamic Queue Length Thresholds for Shared-Memory Packet
//! Switches", 1998): a connection may hold a part of what is free. The more is held, the less each may hold, and something
//! always stays free for those that come later. The part is the smaller the longer the bytes may stay: what the peer has not
//! permitted yet may stay for ever.
//!
//! Peers are bound in two ways, for what they were permitted is theirs to send. The credit that they are granted follows the
//! ledger: all credit of connections that are active, and all that is held, is to fit into the bound together. Where more was
//! granted than that, as to a crowd that was idle, a connection is *overdrawn* once it holds several times what is free. Its packets
//! with more data are dropped then, as a full socket buffer drops them, and their sender slows down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A connection may hold one part in so many of what is free.
const SHARE: usize = 8;
/// The part of the free memory that a connection may hold beyond the bytes that its network takes in two round trips,
/// as a divisor.
const WAITING_SHARE: usize = 64;
/// The part of the free memory that a connection may hold beyond the bytes that its peer permits, as a divisor.
const UNPERMITTED_SHARE: usize = 512;
/// A grant of credit takes one part in so many of what is neither held nor granted to others.
const CREDIT_SHARE: usize = 2;
/// Bytes of credit that every peer is granted, however little is left.
const LEAST_CREDIT: usize = 16 << 10;
/// A connection may hold so many times what is free of data that its application has not read.
const UNREAD_SHARE: usize = 8;
/// Bytes that every connection may hold, so that it gets on whatever the others hold.
const LEAST: usize = 4 << 10;
/// Bytes that an account may change by before the quota is told.
const STEP: usize = 4 << 10;

/// The bound of memory that connections hold together, and its use.
///
/// It is shared by atomic numbers only, for endpoints on several threads: nobody ever waits for it.
#[derive(Debug)]
pub struct MemoryQuota {
    limit: usize,
    used: AtomicUsize,
    granted: AtomicUsize,
    holders: AtomicUsize,
    held_back: AtomicU64,
    dropped: AtomicU64,
    refused: AtomicU64,
}

/// The use of a [`MemoryQuota`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// Bytes that connections may hold together.
    pub limit: usize,
    /// Bytes that they hold.
    pub used: usize,
    /// Bytes of credit that the peers of active connections have left.
    pub granted: usize,
    /// Connections that hold any.
    pub holders: usize,
    /// Writes that were held back, in whole or in part, because memory was short.
    pub held_back: u64,
    /// Packets that were dropped, as if the network had lost them, because memory was short.
    pub dropped: u64,
    /// Connections that were closed because most of what their peers sent lay unread for long while memory was short.
    pub refused: u64,
}

impl MemoryQuota {
    /// The default bound: 256 MiB.
    pub const DEFAULT: usize = 256 << 20;

    /// A bound of `limit` bytes, nothing of which is used.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            used: AtomicUsize::new(0),
            granted: AtomicUsize::new(0),
            holders: AtomicUsize::new(0),
            held_back: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Its use now. The numbers are not all of one instant.
    pub fn usage(&self) -> MemoryUse {
        MemoryUse {
            limit: self.limit,
            used: self.used.load(Ordering::Relaxed),
            granted: self.granted.load(Ordering::Relaxed),
            holders: self.holders.load(Ordering::Relaxed),
            held_back: self.held_back.load(Ordering::Relaxed),
            dropped: self.dropped(),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// Returns the free memory, beside that which every holder may have in any case.
    fn free(&self) -> usize {
        let reserve = self.holders.load(Ordering::Relaxed).saturating_mul(LEAST).min(self.limit / 2);
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed)).saturating_sub(reserve)
    }

    /// The bytes of each, if all that hold any had the same.
    pub(crate) fn fair_share(&self) -> usize {
        self.limit / self.holders.load(Ordering::Relaxed).max(1)
    }

    /// Bytes that connections may hold together.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Packets that were dropped because memory was short.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns true if so little is free that somebody may be overdrawn.
    pub(crate) fn is_short(&self) -> bool {
        self.free() < self.limit / UNREAD_SHARE
    }

    /// Returns the bytes of credit for somebody who has `own` of what is held and granted.
    fn credit(&self, own: usize) -> usize {
        let all = self.used.load(Ordering::Relaxed).saturating_add(self.granted.load(Ordering::Relaxed));
        let left = self.limit.saturating_sub(all.saturating_sub(own));
        (left / CREDIT_SHARE).max(LEAST_CREDIT)
    }

    /// Returns the bytes of credit for the peer of a new connection.
    pub(crate) fn first_credit(&self) -> usize {
        self.credit(0)
    }

    fn change(&self, from: usize, to: usize) {
        if to >= from {
            self.used.fetch_add(to - from, Ordering::Relaxed);
        } else {
            self.used.fetch_sub(from - to, Ordering::Relaxed);
        }
        match (from, to) {
            (0, 1..) => self.holders.fetch_add(1, Ordering::Relaxed),
            (1.., 0) => self.holders.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
    }
}

impl Default for MemoryQuota {
    fn default() -> Self {
        Self::new(Self::DEFAULT)
    }
}

/// The bytes that a connection may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// The bytes in all.
    pub most: usize,
    /// The bytes that wait beyond those that the network takes in two round trips.
    pub waiting: usize,
    /// The bytes of these beyond those that the peer permits.
    pub unpermitted: usize,
}

impl Allowance {
    /// No bound.
    pub const UNLIMITED: Self = Self { most: usize::MAX, waiting: usize::MAX, unpermitted: usize::MAX };
}

/// The account of the memory that one connection holds. Dropping it returns all of that to the quota.
#[derive(Debug)]
pub struct MemoryAccount {
    quota: Arc<MemoryQuota>,
    bound: usize,
    /// The bytes that the quota was told of.
    told: usize,
    /// The bytes of credit that it was told of.
    granted: usize,
}

impl MemoryAccount {
    /// An account of a connection that holds at most `bound` bytes.
    pub fn new(quota: Arc<MemoryQuota>, bound: usize) -> Self {
        Self { quota, bound, told: 0, granted: 0 }
    }

    /// Returns the bytes that the connection may hold now.
    pub fn allowance(&self) -> Allowance {
        let free = self.quota.free();
        let share = |share: usize| self.bound.min(free / share).max(LEAST.min(self.bound));
        Allowance { most: share(SHARE), waiting: share(WAITING_SHARE), unpermitted: share(UNPERMITTED_SHARE) }
    }

    /// Returns the bytes that the connection, which holds `used`, may take in addition.
    pub fn room(&self, used: usize) -> usize {
        self.allowance().most.saturating_sub(used)
    }

    /// The connection holds `used` bytes now.
    #[inline]
    pub fn note(&mut self, used: usize) {
        if used.abs_diff(self.told) >= STEP || used == 0 && self.told > 0 {
            self.quota.change(self.told, used);
            self.told = used;
        }
    }

    /// The peer has `credit` bytes of credit left now, or none that counts.
    #[inline]
    pub fn note_credit(&mut self, credit: usize) {
        if credit.abs_diff(self.granted) >= STEP || credit == 0 && self.granted > 0 {
            self.change_credit(credit);
        }
    }

    fn change_credit(&mut self, credit: usize) {
        // In one step, whatever the sign: the sum never runs below zero.
        self.quota.granted.fetch_add(credit.wrapping_sub(self.granted), Ordering::Relaxed);
        self.granted = credit;
    }

    /// Returns the bytes that the peer may be permitted to send beyond those that were read.
    pub fn credit(&self) -> usize {
        self.quota.credit(self.told + self.granted)
    }

    /// Returns the bytes that may lie unread before the connection is overdrawn.
    #[inline]
    pub fn most_unread(&self) -> usize {
        self.quota.free().saturating_mul(UNREAD_SHARE).max(LEAST)
    }

    /// A write was held back because memory is short.
    pub fn on_held_back(&self) {
        self.quota.held_back.fetch_add(1, Ordering::Relaxed);
    }

    /// A packet was dropped because the connection is overdrawn.
    pub fn on_dropped(&self) {
        self.quota.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// The connection was closed because it held what nobody read.
    pub fn on_refused(&self) {
        self.quota.refused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for MemoryAccount {
    fn drop(&mut self) {
        self.quota.change(self.told, 0);
        self.change_credit(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: usize = 1 << 20;

    fn account(quota: &Arc<MemoryQuota>) -> MemoryAccount {
        MemoryAccount::new(quota.clone(), BOUND)
    }

    #[test]
    fn a_connection_that_is_alone_has_its_own_bound() {
        let quota = Arc::new(MemoryQuota::new(64 << 20));
        let mut one = account(&quota);
        assert_eq!(one.room(0), BOUND);
        one.note(BOUND - 10);
        assert_eq!((one.room(BOUND - 10), one.room(BOUND + 1)), (10, 0));
        let Allowance { most, waiting, unpermitted } = account(&quota).allowance();
        assert!(most > waiting && waiting > unpermitted && unpermitted > 100 << 10);
    }

    #[test]
    fn many_connections_share_and_leave_as_much_free_as_each_of_them_has() {
        let quota = Arc::new(MemoryQuota::new(4 << 20));
        let mut all: Vec<_> = (0..500).map(|_| (account(&quota), 0)).collect();
        // All take what they may until nobody may take more.
        for _ in 0..10_000 {
            for (account, used) in &mut all {
                *used += account.room(*used).min(1000);
                account.note(*used);
            }
        }
        let usage = quota.usage();
        assert!(usage.used <= usage.limit, "{usage:?}");
        assert_eq!(usage.holders, 500);
        assert!(all.iter().all(|(_, used)| *used >= LEAST));
        assert!(account(&quota).room(0) >= LEAST, "one that comes last gets on too");
        drop(all);
        assert_eq!((quota.usage().used, quota.usage().holders), (0, 0));
    }

    #[test]
    fn who_holds_much_of_a_memory_that_is_short_is_overdrawn_and_who_holds_little_is_not() {
        let quota = Arc::new(MemoryQuota::new(1 << 20));
        let (mut large, mut small) = (account(&quota), account(&quota));
        large.note(800 << 10);
        assert!(large.most_unread() > 800 << 10 && !quota.is_short(), "a fifth is free");
        small.note(150 << 10);
        assert!(large.most_unread() < 800 << 10 && small.most_unread() > 150 << 10 && quota.is_short());
        small.note(1 << 20);
        assert_eq!(small.most_unread(), LEAST, "some for everybody, though nothing is free");
        large.note(0);
        small.note(200 << 10);
        assert!(small.most_unread() > 1 << 20);
        assert_eq!((quota.usage().used, quota.usage().holders), (200 << 10, 1));
    }

    #[test]
    fn credit_is_granted_as_long_as_all_of_it_can_be_paid() {
        let quota = Arc::new(MemoryQuota::new(4 << 20));
        let mut all: Vec<_> = (0..100).map(|_| account(&quota)).collect();
        // They hold some, and renew their credit as often as they want.
        for _ in 0..400 {
            for one in &mut all {
                let credit = one.credit();
                one.note(credit / 4);
                one.note_credit(credit - credit / 4);
            }
        }
        let usage = quota.usage();
        let floor = all.len() * LEAST_CREDIT;
        assert!(usage.used + usage.granted <= usage.limit + floor / 8, "{usage:?}");
        assert!(all.iter().all(|one| one.credit() >= LEAST_CREDIT));
        let share = all.iter().map(|one| one.told + one.granted);
        assert!(share.clone().max() <= share.min().map(|least| 3 * least), "all have much the same");
        all.truncate(1);
        assert!(all[0].credit() > 1 << 20, "who is left alone may have half of it");
        drop(all);
        assert_eq!((quota.usage().granted, quota.first_credit()), (0, 2 << 20));
    }

    #[test]
    fn at_most_half_of_the_memory_is_kept_for_holders_that_have_little() {
        let quota = Arc::new(MemoryQuota::new(256 << 10));
        let mut all: Vec<_> = (0..64).map(|_| account(&quota)).collect();
        for one in &mut all {
            one.note(STEP + 1);
            one.note(1);
        }
        assert_eq!((quota.usage().holders, quota.usage().used), (64, 64));
        let free = (128 << 10) - 64;
        assert_eq!(account(&quota).allowance().most, free / SHARE);
    }

    #[test]
    fn small_changes_are_told_together_and_the_last_byte_at_once() {
        let quota = Arc::new(MemoryQuota::new(1 << 20));
        let mut one = account(&quota);
        one.note(STEP - 1);
        assert_eq!(quota.usage().used, 0);
        one.note(STEP);
        one.note(1);
        assert_eq!(quota.usage().used, STEP);
        one.note(0);
        assert_eq!(quota.usage(), MemoryUse { limit: 1 << 20, ..MemoryUse::default() });
        one.note(STEP + 1);
        one.note(1);
        assert_eq!(quota.usage().used, 1);
        one.note(0);
        assert_eq!(quota.usage().used, 0);
    }

    #[test]
    fn small_changes_of_credit_are_told_together_and_its_end_at_once() {
        let quota = Arc::new(MemoryQuota::new(1 << 20));
        let mut one = account(&quota);
        let mut granted = |credit| {
            one.note_credit(credit);
            quota.usage().granted
        };
        assert_eq!([STEP - 1, STEP, STEP + 1].map(&mut granted), [0, STEP, STEP]);
        assert_eq!([2 * STEP + 1, 2 * STEP, STEP + 1, 1, 0].map(&mut granted), [8193, 8193, 4097, 1, 0]);
    }

    #[test]
    fn memory_is_short_below_an_eighth_and_is_shared_by_those_that_hold_any() {
        let quota = Arc::new(MemoryQuota::new(1 << 20));
        assert_eq!(quota.fair_share(), 1 << 20);
        let (mut one, mut other) = (account(&quota), account(&quota));
        one.note((896 << 10) - LEAST);
        assert!(!quota.is_short(), "an eighth is free beside what is kept for the holder");
        one.note(896 << 10);
        assert!(quota.is_short());
        other.note(STEP);
        assert_eq!(quota.fair_share(), 512 << 10);
    }
}
