//! The names of servers, and what says where they are.

use crate::failure::{Exit, Failure, OrFail};
use hvq::dns::Resolver;
use hvq::{Destination, DestinationError, PathOptions};
use std::net::SocketAddr;

/// The way from a server's name to its addresses. Clones share what was found out. Default: the resolver of the system, and no
/// HTTPS records (RFC 9460).
#[derive(Clone, Debug, Default)]
pub struct Names(Option<Resolver>);

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
    /// There are none.
    pub fn of_servers(servers: &[SocketAddr]) -> Result<Self, Failure> {
        let resolver = Resolver::with_servers(servers);
        Ok(Self(Some(resolver.or_fail(Exit::Usage, || "no names can be resolved".to_owned())?)))
    }

    /// The destinations of HTTP/3 with `host` over `paths`, in the order in which to try them.
    ///
    /// # Errors
    /// See [`DestinationError`].
    pub async fn destinations(
        &self,
        host: &str,
        port: u16,
        paths: &[PathOptions],
    ) -> Result<Vec<Destination>, DestinationError> {
        match &self.0 {
            Some(resolver) => Destination::resolve_https(resolver, host, port, paths).await,
            None => Destination::resolve(host, port, paths).await,
        }
    }
}
