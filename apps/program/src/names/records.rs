//! Names whose HTTPS records (RFC 9460) are asked for, or that certain DNS servers know.

use super::Names;
use crate::failure::{Exit, Failure, OrFail};
use hvq::dns::Resolver;
use std::net::SocketAddr;

impl Names {
    /// The resolver of the system, and the HTTPS records that its DNS servers have. Where these are not known, there are no
    /// records.
    pub fn with_records() -> Self {
        match Resolver::system() {
            Ok(resolver) => Self(Some(resolver)),
            Err(error) => {
                tracing::debug!(%error, "no HTTPS records: the DNS servers of the system are not known");
                Self(None)
            }
        }
    }

    /// These DNS servers alone, for addresses and for HTTPS records.
    ///
    /// # Errors
    /// The servers cannot be asked.
    pub fn of_servers(servers: &[SocketAddr]) -> Result<Self, Failure> {
        let resolver = Resolver::with_servers(servers);
        Ok(Self(Some(resolver.or_fail(Exit::Usage, || "no names can be resolved".to_owned())?)))
    }
}
