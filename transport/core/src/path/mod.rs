//! Paths (RFC 10069): their connection IDs, validation, limits, statuses and lives.

pub mod amplification;
pub mod candidates;
pub mod dscp;
pub(crate) mod hints;
pub mod lifecycle;
pub mod limits;
pub mod liveness;
pub mod local_ids;
pub mod mtu;
#[expect(clippy::module_inception, reason = "a path's state is named after what it is")]
pub mod path;
pub mod paths;
pub mod recovery;
pub mod remote_ids;
pub mod rotation;
pub mod route;
pub mod spin;
pub mod status;
pub mod validation;
