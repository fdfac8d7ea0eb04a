//! The limit on open files of the process.

/// Raises the limit on open files (`RLIMIT_NOFILE`) as far as the system permits: a server has an open file for each response
/// from a large file and for each connection to an origin, and the usual limit of 1024 is for programs that use `select`.
#[cfg(unix)]
pub fn raise_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit on open files stays");
    }
}

/// Does nothing: there is no such limit.
#[cfg(not(unix))]
pub fn raise_limit() {}
