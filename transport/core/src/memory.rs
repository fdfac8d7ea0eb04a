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

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A connection may hold one part in so many of what is free.
const SHARE: usize = 8;
/// The part of the free memory that a connection may hold beyond the bytes that its network takes in two round trips,
/// as a divisor.
const WAITING_SHARE: usize = 64;
/// The part of the free memory that a connection may hold beyond the bytes that its peer permits, as a divisor.
const UNPERMITTED_SHARE: usize = 512;
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
    holders: AtomicUsize,
    held_back: AtomicU64,
    refused: AtomicU64,
}

/// The use of a [`MemoryQuota`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// Bytes that connections may hold together.
    pub limit: usize,
    /// Bytes that they hold.
    pub used: usize,
    /// Connections that hold any.
    pub holders: usize,
    /// Writes that were held back, in whole or in part, because memory was short.
    pub held_back: u64,
    /// Connections that were closed because their peers filled more than their share while nothing was free.
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
            holders: AtomicUsize::new(0),
            held_back: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Its use now. The numbers are not all of one instant.
    pub fn usage(&self) -> MemoryUse {
        MemoryUse {
            limit: self.limit,
            used: self.used.load(Ordering::Relaxed),
            holders: self.holders.load(Ordering::Relaxed),
            held_back: self.held_back.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// Returns the free memory, beside that which every holder may have in any case.
    fn free(&self) -> usize {
        let reserve = self.holders.load(Ordering::Relaxed).saturating_mul(LEAST).min(self.limit / 2);
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed)).saturating_sub(reserve)
    }

    /// The bytes of each, if all that hold any had the same.
    fn fair_share(&self) -> usize {
        self.limit / self.holders.load(Ordering::Relaxed).max(1)
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
}

impl MemoryAccount {
    /// An account of a connection that holds at most `bound` bytes.
    pub fn new(quota: Arc<MemoryQuota>, bound: usize) -> Self {
        Self { quota, bound, told: 0 }
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

    /// Returns true if nothing is free, and this connection holds more than its share with the `unread` bytes of its
    /// peer alone. Writes of applications are held back before.
    pub fn is_overdrawn(&self, unread: usize) -> bool {
        self.quota.free() == 0 && unread > self.quota.fair_share().max(LEAST)
    }

    /// A write was held back because memory is short.
    pub fn on_held_back(&self) {
        self.quota.held_back.fetch_add(1, Ordering::Relaxed);
    }

    /// The connection was closed because it was overdrawn.
    pub fn on_refused(&self) {
        self.quota.refused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for MemoryAccount {
    fn drop(&mut self) {
        self.quota.change(self.told, 0);
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
    fn when_nothing_is_free_those_above_their_share_are_overdrawn() {
        let quota = Arc::new(MemoryQuota::new(1 << 20));
        let (mut large, mut small) = (account(&quota), account(&quota));
        large.note(900 << 10);
        assert!(!large.is_overdrawn(900 << 10), "a little is free");
        small.note(200 << 10);
        assert!(large.is_overdrawn(900 << 10) && !small.is_overdrawn(200 << 10));
        large.note(0);
        assert!(!large.is_overdrawn(0));
        assert_eq!((quota.usage().used, quota.usage().holders), (200 << 10, 1));
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
    fn who_holds_its_share_and_no_more_is_not_overdrawn() {
        let quota = Arc::new(MemoryQuota::new(1 << 20));
        let [mut one, mut other] = [account(&quota), account(&quota)];
        one.note(512 << 10);
        other.note(512 << 10);
        let overdrawn = [(512 << 10) - 1, 512 << 10, (512 << 10) + 1].map(|unread| one.is_overdrawn(unread));
        assert_eq!(overdrawn, [false, false, true]);
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
    }
}
