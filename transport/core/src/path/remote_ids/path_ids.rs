//! The connection IDs that the peer issued for one path.

use crate::ranges::Ranges;
use crate::wire::connection_id::{ConnectionId, ResetToken};
use smallvec::SmallVec;

/// Gaps among retired sequence numbers at most: an honest peer counts up, and loss leaves few holes.
const MAX_GAPS: usize = 64;

/// Up to so many IDs memory grows by one at a time: most paths have no more.
const FEW: usize = 4;

/// A connection ID that may be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteId {
    pub(super) sequence: u64,
    pub(super) id: ConnectionId,
    token: Option<ResetToken>,
}

/// Tells whether the path is used with the current connection ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Use {
    #[default]
    NotYet,
    Open,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PathIds {
    /// The active ones. The first is the current one; the others are in order of their sequence numbers.
    active: SmallVec<[RemoteId; 1]>,
    /// Active ones that go to addresses other than the path's own.
    lent: Vec<RemoteId>,
    usage: Use,
    /// All below this are retired.
    retired_below: u64,
    /// Retired sequence numbers that are not below that.
    retired: Ranges,
    next_sequence: u64,
}

impl PathIds {
    /// Active connection IDs.
    pub(super) fn len(&self) -> usize {
        self.active.len() + self.lent.len()
    }

    /// All active ones.
    pub(super) fn known(&self) -> impl Iterator<Item = &RemoteId> {
        self.active.iter().chain(&self.lent)
    }

    /// Replaces the connection ID with sequence number 0.
    pub(super) fn replace_first(&mut self, id: ConnectionId) {
        self.usage = Use::Open;
        if let Some(known) = self.active.iter_mut().find(|known| known.sequence == 0) {
            known.id = id;
        } else if !self.was_retired(0) {
            self.active.insert(0, RemoteId { sequence: 0, id, token: None });
            self.next_sequence = self.next_sequence.max(1);
        }
    }

    pub(super) fn set_token(&mut self, sequence: u64, token: ResetToken) {
        if let Some(known) = self.active.iter_mut().find(|known| known.sequence == sequence) {
            known.token = Some(token);
        }
    }

    pub(super) fn add(&mut self, sequence: u64, id: ConnectionId, token: ResetToken) {
        let spares = self.active.iter().skip(1).filter(|known| known.sequence < sequence).count();
        // An ID in use keeps its place in front; before that the smallest sequence number is in front.
        let at = match self.active.first() {
            None => 0,
            Some(first) if self.usage == Use::NotYet && sequence < first.sequence => 0,
            Some(_) => 1 + spares,
        };
        if self.active.len() < FEW {
            self.active.reserve_exact(1);
        }
        self.active.insert(at, RemoteId { sequence, id, token: Some(token) });
        self.next_sequence = self.next_sequence.max(sequence.saturating_add(1));
    }

    /// Removes and returns all below `sequence`, and all that come later below it (RFC 9000 §5.1.2).
    pub(super) fn retire_below(&mut self, sequence: u64) -> SmallVec<[RemoteId; 4]> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
        //# A receiver MUST ignore any Retire Prior To fields that do not increase the largest received Retire
        //# Prior To value.
        self.retired_below = self.retired_below.max(sequence);
        let below = self.retired_below;
        self.retired.remove_below(below);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
        //# Prior To field of a previously received NEW_CONNECTION_ID frame MUST send a corresponding
        //# RETIRE_CONNECTION_ID frame that retires the newly received connection ID
        let retired = self.known().filter(|known| known.sequence < below).copied().collect();
        self.active.retain(|known| known.sequence >= below);
        self.lent.retain(|known| known.sequence >= below);
        retired
    }

    /// Changes to the next one, if `reserve` unused ones are left then, and returns the one that was in use.
    pub(super) fn rotate(&mut self, reserve: usize) -> Option<RemoteId> {
        if self.active.len() < 2 + reserve {
            return None;
        }
        let retired = self.active.remove(0);
        if retired.sequence >= self.retired_below {
            self.retired.insert(retired.sequence);
        }
        Some(retired)
    }

    /// Takes an unused one for another address; returns its sequence number.
    pub(super) fn lend(&mut self) -> Option<u64> {
        if self.active.len() < 2 {
            return None;
        }
        let spare = self.active.remove(1);
        self.lent.push(spare);
        Some(spare.sequence)
    }

    /// Makes the lent one with this sequence number the current one; returns the sequence number of the one that was
    /// and is lent from now on.
    pub(super) fn exchange(&mut self, sequence: u64) -> Option<u64> {
        let lent = self.lent.iter_mut().find(|known| known.sequence == sequence)?;
        let current = self.active.first_mut()?;
        std::mem::swap(lent, current);
        Some(lent.sequence)
    }

    /// Retires and returns the lent one with this sequence number.
    pub(super) fn give_back(&mut self, sequence: u64) -> Option<RemoteId> {
        let index = self.lent.iter().position(|known| known.sequence == sequence)?;
        let retired = self.lent.remove(index);
        if retired.sequence >= self.retired_below {
            self.retired.insert(retired.sequence);
        }
        Some(retired)
    }

    pub(super) fn open(&mut self) {
        self.usage = Use::Open;
    }

    #[cfg(test)]
    pub(super) fn has_unused(&self) -> bool {
        match self.usage {
            Use::NotYet => !self.active.is_empty(),
            Use::Open => self.active.len() > 1,
        }
    }

    pub(super) fn current(&self) -> Option<ConnectionId> {
        self.active.first().map(|current| current.id)
    }

    pub(super) fn tokens_in_use(&self) -> impl Iterator<Item = &ResetToken> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
        //# An endpoint MUST NOT check for any stateless reset tokens associated with connection IDs it has
        //# not used or for connection IDs that have been retired.
        let current = match self.usage {
            Use::NotYet => None,
            Use::Open => self.active.first(),
        };
        current.into_iter().chain(&self.lent).filter_map(|known| known.token.as_ref())
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The active connection ID with this sequence number.
    pub(super) fn id_of(&self, sequence: u64) -> Option<ConnectionId> {
        self.known().find(|known| known.sequence == sequence).map(|known| known.id)
    }

    pub(super) fn has_other_token(&self, sequence: u64, token: &ResetToken) -> bool {
        let known = self.known().find(|known| known.sequence == sequence).and_then(|known| known.token);
        known.is_some_and(|known| known != *token)
    }

    /// Returns true if this sequence number was used and retired by this endpoint's own choice. Those below
    /// `retire_prior_to` do not count: they are taken and retired, because they may not have been seen (RFC 9000
    /// §19.15).
    pub(super) fn was_retired(&self, sequence: u64) -> bool {
        self.retired.contains(sequence)
    }

    /// Returns true if the peer leaves more gaps in its sequence numbers than loss explains.
    pub(super) fn is_fragmented(&self) -> bool {
        self.retired.len() > MAX_GAPS
    }
}
