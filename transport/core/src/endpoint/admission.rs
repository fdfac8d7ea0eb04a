//! Admission: the decision of a server's application about clients that ask for a connection, before anything is spent
//! on them.

use crate::connection::ClientAddress;
use crate::wire::version::Version;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// A client that asks for a connection, as far as is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The local address at which its first datagram arrived.
    pub local: SocketAddr,
    /// The address that it came from, which anybody can forge unless `address` is proven.
    pub remote: SocketAddr,
    /// Tells whether a token proves that the client receives at `remote`.
    pub address: ClientAddress,
    /// The version of QUIC that the client begins with.
    pub version: Version,
    /// Connections of the endpoint.
    pub connections: usize,
    /// The connections that peers started and whose handshake is not complete.
    pub handshaking: usize,
    /// The number of a client about which the application decides later ([`Decision::Defer`]), counted from 1; 0 for others.
    pub number: u64,
    /// The decision of the [`RetryPolicy`](crate::endpoint::RetryPolicy): accept or ask for a proof.
    pub proposal: Decision,
}

/// The decision about a client that asks for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Decision {
    /// The handshake begins.
    Accept,
    /// The client has to prove its address first (RFC 9000 §8.1.2). One that did in answer to a Retry is accepted: it
    /// follows no second one (§17.2.5.2).
    Retry,
    /// The client is told that there will be no connection: CONNECTION_REFUSED (RFC 9000 §5.2.2).
    Refuse,
    /// The client gets no answer.
    Ignore,
    /// The application decides later: [`Endpoint::next_deferred`](super::Endpoint::next_deferred) tells of the client, whose first
    /// datagrams are kept, 256 clients at most and 10 s at least. While half as many wait, clients have to prove their addresses first.
    Defer,
}

/// An application's decision on each client. It is asked for every datagram that belongs to no connection yet and
/// could start one: a client that was accepted is not asked about again, others are with each datagram.
#[derive(Clone)]
pub struct Admission(Arc<dyn Fn(&Candidate) -> Decision + Send + Sync>);

impl Admission {
    /// Has `decide` decide, which must be quick: it keeps the whole endpoint waiting.
    pub fn new(decide: impl Fn(&Candidate) -> Decision + Send + Sync + 'static) -> Self {
        Self(Arc::new(decide))
    }

    /// Has the application decide later about each client, with [`Decision::Defer`].
    pub fn deferred() -> Self {
        Self::new(|candidate| match candidate.proposal {
            Decision::Accept => Decision::Defer,
            proposal => proposal,
        })
    }

    /// Decides about `candidate`.
    pub fn decide(&self, candidate: &Candidate) -> Decision {
        (self.0)(candidate)
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}
