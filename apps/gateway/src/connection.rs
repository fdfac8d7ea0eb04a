//! One client's connection: its requests in, and an orderly end.

use crate::exchange;
use crate::gateway::Shared;
use bytes::Bytes;
use h3::error::Code;
use hvq_h3::{Datagrams, Priorities};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long what is known of a client's address counts: a client may move.
const FRESH: Duration = Duration::from_millis(100);

/// A client and its connection.
pub(crate) struct Peer {
    pub(crate) gateway: Arc<Shared>,
    pub(crate) connection: hvq::Connection,
    pub(crate) priorities: Priorities,
    pub(crate) datagrams: Arc<Datagrams>,
    address: Mutex<(Instant, IpAddr)>,
}

impl Peer {
    /// The client's address: that of its open path of smallest ID, which it proved to receive at.
    pub(crate) fn address(&self) -> IpAddr {
        let mut known = self.address.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0.elapsed() > FRESH {
            *known = (Instant::now(), self.connection.remote_address().ip().to_canonical());
        }
        known.1
    }
}

/// Serves `connection` until it ends or the gateway stops.
pub(crate) async fn serve(gateway: Arc<Shared>, connection: hvq::Connection) {
    let _counted = gateway.metrics.connection(&connection);
    let transport = hvq_h3::Connection::new(connection.clone());
    let priorities = transport.priorities();
    let mut builder = h3::server::builder();
    builder.max_field_section_size(gateway.site().limits.header);
    // UDP is carried for those who may go through (RFC 9298 §3).
    let through = gateway.site().proxy.is_some();
    builder.enable_extended_connect(through).enable_datagram(through);
    let mut h3 = match builder.build::<_, Bytes>(transport).await {
        Ok(h3) => h3,
        Err(error) => return tracing::debug!(%error, "no HTTP/3"),
    };
    let address = (Instant::now(), connection.remote_address().ip().to_canonical());
    let peer = Arc::new(Peer {
        gateway: gateway.clone(),
        connection: connection.clone(),
        priorities,
        datagrams: Datagrams::new(connection.clone()),
        address: Mutex::new(address),
    });
    let mut requests = JoinSet::new();
    loop {
        tokio::select! {
            accepted = h3.accept() => match accepted {
                Ok(Some(resolver)) => {
                    requests.spawn(exchange::serve(peer.clone(), resolver));
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "connection ended");
                    break;
                }
            },
            () = gateway.stopping() => break,
            () = peer.datagrams.run(), if through => break,
            Some(_) = requests.join_next() => {}
        }
    }
    // GOAWAY (RFC 9114 §5.2), which a client that is gone does not miss.
    let _gone = h3.shutdown(0).await;
    let finished = async {
        while requests.join_next().await.is_some() {}
        hvq_h3::server::settled(&connection).await;
    };
    if timeout(gateway.patience(), finished).await.is_err() {
        tracing::debug!("requests under way are abandoned");
    }
    connection.close(Code::H3_NO_ERROR.value(), b"");
}
