//! A client's connection, over QUIC or TCP; and over QUIC its requests in, and an orderly end.

use crate::fields::Provenance;
use crate::gateway::Shared;
use crate::request;
use http::uri::Authority;
use hvq::tls::ServerNames;
use hvq_h3::serving::Server;
use hvq_h3::{Datagrams, Priorities, Settings, Tunnels};
use hvq_program::announced;
use std::future::pending;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Requests at a time that are handed on for a client that does not permit a usual response to be sent: each holds some 64 KiB
/// between the origin and the client.
const TURNS: usize = 12;
/// The time for which the known address of a client counts: a client may move.
const FRESH: Duration = Duration::from_millis(100);

/// A client and its connection.
pub(crate) struct Peer {
    pub(crate) gateway: Arc<Shared>,
    /// `None` over TCP.
    quic: Option<Quic>,
    known: Mutex<Known>,
    shown: ShownCertificate,
    /// Turns of requests whose responses the client does not permit to be sent.
    pub(crate) turns: Semaphore,
}

/// The parts of a connection that only HTTP/3 over QUIC has.
pub(crate) struct Quic {
    pub(crate) connection: hvq::Connection,
    pub(crate) priorities: Priorities,
    pub(crate) datagrams: Arc<Datagrams>,
}

/// The certificate that a client was shown.
pub(crate) struct ShownCertificate {
    /// The names of all certificates at the time.
    pub(crate) names: Arc<ServerNames>,
    /// The number of this one.
    pub(crate) number: usize,
}

impl ShownCertificate {
    /// The certificate among `names` of a client that asked for `host`.
    pub(crate) fn to(names: &Arc<ServerNames>, host: Option<&str>) -> Self {
        Self { number: names.choose(host), names: names.clone() }
    }
}

/// The known facts about a client.
struct Known {
    /// Its address, and since when.
    address: (Instant, IpAddr),
    /// The description of it for origins, for the host that it asked for last: mostly that of the next request too.
    told: Option<Box<Told>>,
}

/// The description of a client that origins get.
struct Told {
    authority: Authority,
    provenance: Provenance,
}

impl Peer {
    /// A client at `address`, over QUIC or else TCP.
    pub(crate) fn new(
        gateway: Arc<Shared>,
        address: IpAddr,
        quic: Option<Quic>,
        shown: ShownCertificate,
    ) -> Self {
        let known = Known { address: (Instant::now(), address.to_canonical()), told: None };
        Self { gateway, quic, known: Mutex::new(known), shown, turns: Semaphore::new(TURNS) }
    }

    /// The connection of QUIC, unless the client came over TCP.
    pub(crate) fn quic(&self) -> Option<&Quic> {
        self.quic.as_ref()
    }

    /// The certificates that the client showed, which only clients of HTTP/3 are asked for.
    pub(crate) fn certificates(&self) -> Vec<Vec<u8>> {
        self.quic.as_ref().map(|quic| quic.connection.peer_certificates()).unwrap_or_default()
    }

    /// Returns true if the client may ask for `host` over its connection: the certificate that it was shown is for the host, or it would be
    /// shown the same one over a new connection.
    pub(crate) fn may_ask_for(&self, host: &str) -> bool {
        self.shown.names.serves(self.shown.number, host)
    }

    /// The client's address: that of its open path of smallest ID, which it proved to receive at.
    pub(crate) fn address(&self) -> IpAddr {
        self.known().address.1
    }

    /// Returns the description of the client that an origin gets with a request for `authority`.
    pub(crate) fn provenance(&self, authority: &Authority) -> Provenance {
        let mut known = self.known();
        if let Some(told) = known.told.as_ref().filter(|told| told.authority.as_str() == authority.as_str()) {
            return told.provenance.clone();
        }
        let provenance = Provenance::new(known.address.1, authority);
        let told = Told { authority: authority.clone(), provenance: provenance.clone() };
        known.told = Some(Box::new(told));
        provenance
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(quic) = self.quic.as_ref().filter(|_| known.address.0.elapsed() > FRESH) {
            let address = quic.connection.remote_address().ip().to_canonical();
            if address != known.address.1 {
                known.told = None;
            }
            known.address = (Instant::now(), address);
        }
        known
    }
}

/// Tells a client that was shown the `certificate` what else it may ask for over its connection.
fn announce(gateway: &Shared, server: &Server, connection: &hvq::Connection, certificate: usize) {
    let served = gateway.virtual_hosts();
    let hosts = served.announced(certificate);
    if !hosts.is_empty() {
        // A browser that was sent here from TCP asks for origins of that port (RFC 8336 §2.3).
        let ports = announced::port(connection).into_iter().chain(gateway.tcp.https_ports.iter().copied());
        server.announce(&announced::origins(hosts, ports));
    }
}

/// Serves `connection` until it ends or the gateway stops.
pub(crate) async fn serve(gateway: Arc<Shared>, connection: hvq::Connection) {
    let _counted = gateway.metrics.connection(&connection);
    // UDP is carried for those who may go through (RFC 9298 §3).
    let through = gateway.virtual_hosts().proxy.is_some();
    let settings = Settings {
        max_field_section_size: gateway.virtual_hosts().limits.header,
        tunnels: match gateway.virtual_hosts().has_origins() {
            _ if through => Tunnels::Taken,
            true => Tunnels::Streams,
            false => Tunnels::None,
        },
        ..Settings::default()
    };
    let server = match Server::new(connection.clone(), settings).await {
        Ok(server) => server,
        Err(error) => return tracing::debug!(%error, "no HTTP/3"),
    };
    let datagrams = Datagrams::counting(connection.clone(), gateway.metrics.unread());
    let address = connection.remote_address().ip();
    let shown = ShownCertificate::to(&gateway.virtual_hosts().names, connection.server_name().as_deref());
    announce(&gateway, &server, &connection, shown.number);
    let quic = Quic { connection, priorities: server.priorities(), datagrams: datagrams.clone() };
    let peer = Arc::new(Peer::new(gateway.clone(), address, Some(quic), shown));
    // It ends with the connection, as what serves requests does, which takes longer.
    let carrying = async move {
        if through {
            datagrams.run().await;
        }
        pending::<()>().await;
    };
    let answer = move |incoming| request::serve(peer.clone(), incoming);
    tokio::select! {
        () = server.run(gateway.stopping(), || gateway.patience(), answer) => {}
        () = carrying => {}
    }
}
