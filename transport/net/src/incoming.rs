//! Clients that ask a server for a connection, for applications that decide about each at their leisure.

use crate::admission::{Candidate, Decision};
use crate::connection::{Connection, Reference};
use crate::shared::Shared;
use crate::{Connecting, ServerConfig};
use hvq_transport::connection::{ClientAddress, FourTuple};
use hvq_transport::error::Dropped;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// A client that asks for a connection, of which nothing but its first datagrams is kept. Dropping it refuses the client.
#[must_use = "a client that is dropped is refused"]
pub struct Incoming {
    shared: Arc<Shared>,
    candidate: Candidate,
    is_decided: bool,
}

impl Incoming {
    /// The client that `candidate` describes.
    pub(crate) fn new(shared: Arc<Shared>, candidate: Candidate) -> Self {
        Self { shared, candidate, is_decided: false }
    }

    /// Returns the facts about the client.
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// The address that the client came from, which anybody can forge unless [`Self::is_proven`].
    pub fn remote_address(&self) -> SocketAddr {
        self.candidate.remote
    }

    /// Returns true if a token proves that the client receives at its address.
    pub fn is_proven(&self) -> bool {
        self.candidate.address == ClientAddress::Proven
    }

    /// Begins the handshake, with `config` in place of the endpoint's if it is given.
    ///
    /// # Errors
    /// Nothing comes of it: the client gave up, its datagrams do not decrypt, or the endpoint is full or closed.
    pub fn accept(mut self, config: Option<ServerConfig>) -> Result<Connecting, Dropped> {
        self.is_decided = true;
        let now = self.shared.now();
        let mut state = self.shared.lock();
        let accepted = state.core.accept_deferred(self.candidate.number, config, now);
        let Ok(handle) = accepted else {
            state.wake_driver();
            return Err(accepted.err().unwrap_or(Dropped::Unwanted));
        };
        state.adopt_client(handle, FourTuple { local: self.candidate.local, remote: self.candidate.remote });
        drop(state);
        Ok(Connecting::new(Connection::new(Reference::new(self.shared.clone(), handle))))
    }

    /// Has the client prove its address (RFC 9000 §8.1.2): it asks again after a round trip.
    ///
    /// # Errors
    /// It followed a Retry before and accepts no second one; it still waits for a decision.
    pub fn retry(mut self) -> Result<(), Self> {
        self.is_decided = self.turn_away(Decision::Retry);
        if self.is_decided { Ok(()) } else { Err(self) }
    }

    /// Tells the client that there will be no connection: CONNECTION_REFUSED (RFC 9000 §5.2.2).
    pub fn refuse(mut self) {
        self.is_decided = self.turn_away(Decision::Refuse);
    }

    /// Gives the client no answer.
    pub fn ignore(mut self) {
        self.is_decided = self.turn_away(Decision::Ignore);
    }

    fn turn_away(&self, decision: Decision) -> bool {
        let now = self.shared.now();
        let mut state = self.shared.lock();
        let is_done = state.core.turn_away(self.candidate.number, decision, now);
        state.wake_driver();
        is_done
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.is_decided {
            self.turn_away(Decision::Refuse);
        }
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incoming").field(&self.candidate).finish()
    }
}
