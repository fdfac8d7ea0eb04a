//! The life of each path ID as a table: unused, opening, validating, open, abandoned, freed (RFC 10069 §3.1, §3.4).

use crate::PathId;
use crate::flat_map::FlatMap;
use crate::ranges::Ranges;
use crate::recovery_token::{RecoveryToken, TransmissionState};
use crate::time::{Deadline, Instant, TimerReason};
use crate::wire::frame::Frame;
use std::collections::BTreeMap;

pub use state::{AbandonReason, LifecycleEvent, LifecycleState};

mod state;

/// A PATH_ABANDON frame that is not acknowledged yet.
#[derive(Clone, Copy, Debug)]
struct Announcement {
    reason: AbandonReason,
    progress: TransmissionState,
}

/// The change of a path's state by an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The state before.
    pub from: LifecycleState,
    /// The state now.
    pub to: LifecycleState,
}

impl Transition {
    /// Returns true if the path was given up just now: the peer's connection IDs for it count as retired, and nothing
    /// more is sent on it, acknowledgements included (RFC 10069 §3.4).
    pub fn abandons(self) -> bool {
        self.to.is_abandoned() && !self.from.is_abandoned()
    }

    /// Returns true if the path became usable for data in both directions just now.
    pub fn opens(self) -> bool {
        self.to == LifecycleState::Open && self.from != LifecycleState::Open
    }
}

/// The states of all path IDs of a connection. Unused and freed ones take no space but a range.
///
/// Path IDs are checked against [`crate::path::limits::PathLimits`] first, which bounds the state kept here. A freed ID
/// is never used again, for it is part of the nonce (RFC 10069 §2.4, §3.4).
#[derive(Clone, Debug, Default)]
pub struct Lifecycles {
    /// Every path that is neither unused nor freed.
    states: FlatMap<PathId, LifecycleState>,
    freed: Ranges,
    announcements: BTreeMap<PathId, Announcement>,
    /// The time at which the connection ends for want of a path, while none is usable.
    forsaken_at: Option<Instant>,
    /// Paths whose end is complete and was not taken note of.
    reclaimed: u32,
}

impl Lifecycles {
    /// Path 0 is open, as it is once the handshake is complete.
    pub fn new() -> Self {
        Self { states: FlatMap::of(PathId::ZERO, LifecycleState::Open), ..Self::default() }
    }

    /// The state of `path`.
    pub fn state(&self, path: PathId) -> LifecycleState {
        if self.freed.contains(u64::from(path.0)) {
            return LifecycleState::Freed;
        }
        self.states.get(&path).copied().unwrap_or(LifecycleState::Unused)
    }

    /// Returns true if frames about `path` still mean something; if not they are ignored (RFC 10069 §4). PATH_ABANDON
    /// and PATH_ACK have rules of their own.
    pub fn accepts(&self, path: PathId) -> bool {
        !self.state(path).is_abandoned()
    }

    /// Applies `event` to `path` at `now`. Events that mean nothing in a state leave it as it is.
    pub fn apply(&mut self, path: PathId, event: LifecycleEvent, now: Instant) -> Transition {
        let from = self.state(path);
        let to = from.after(event, now);
        let transition = Transition { from, to };
        if from == to {
            return transition;
        }
        self.enter(path, to);
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# When an endpoint receives a PATH_ABANDON frame, it MUST send a corresponding PATH_ABANDON frame,
        //# if it has not already done so
        if transition.abandons() {
            // RFC 10069 §3.4: whoever receives PATH_ABANDON and has not sent one answers with one.
            let reason = match event {
                LifecycleEvent::Abandon { reason, .. } => reason,
                _ => AbandonReason::NoError,
            };
            //= https://www.rfc-editor.org/rfc/rfc10069#section-3.4
            //# An endpoint that wants to abandon a path MUST explicitly close the path by sending a
            //# PATH_ABANDON frame (see Section 4.2)
            self.announcements.insert(path, Announcement { reason, progress: TransmissionState::Queued });
        }
        self.note_usable(event, now);
        transition
    }

    fn enter(&mut self, path: PathId, state: LifecycleState) {
        match state {
            LifecycleState::Unused => {}
            LifecycleState::Freed => {
                self.states.remove(&path);
                //= https://www.rfc-editor.org/rfc/rfc10069#section-3.4
                //# After a path is abandoned, the path ID MUST NOT be reused for new paths, as the path ID is
                //# part of the nonce calculation Section 2.4.
                self.freed.insert(u64::from(path.0));
                self.reclaim(path);
            }
            state => {
                self.states.insert(path, state);
            }
        }
    }

    /// RFC 10069 §3.4: a connection without a path ends, but a new path may come within about one probe timeout.
    fn note_usable(&mut self, event: LifecycleEvent, now: Instant) {
        if self.usable().next().is_some() {
            self.forsaken_at = None;
        } else if let (None, LifecycleEvent::Abandon { keep, .. } | LifecycleEvent::PeerAbandon { keep }) =
            (self.forsaken_at, event)
        {
            self.forsaken_at = Some(now + keep / 3);
        }
    }

    /// A path returns its place in the limit when its state is freed and the peer knows of its end, so that the
    /// announcements that are kept for repetition are bounded too.
    fn reclaim(&mut self, path: PathId) {
        if self.freed.contains(u64::from(path.0)) && !self.announcements.contains_key(&path) {
            self.reclaimed = self.reclaimed.saturating_add(1);
        }
    }

    /// Returns the number of paths that came to their end for good since the last call: as many more may be allowed
    /// ([`crate::path::limits::PathLimits::return_credit`]).
    pub fn take_reclaimed(&mut self) -> u32 {
        std::mem::take(&mut self.reclaimed)
    }

    /// Paths that are neither unused nor abandoned, ascending.
    pub fn usable(&self) -> impl Iterator<Item = PathId> + '_ {
        self.states.iter().filter(|(_, state)| !state.is_abandoned()).map(|(path, _)| *path)
    }

    /// Paths whose address is not validated yet; a server bounds them by refusing further ones.
    pub fn unvalidated(&self) -> usize {
        self.states
            .values()
            .filter(|state| matches!(state, LifecycleState::Opening | LifecycleState::Validating))
            .count()
    }

    /// Returns true if the state of a path may have to be freed, or was.
    pub fn may_expire(&self) -> bool {
        self.reclaimed > 0 || self.states.values().any(|state| state.is_abandoned())
    }

    /// Returns the time at which the connection is to be closed because no path is left, unless one is opened before.
    pub fn forsaken_at(&self) -> Option<Instant> {
        self.forsaken_at
    }

    /// The unused path IDs up to `highest`, ascending (RFC 10069 §3.2: the smallest is to be taken).
    pub fn unused(&self, highest: PathId) -> impl Iterator<Item = PathId> + '_ {
        let from = self.unused_from(0, highest);
        std::iter::successors(from, move |last| self.unused_from(u64::from(last.0) + 1, highest))
    }

    /// The smallest unused ID in `from..=highest`. Skips freed ones range by range.
    fn unused_from(&self, mut from: u64, highest: PathId) -> Option<PathId> {
        for range in self.freed.iter() {
            from = self.skip_known(from);
            if range.contains(&from) {
                from = range.end() + 1;
            }
        }
        from = self.skip_known(from);
        u32::try_from(from).ok().map(PathId).filter(|path| *path <= highest)
    }

    fn skip_known(&self, mut from: u64) -> u64 {
        while u32::try_from(from).is_ok_and(|path| self.states.contains_key(&PathId(path))) {
            from += 1;
        }
        from
    }

    /// The next PATH_ABANDON to send: one for each abandoned path, again only if lost. It goes on another path if there
    /// is one (RFC 10069 §3.4).
    #[inline]
    pub fn next_frame(&mut self) -> Option<(Frame, RecoveryToken)> {
        if self.has_announcements() { self.next_announcement() } else { None }
    }

    /// Returns true if a PATH_ABANDON is to be sent, or in flight.
    #[inline]
    pub fn has_announcements(&self) -> bool {
        !self.announcements.is_empty()
    }

    fn next_announcement(&mut self) -> Option<(Frame, RecoveryToken)> {
        let queued = self.announcements.iter_mut().find(|(_, one)| one.progress == TransmissionState::Queued);
        let (&path, announcement) = queued?;
        announcement.progress = TransmissionState::Sent;
        Some((
            Frame::PathAbandon { path, error: announcement.reason.code() },
            RecoveryToken::PathAbandon(path),
        ))
    }

    /// PATH_ABANDON of `path` arrived.
    pub fn on_acknowledged(&mut self, path: PathId) {
        if self.announcements.remove(&path).is_some() {
            self.reclaim(path);
        }
    }

    /// PATH_ABANDON of `path` was lost: it is sent again, even if the path is freed (RFC 10069 §4.2).
    pub fn on_lost(&mut self, path: PathId) {
        if let Some(announcement) = self.announcements.get_mut(&path) {
            announcement.progress = TransmissionState::Queued;
        }
    }

    /// Returns the time at which the next abandoned path is to be freed.
    pub fn deadline(&self) -> Option<Deadline> {
        let at = self.states.iter().filter_map(|(path, state)| self.until(*path, *state)).min()?;
        Some(Deadline::new(at, TimerReason::PathAbandoned))
    }

    /// Returns the time at which `path` is to be freed. A peer that does not know that the path was given up goes on to
    /// use it: its packets must not meet with a stateless reset, however long it takes to tell it (RFC 10069 §3.4.1).
    fn until(&self, path: PathId, state: LifecycleState) -> Option<Instant> {
        match state {
            LifecycleState::Abandoning { .. } if self.announcements.contains_key(&path) => None,
            state => state.until(),
        }
    }

    /// Frees the paths whose time is over by `now` and returns them: all their state goes, what they have in flight is
    /// lost, and this endpoint's connection IDs for them are unknown from now on (RFC 10069 §3.4).
    pub fn expire(&mut self, now: Instant) -> Vec<PathId> {
        let over =
            |path: PathId, state: LifecycleState| self.until(path, state).is_some_and(|until| until <= now);
        let paths: Vec<_> =
            self.states.iter().filter(|(path, state)| over(**path, **state)).map(|(path, _)| *path).collect();
        for path in &paths {
            self.apply(*path, LifecycleEvent::Expired, now);
        }
        paths
    }
}

#[cfg(test)]
mod tests;
