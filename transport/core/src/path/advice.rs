//! The advice of both endpoints about the use of one path (RFC 10069 §3.3). The frames that carry it are of
//! [`Statuses`](crate::path::status::Statuses).

use crate::path::path::Path;
use crate::wire::frame::Status;

impl Path {
    /// The advice about the path that this endpoint gives, as far as the application and the liveness of the path decide it: a path
    /// that is silent, and on which nothing arrived since it was asked, had better not be used while another works, nor one that is
    /// narrower than the peer knows. `None` if there is no reason for any.
    pub(in crate::path) fn advice(&self) -> Option<Status> {
        let is_heard = self.asked_at().is_some_and(|asked| self.liveness.was_heard_since(asked));
        let is_dark = self.liveness.silent_since().is_some() && !is_heard;
        if is_dark || self.is_spared { Some(Status::Backup) } else { self.own_status }
    }

    /// The peer is to spare the path, or need not any more. It is no advice to this end.
    pub(in crate::path) fn spare(&mut self, is_spared: bool) {
        self.is_spared = is_spared;
    }

    /// This endpoint advises the peer, and itself, whether to use the path (RFC 10069 §3.3).
    pub fn on_own_status(&mut self, status: Status) {
        self.own_status = Some(status);
    }

    /// The peer's latest advice about the use of the path.
    pub fn on_peer_status(&mut self, status: Option<Status>) {
        self.peer_status = status;
    }
}
