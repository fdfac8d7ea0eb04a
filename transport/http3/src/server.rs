//! A server's needs beyond `h3`: to answer requests in the order that clients ask for, and to end in an orderly way.

use crate::{BidiStream, Connection, Priorities};
use bytes::Buf;
use h3::error::StreamError;
use h3::server::{RequestResolver, RequestStream};
use http::Request;
use std::time::{Duration, Instant};

/// A connection on which nothing moved for so long has nothing more to say.
const STILL: Duration = Duration::from_secs(2);
/// The interval at which a connection that is to end is looked at.
const GLANCE: Duration = Duration::from_millis(50);

/// Receives the headers of a request, as [`RequestResolver::resolve_request`] does, and gives the response the priority
/// that its `priority` header asks for (RFC 9218 §5), the default if there is none.
///
/// ```
/// # async fn serve(connection: hvq::Connection) -> Result<(), Box<dyn std::error::Error>> {
/// let connection = hvq_h3::Connection::new(connection);
/// let priorities = connection.priorities();
/// let mut server = h3::server::Connection::<_, bytes::Bytes>::new(connection).await?;
/// while let Some(resolver) = server.accept().await? {
///     let (request, mut stream) = hvq_h3::server::resolve(resolver, &priorities).await?;
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
    let _advice = priorities.apply(stream.id(), request.headers());
    Ok((request, stream))
}

/// Waits until the client closes the connection, as GOAWAY tells it to when it has what it asked for, or nothing has moved
/// for a while: closing earlier would cut responses short that wait for a slow reader.
pub async fn settled(connection: &hvq::Connection) {
    let quiet = async {
        let mut last = (Instant::now(), None);
        while last.0.elapsed() < STILL {
            tokio::time::sleep(GLANCE).await;
            let paths = connection.stats().paths;
            let moved: Vec<_> = paths
                .iter()
                .map(|path| (path.in_flight, path.counters.bytes_sent, path.counters.bytes_received))
                .collect();
            if last.1.as_ref() != Some(&moved) {
                last = (Instant::now(), Some(moved));
            }
        }
    };
    tokio::select! {
        _ = connection.closed() => {}
        () = quiet => {}
    }
}
