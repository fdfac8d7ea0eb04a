//! Paths (RFC 10069): their connection IDs, validation, limits, statuses and lives.

pub(crate) mod advice;
pub(crate) mod amplification;
pub(crate) mod candidates;
pub(crate) mod careful_resume;
pub(crate) mod collapse;
pub(crate) mod dscp;
pub(crate) mod hints;
mod interest;
pub(crate) mod keep_alive;
pub(crate) mod lifecycle;
pub(crate) mod limits;
pub(crate) mod liveness;
pub(crate) mod local_ids;
pub(crate) mod mtu;
#[expect(clippy::module_inception, reason = "a path's state is named after what it is")]
pub(crate) mod path;
pub(crate) mod paths;
pub(crate) mod recovery;
pub(crate) mod relief;
pub(crate) mod remembered;
pub(crate) mod remote_ids;
pub(crate) mod rotation;
pub(crate) mod route;
pub(crate) mod shown;
pub(crate) mod spin;
pub(crate) mod status;
pub(crate) mod validation;
