//! The names of servers, and what says where they are.

#[cfg(feature = "dns")]
mod records;

#[cfg(feature = "dns")]
use hvq::dns::Resolver;
use hvq::{Destination, DestinationError, PathOptions};

/// There is none in a program that is compiled without `dns`.
#[cfg(not(feature = "dns"))]
type Resolver = std::convert::Infallible;

/// The way from a server's name to its addresses. Clones share what was found out. Default: the resolver of the system, and no
/// HTTPS records (RFC 9460).
#[derive(Clone, Debug, Default)]
pub struct Names(Option<Resolver>);

impl Names {
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
            #[cfg(feature = "dns")]
            Some(resolver) => Destination::resolve_https(resolver, host, port, paths).await,
            #[cfg(not(feature = "dns"))]
            Some(none) => match *none {},
            None => Destination::resolve(host, port, paths).await,
        }
    }
}
