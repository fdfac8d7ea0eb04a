//! Settings of the transport that several commands share.

use crate::failure::Failure;
use crate::output;
use hvq::congestion::Algorithm;
use hvq::{PathOptions, TransportConfig};
use hvq_scheduler::Policy;
use std::path::PathBuf;
use std::sync::Arc;

/// A transport configuration with this policy and congestion control, and defaults for everything else.
pub fn config(policy: Policy, congestion: Algorithm) -> TransportConfig {
    TransportConfig::new(Arc::new(move || policy.scheduler())).set_congestion(congestion.into()).clone()
}

/// Checks that no two paths have one name: what is said of a path would not tell which.
///
/// # Errors
/// Two paths have the same name ([`Exit::Usage`](crate::failure::Exit::Usage)).
pub fn check_names(paths: &[PathOptions]) -> Result<(), Failure> {
    let names: Vec<_> = paths.iter().map(|path| &path.name).collect();
    output::check_distinct("--path", &names)
}

/// The path that an environment variable names, if it is set and not empty.
pub fn from_environment(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
