//! Quotas of clients, shared out between them: requests under way, and tunnels.
//!
//! Anybody may have as many as there are, until others need some: the one that holds the most then gives way.

use hvq::transport::slots::{Holder, Holders, Prefix, Room, SlotId, Slots, Tenure, host};
use hvq::transport::time::Instant;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The clients that count as one.
#[derive(Hash)]
enum Group<'a> {
    /// The clients that showed the token, or hold the certificate, of this name.
    Named(&'a str),
    /// The clients of a network.
    Network(Prefix),
}

/// Tells a request that it gives way to that of another client.
#[derive(Debug, Default)]
pub struct Preemption {
    given: AtomicBool,
    notify: Notify,
}

impl Preemption {
    fn give(&self) {
        self.given.store(true, Ordering::Relaxed);
        self.notify.notify_one();
    }

    /// Returns true if it was given.
    pub fn is_given(&self) -> bool {
        self.given.load(Ordering::Relaxed)
    }

    /// Waits until it is given.
    pub async fn given(&self) {
        while !self.is_given() {
            self.notify.notified().await;
        }
    }
}

/// Clients that found no place, and that lost one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shortage {
    /// All places were taken, and nobody held more than the client.
    pub refused: u64,
    /// Gave way to others.
    pub displaced: u64,
}

/// A bounded number of places for one kind of work.
#[derive(Debug)]
pub struct Quota {
    holders: Holders,
    slots: Mutex<Slots<Arc<Preemption>>>,
    refused: AtomicU64,
    displaced: AtomicU64,
}

impl Quota {
    /// `most` places.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            holders: Holders::default(),
            slots: Mutex::new(Slots::new(most, Tenure::Lasting)),
            refused: AtomicU64::new(0),
            displaced: AtomicU64::new(0),
        })
    }

    /// From now on there are `most` places. A client that has one keeps it.
    pub fn resize(&self, most: usize) {
        self.slots().set_most(most);
    }

    /// A place for the client of this name, or else of the network of `address`, if there is one or another client gives way.
    /// `notice` tells its work when it has to give way itself.
    pub fn take(
        self: &Arc<Self>,
        name: Option<&str>,
        address: IpAddr,
        notice: &Arc<Preemption>,
    ) -> Option<Permit> {
        let holder = self.holder(name, address);
        // Nobody gives way for having been there for long, so that the time means nothing.
        let now = Instant::ZERO;
        let mut slots = self.slots();
        match slots.room(holder, now) {
            Room::Free => {}
            Room::Instead(largest) => {
                self.displaced.fetch_add(1, Ordering::Relaxed);
                if let Some(displaced) = slots.remove(largest) {
                    displaced.give();
                }
            }
            Room::None => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return None;
            }
        }
        let id = slots.insert(holder, notice.clone(), now);
        Some(Permit { quota: self.clone(), id })
    }

    /// Clients that found no place, and that lost one, so far.
    pub fn shortage(&self) -> Shortage {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Shortage { refused: load(&self.refused), displaced: load(&self.displaced) }
    }

    fn holder(&self, name: Option<&str>, address: IpAddr) -> Holder {
        let group = name.map_or_else(|| Group::Network(Prefix::of(address)), Group::Named);
        self.holders.of(&group, &host(address))
    }

    /// Locks the slots, which are whole after every statement.
    fn slots(&self) -> MutexGuard<'_, Slots<Arc<Preemption>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that somebody has, until this is dropped.
#[derive(Debug)]
pub struct Permit {
    quota: Arc<Quota>,
    id: SlotId,
}

impl Drop for Permit {
    fn drop(&mut self) {
        // It is gone already if another client has it now.
        let _displaced = self.quota.slots().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 51, 100, 1));

    /// Takes a place, with what tells that it is to be given back.
    fn take(quota: &Arc<Quota>, name: Option<&str>, address: IpAddr) -> Option<(Permit, Arc<Preemption>)> {
        let notice = Arc::new(Preemption::default());
        quota.take(name, address, &notice).map(|place| (place, notice))
    }

    #[test]
    fn one_client_has_all_places_until_another_needs_one() {
        let quota = Quota::new(10);
        let held: Vec<_> = (0..10).filter_map(|_| take(&quota, None, HERE)).collect();
        assert_eq!(held.len(), 10);
        assert!(take(&quota, None, HERE).is_none());
        let (_other, notice) = take(&quota, None, THERE).unwrap();
        assert!(!notice.is_given());
        // The newest gives way: what was there before the crowd goes on.
        let displaced: Vec<_> = held.iter().map(|(_, notice)| notice.is_given()).collect();
        assert_eq!((displaced[9], displaced.iter().filter(|given| **given).count()), (true, 1));
        assert_eq!(quota.shortage(), Shortage { refused: 1, displaced: 1 });
        drop(held);
        assert_eq!(quota.slots().len(), 1);
    }

    #[test]
    fn a_token_counts_as_one_client_wherever_it_is_shown() {
        let quota = Quota::new(6);
        let held: Vec<_> =
            (0..6).filter_map(|n| take(&quota, Some("ann"), IpAddr::from([10, 0, n, 1]))).collect();
        assert_eq!(held.len(), 6);
        assert!(
            take(&quota, Some("ann"), THERE).is_none(),
            "as much as each of the others, by another address"
        );
        let bob: Vec<_> = (0..4).filter_map(|_| take(&quota, Some("bob"), HERE)).collect();
        assert_eq!(bob.len(), 3, "a half for each of the two");
        assert_eq!(held.iter().filter(|(_, notice)| notice.is_given()).count(), 3);
    }

    #[test]
    fn fewer_places_let_everybody_finish() {
        let quota = Quota::new(4);
        let held: Vec<_> = (0..4).filter_map(|_| take(&quota, None, HERE)).collect();
        quota.resize(2);
        assert!(take(&quota, None, HERE).is_none());
        assert!(held.iter().all(|(_, notice)| !notice.is_given()));
        drop(held);
        let again: Vec<_> = (0..4).filter_map(|_| take(&quota, None, HERE)).collect();
        assert_eq!(again.len(), 2);
    }

    #[tokio::test]
    async fn a_notice_that_was_given_before_is_heard() {
        let notice = Preemption::default();
        notice.give();
        notice.given().await;
    }
}
