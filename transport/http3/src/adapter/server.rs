//! A server's needs beyond `h3`: to answer requests in the order that clients ask for.

use super::{BidiStream, Connection};
use crate::Priorities;
use bytes::Buf;
use h3::error::StreamError;
use h3::server::{RequestResolver, RequestStream};
use http::Request;

/// Receives the headers of a request, as [`RequestResolver::resolve_request`] does, and gives the response the priority
/// that its `priority` header asks for (RFC 9218 §5), the default if there is none.
///
/// ```
/// # async fn serve(connection: hvq::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// let connection = hvq_h3::adapter::Connection::new(connection);
/// let priorities = connection.priorities();
/// let mut server = h3::server::Connection::<_, bytes::Bytes>::new(connection).await?;
/// while let Some(resolver) = server.accept().await? {
///     let (request, mut stream) = hvq_h3::adapter::resolve(resolver, &priorities).await?;
///     stream.send_response(http::Response::new(())).await?;
///     stream.finish().await?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns the errors of [`RequestResolver::resolve_request`].
pub async fn resolve<B: Buf>(
    resolver: RequestResolver<Connection, B>,
    priorities: &Priorities,
) -> Result<(Request<()>, RequestStream<BidiStream<B>, B>), StreamError> {
    let (request, stream) = resolver.resolve_request().await?;
    // Priorities are advice (RFC 9218 §10), and a stream that is gone has nothing to order.
    let id = hvq::StreamId(stream.id().into_inner());
    let _advice = priorities.apply(id, request.headers());
    Ok((request, stream))
}
