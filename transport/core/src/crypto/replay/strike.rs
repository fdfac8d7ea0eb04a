//! The places where a ticket may be remembered, which threads read and write without a lock.
//!
//! Atomics are those of `super::atomic`, so that races are tried with a model of them, too.

use super::atomic::{AtomicU64, Ordering, fence};

/// Seconds that a ticket is remembered. TLS accepts 0-RTT if the client's clock is off by at most 60 s either way, so that
/// a copy is of use for 120 s; a handshake may take a few more.
pub(super) const WINDOW: u64 = 150;
/// Bits of a slot that hold the second when the ticket was used.
pub(super) const SECOND_BITS: u32 = 24;
pub(super) const SECOND_MASK: u64 = (1 << SECOND_BITS) - 1;

/// One place: the fingerprint of a ticket above the second when it was used, or 0.
pub(super) type Slot = AtomicU64;

/// Looks for the ticket among its places, and writes it down if it is not there. `None` if another thread took the place
/// meanwhile: it is worth another try.
pub(super) fn strike(places: &[Slot], fingerprint: u64, second: u64) -> Option<bool> {
    let mut free = None;
    for (index, place) in places.iter().enumerate() {
        let entry = place.load(Ordering::Acquire);
        if holds(entry, fingerprint, second) {
            return Some(false);
        }
        if !is_fresh(entry, second) && free.is_none() {
            free = Some((index, place, entry));
        }
    }
    let Some((own, place, entry)) = free else { return Some(false) };
    let taken = fingerprint << SECOND_BITS | second;
    place.compare_exchange(entry, taken, Ordering::AcqRel, Ordering::Acquire).ok()?;
    // Another thread, in another second, may have found another place free and written the same ticket down there. With
    // this fence in both at least one of the two sees what the other wrote.
    fence(Ordering::SeqCst);
    let others = places.iter().enumerate().filter(|(index, _)| *index != own);
    Some(
        !others
            .map(|(_, place)| place.load(Ordering::Acquire))
            .any(|entry| holds(entry, fingerprint, second)),
    )
}

/// An entry that still counts.
fn is_fresh(entry: u64, second: u64) -> bool {
    // A clock of another thread may be a second ahead.
    let age = second.wrapping_add(1).wrapping_sub(entry & SECOND_MASK) & SECOND_MASK;
    entry != 0 && age <= WINDOW
}

/// An entry of this ticket that still counts.
fn holds(entry: u64, fingerprint: u64, second: u64) -> bool {
    is_fresh(entry, second) && entry >> SECOND_BITS == fingerprint
}
