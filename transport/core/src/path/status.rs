//! The advice of each endpoint about the use of a path: available, or backup (RFC 10069 §3.3, §4.3).

use crate::PathId;
use crate::recovery_token::{RecoveryToken, TransmissionState};
use crate::wire::frame::{Frame, Status};
use std::collections::BTreeMap;

/// Paths whose status is kept at most. It is advice: what exceeds this is ignored.
const MAX_PATHS: usize = 256;

/// This endpoint's advice about one path.
#[derive(Clone, Copy, Debug)]
struct Advice {
    status: Status,
    /// The sequence number of the newest frame about the path.
    sequence: u64,
    progress: TransmissionState,
}

/// The statuses of all paths, opened or not, in both directions.
///
/// Frames about paths above the limit or abandoned are not brought here; their checks belong to
/// [`crate::path::limits`] and [`crate::path::lifecycle`].
#[derive(Clone, Debug, Default)]
pub struct Statuses {
    local: BTreeMap<PathId, Advice>,
    /// By path: the largest sequence number received, and what it said.
    remote: BTreeMap<PathId, (u64, Status)>,
}

impl Statuses {
    /// Advises the peer how to use `path`. Advice that it was given already is not repeated.
    pub fn set_local(&mut self, path: PathId, status: Status) {
        let known = self.local.get(&path);
        if known.is_some_and(|advice| advice.status == status)
            || known.is_none() && self.local.len() >= MAX_PATHS
        {
            return;
        }
        //= https://www.rfc-editor.org/rfc/rfc10069#section-4.3
        //# The sequence number space is common to the two frame types, and monotonically increasing values
        //# MUST be used when sending PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP frames for a given path ID.
        // RFC 10069 §4.3: sequence numbers increase for each path, over both types of frame.
        let sequence = known.map_or(0, |advice| advice.sequence + 1);
        self.local.insert(path, Advice { status, sequence, progress: TransmissionState::Queued });
    }

    /// There is no reason any more to spare `path`, if the peer was ever advised to.
    pub fn withdraw(&mut self, path: PathId) {
        if self.local.contains_key(&path) {
            self.set_local(path, Status::Available);
        }
    }

    /// Returns this endpoint's latest advice about `path`.
    #[cfg(test)]
    pub fn local(&self, path: PathId) -> Option<Status> {
        self.local.get(&path).map(|advice| advice.status)
    }

    /// Returns the peer's latest advice about `path`, `None` if it never gave any (RFC 10069 §3.3: its preference is
    /// unknown).
    pub fn remote(&self, path: PathId) -> Option<Status> {
        self.remote.get(&path).map(|(_, status)| *status)
    }

    /// Takes PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP. Returns the status if it is news, `None` if the frame is not
    /// newer than one received before (RFC 10069 §4.3) or says what is known.
    pub fn on_frame(&mut self, path: PathId, sequence: u64, status: Status) -> Option<Status> {
        let known = self.remote.get(&path).copied();
        //= https://www.rfc-editor.org/rfc/rfc10069#section-4.3
        //# A peer MUST ignore an incoming PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP frame if it previously
        //# received another PATH_STATUS_BACKUP frame or PATH_STATUS_AVAILABLE frame for the same path ID with
        //# a
        if known.is_some_and(|(newest, _)| sequence <= newest)
            || known.is_none() && self.remote.len() >= MAX_PATHS
        {
            return None;
        }
        self.remote.insert(path, (sequence, status));
        known.is_none_or(|(_, before)| before != status).then_some(status)
    }

    /// The next status frame to send: for each path only the newest.
    #[inline]
    pub fn next_frame(&mut self) -> Option<(Frame, RecoveryToken)> {
        if self.has_advice() { self.next_advice() } else { None }
    }

    /// Returns true if the peer was ever given advice, or is to be.
    #[inline]
    pub fn has_advice(&self) -> bool {
        !self.local.is_empty()
    }

    fn next_advice(&mut self) -> Option<(Frame, RecoveryToken)> {
        let queued = self.local.iter_mut().find(|(_, advice)| advice.progress == TransmissionState::Queued);
        let (&path, advice) = queued?;
        advice.progress = TransmissionState::Sent;
        let (sequence, status) = (advice.sequence, advice.status);
        Some((Frame::PathStatus { path, sequence, status }, RecoveryToken::PathStatus { path, sequence }))
    }

    /// The frame number `sequence` about `path` arrived.
    pub fn on_acknowledged(&mut self, path: PathId, sequence: u64) {
        self.settle(path, sequence, TransmissionState::Acknowledged);
    }

    /// The frame number `sequence` about `path` was lost: it is sent again if it is still the newest (RFC 10069 §4.3).
    pub fn on_lost(&mut self, path: PathId, sequence: u64) {
        self.settle(path, sequence, TransmissionState::Queued);
    }

    /// Forgets all about `path`, which was abandoned.
    pub fn drop_path(&mut self, path: PathId) {
        self.local.remove(&path);
        self.remote.remove(&path);
    }

    fn settle(&mut self, path: PathId, sequence: u64, fate: TransmissionState) {
        let newest = self.local.get_mut(&path).filter(|advice| advice.sequence == sequence);
        if let Some(Advice { progress: progress @ TransmissionState::Sent, .. }) = newest {
            *progress = fate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Status::{Available, Backup};

    const ONE: PathId = PathId(1);

    fn sent(statuses: &mut Statuses) -> Option<(PathId, u64, Status)> {
        statuses.next_frame().map(|(frame, token)| match (frame, token) {
            (Frame::PathStatus { path, sequence, status }, token) => {
                assert_eq!(token, RecoveryToken::PathStatus { path, sequence });
                (path, sequence, status)
            }
            other => panic!("{other:?}"),
        })
    }

    //= https://www.rfc-editor.org/rfc/rfc10069#section-4.3
    //= type=test
    //# The sequence number space is common to the two frame types, and monotonically increasing values MUST
    //# be used when sending PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP frames for a given path ID.
    #[test]
    fn only_the_newest_status_is_sent_with_increasing_sequence_numbers() {
        let mut statuses = Statuses::default();
        statuses.set_local(ONE, Backup);
        assert_eq!(sent(&mut statuses), Some((ONE, 0, Backup)));
        statuses.set_local(ONE, Available);
        statuses.set_local(ONE, Backup);
        assert_eq!(sent(&mut statuses), Some((ONE, 2, Backup)));
        assert_eq!(sent(&mut statuses), None);
        assert_eq!(statuses.local(ONE), Some(Backup));
    }

    #[test]
    fn the_same_status_is_not_sent_twice() {
        let mut statuses = Statuses::default();
        statuses.set_local(ONE, Backup);
        assert!(sent(&mut statuses).is_some());
        statuses.set_local(ONE, Backup);
        assert_eq!(sent(&mut statuses), None);
    }

    #[test]
    fn advice_is_withdrawn_only_if_any_was_given() {
        let mut statuses = Statuses::default();
        statuses.withdraw(ONE);
        assert!(sent(&mut statuses).is_none() && !statuses.has_advice());
        statuses.set_local(ONE, Backup);
        statuses.withdraw(ONE);
        assert_eq!(sent(&mut statuses), Some((ONE, 1, Available)));
    }

    #[test]
    fn a_lost_status_is_repeated_only_if_it_is_the_newest() {
        let mut statuses = Statuses::default();
        statuses.set_local(ONE, Backup);
        assert_eq!(sent(&mut statuses), Some((ONE, 0, Backup)));
        statuses.on_lost(ONE, 0);
        assert_eq!(sent(&mut statuses), Some((ONE, 0, Backup)));
        statuses.set_local(ONE, Available);
        assert_eq!(sent(&mut statuses), Some((ONE, 1, Available)));
        statuses.on_lost(ONE, 0);
        assert_eq!(sent(&mut statuses), None);
    }

    #[test]
    fn an_acknowledged_status_is_not_repeated_when_a_copy_is_lost() {
        let mut statuses = Statuses::default();
        statuses.set_local(ONE, Backup);
        assert!(sent(&mut statuses).is_some());
        statuses.on_acknowledged(ONE, 0);
        statuses.on_lost(ONE, 0);
        assert_eq!(sent(&mut statuses), None);
    }

    //= https://www.rfc-editor.org/rfc/rfc10069#section-4.3
    //= type=test
    //# A peer MUST ignore an incoming PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP frame if it previously
    //# received another PATH_STATUS_BACKUP frame or PATH_STATUS_AVAILABLE frame for the same path ID with a
    #[test]
    fn replayed_and_reordered_statuses_are_ignored() {
        let mut statuses = Statuses::default();
        assert_eq!(statuses.remote(ONE), None);
        assert_eq!(statuses.on_frame(ONE, 5, Backup), Some(Backup));
        assert_eq!(statuses.on_frame(ONE, 5, Available), None);
        assert_eq!(statuses.on_frame(ONE, 4, Available), None);
        assert_eq!(statuses.remote(ONE), Some(Backup));
        assert_eq!(statuses.on_frame(ONE, 6, Backup), None);
        assert_eq!(statuses.on_frame(ONE, 7, Available), Some(Available));
    }

    #[test]
    fn sequence_numbers_of_paths_are_independent() {
        let mut statuses = Statuses::default();
        assert_eq!(statuses.on_frame(ONE, 9, Backup), Some(Backup));
        assert_eq!(statuses.on_frame(PathId(2), 0, Backup), Some(Backup));
        assert_eq!(statuses.on_frame(PathId::ZERO, 0, Available), Some(Available));
    }

    #[test]
    fn a_path_that_is_not_open_yet_has_a_status() {
        let mut statuses = Statuses::default();
        assert_eq!(statuses.on_frame(PathId(3), 0, Backup), Some(Backup));
        assert_eq!(statuses.remote(PathId(3)), Some(Backup));
    }

    #[test]
    fn a_flood_of_statuses_keeps_constant_state() {
        let mut statuses = Statuses::default();
        for sequence in 0..100_000 {
            statuses.on_frame(ONE, sequence, if sequence % 2 == 0 { Backup } else { Available });
        }
        assert_eq!(statuses.remote.len(), 1);
        for path in 0..100_000 {
            statuses.on_frame(PathId(path), 0, Backup);
            statuses.set_local(PathId(path), Backup);
        }
        assert_eq!((statuses.remote.len(), statuses.local.len()), (MAX_PATHS, MAX_PATHS));
    }

    #[test]
    fn an_abandoned_path_leaves_nothing_behind() {
        let mut statuses = Statuses::default();
        statuses.set_local(ONE, Backup);
        statuses.on_frame(ONE, 0, Backup);
        statuses.drop_path(ONE);
        assert_eq!((statuses.local(ONE), statuses.remote(ONE), sent(&mut statuses)), (None, None, None));
        statuses.on_lost(ONE, 0);
        assert_eq!(sent(&mut statuses), None);
    }
}
