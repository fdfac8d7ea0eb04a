//! An earlier connection, for worlds whose connection resumes one.

use hvq_lab::world::Net;
use hvq_lab::world::identity;
use hvq_transport::crypto::session::{ClientTls, EarlyData, ServerTls, SessionStore, SessionTicket};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// A connection in a calm network is set up, closed and forgotten within this time each: three probe timeouts of a path
/// that moved and was not measured since are 3.1 s.
const LONG_ENOUGH: Duration = Duration::from_secs(4);

/// Tickets of the one server there is.
#[derive(Debug, Default)]
struct Tickets(Mutex<Vec<SessionTicket>>);

impl SessionStore for Tickets {
    fn put(&self, _: &str, ticket: SessionTicket) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ticket);
    }

    fn take(&self, _: &str, _: &[Vec<u8>]) -> Option<SessionTicket> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// A client that keeps tickets and sends what it can early.
pub(super) fn client() -> ClientTls {
    let builder = ClientTls::builder().alpn(["hvq"]).verify(identity::trust());
    let builder = builder.sessions(Arc::new(Tickets::default())).early_data(EarlyData::On);
    builder.build().expect("the stored certificate is one")
}

/// A server that accepts what comes early.
pub(super) fn server() -> ServerTls {
    static TLS: OnceLock<ServerTls> = OnceLock::new();
    TLS.get_or_init(accepting).clone()
}

/// One to which the tickets of [`server`] mean nothing.
pub(super) fn other_server() -> ServerTls {
    static TLS: OnceLock<ServerTls> = OnceLock::new();
    TLS.get_or_init(accepting).clone()
}

fn accepting() -> ServerTls {
    let builder = ServerTls::builder(identity::identity()).alpn(["hvq"]).early_data(EarlyData::On);
    builder.build().expect("the stored certificate and key fit together")
}

/// Has the client of `net` get tickets over the first wire; no connection is left after that.
pub(super) fn connection(net: &mut Net) {
    let tuple = net.wires[0].tuple();
    net.connect(tuple);
    net.run_for(LONG_ENOUGH);
    let now = net.now;
    net.client.connection().close(0, b"", now);
    net.run_for(LONG_ENOUGH);
    for end in [&mut net.client, &mut net.server] {
        assert_eq!(end.endpoint.handles().count(), 0, "it is forgotten");
        end.handle = None;
        end.events.clear();
    }
}
