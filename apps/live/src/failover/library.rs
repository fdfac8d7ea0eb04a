//! Both ends by the library, in threads of this process, each in its namespace.

use super::client;
use super::contender::Form;
use super::observed::Account;
use super::server::{self, Control};
use super::{Certificate, START};
use crate::chaos::network::Network;
use crate::error::{LiveError, cannot};
use hvq::Identity;
use std::io;
use std::sync::mpsc::sync_channel;

/// Runs both ends, and `during` from the time on at which each load had an answer.
///
/// # Errors
/// One of them does not begin, or fails.
pub(super) fn play<T>(
    form: Form,
    network: &Network,
    certificate: Certificate,
    during: impl FnOnce() -> T,
) -> Result<(T, Account), LiveError> {
    let Certificate { chain, key } = certificate;
    let identity = Identity::Pem { chain: chain.clone(), key };
    let server = Control::default();
    let (near, far) = (network.namespaces().near(), network.namespaces().far());
    std::thread::scope(|scope| {
        let (ready, is_ready) = sync_channel(1);
        let serving = {
            let server = &server;
            scope.spawn(move || far.within(|| server::serve(form, identity, &ready, server)))
        };
        let late = |what: &'static str| {
            server.end();
            LiveError::Program { program: what, says: "it does not begin".to_owned() }
        };
        is_ready.recv_timeout(START).map_err(|_| late("the server"))?;
        let (begun, is_begun) = sync_channel(1);
        let end = Control::default();
        let playing = {
            let end = end.clone();
            scope.spawn(move || near.within(|| client::play(form, chain, &begun, &end)))
        };
        if is_begun.recv_timeout(START).is_err() {
            end.end();
            return Err(late("the client"));
        }
        let outcome = during();
        end.end();
        let observed = playing.join().unwrap_or_else(|_| Err(io::Error::other("the client panicked")));
        server.end();
        let served = serving.join().unwrap_or_else(|_| Err(io::Error::other("the server panicked")));
        served.map_err(cannot("serve"))?.map_err(cannot("serve"))?;
        let observed = observed.map_err(cannot("ask"))?.map_err(cannot("ask"))?;
        Ok((outcome, Account { observed, sent: server.sent() }))
    })
}
