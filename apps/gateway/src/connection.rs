//! One client's connection: its requests in, and an orderly end.

use crate::exchange;
use crate::fields::Provenance;
use crate::gateway::Shared;
use h3::error::Code;
use http::uri::Authority;
use hvq_h3::serving::{Incoming, Server, Settings, Tunnels};
use hvq_h3::{Datagrams, Priorities};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
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
    known: Mutex<Known>,
}

/// What is known of a client.
struct Known {
    /// Its address, and since when.
    address: (Instant, IpAddr),
    /// What origins are told of it, for the host that it asked for last: mostly that of the next request too.
    told: Option<(Authority, Provenance)>,
}

impl Peer {
    /// The client's address: that of its open path of smallest ID, which it proved to receive at.
    pub(crate) fn address(&self) -> IpAddr {
        self.known().address.1
    }

    /// What an origin is told of a request for `authority`.
    pub(crate) fn provenance(&self, authority: &Authority) -> Provenance {
        let mut known = self.known();
        if let Some((_, provenance)) =
            known.told.as_ref().filter(|(asked, _)| asked.as_str() == authority.as_str())
        {
            return provenance.clone();
        }
        let provenance = Provenance::new(known.address.1, authority);
        known.told = Some((authority.clone(), provenance.clone()));
        provenance
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.address.0.elapsed() > FRESH {
            let address = self.connection.remote_address().ip().to_canonical();
            if address != known.address.1 {
                known.told = None;
            }
            known.address = (Instant::now(), address);
        }
        known
    }
}

/// Serves `connection` until it ends or the gateway stops.
pub(crate) async fn serve(gateway: Arc<Shared>, connection: hvq::Connection) {
    let _counted = gateway.metrics.connection(&connection);
    // UDP is carried for those who may go through (RFC 9298 §3).
    let through = gateway.site().proxy.is_some();
    let settings = Settings {
        max_field_section_size: gateway.site().limits.header,
        tunnels: if through { Tunnels::Taken } else { Tunnels::None },
    };
    let mut server = match Server::new(connection.clone(), settings).await {
        Ok(server) => server,
        Err(error) => return tracing::debug!(%error, "no HTTP/3"),
    };
    let priorities = server.priorities();
    // It ends with the connection.
    tokio::spawn(server.watch());
    let address = (Instant::now(), connection.remote_address().ip().to_canonical());
    let peer = Arc::new(Peer {
        gateway: gateway.clone(),
        connection: connection.clone(),
        priorities,
        datagrams: Datagrams::new(connection.clone()),
        known: Mutex::new(Known { address, told: None }),
    });
    let mut requests = JoinSet::new();
    {
        let (mut stopping, mut datagrams) = (pin!(gateway.stopping()), pin!(peer.datagrams.run()));
        loop {
            let accepted = tokio::select! {
                accepted = server.accept() => accepted,
                () = &mut stopping => break,
                () = &mut datagrams, if through => break,
                Some(_) = requests.join_next() => continue,
            };
            match accepted {
                Ok(incoming) => begin(&mut requests, peer.clone(), incoming).await,
                Err(error) => {
                    tracing::debug!(%error, "connection ended");
                    break;
                }
            }
        }
    }
    gateway.metrics.unread(peer.datagrams.unread());
    // GOAWAY (RFC 9114 §5.2), which a client that is gone does not miss.
    let _gone = server.go_away().await;
    let finished = async {
        while requests.join_next().await.is_some() {}
        hvq_h3::server::settled(&connection).await;
    };
    if timeout(gateway.patience(), finished).await.is_err() {
        tracing::debug!("requests under way are abandoned");
    }
    connection.close(Code::H3_NO_ERROR.value(), b"");
}

/// Serves a request here if that takes no waiting, as of a file that is in memory: a task of its own costs more than that.
async fn begin(requests: &mut JoinSet<()>, peer: Arc<Peer>, incoming: Incoming) {
    // Many such requests in a row let others have their turn.
    tokio::task::consume_budget().await;
    // Boxed before anything waits, so that the task of a connection has no room for one.
    let mut request = Box::pin(exchange::serve(peer, incoming));
    let served = poll_fn(|context| Poll::Ready(request.as_mut().poll(context).is_ready())).await;
    if !served {
        requests.spawn(request);
    }
}
