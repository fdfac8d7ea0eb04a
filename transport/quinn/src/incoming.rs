//! Clients that ask for a connection.

use crate::{Connecting, Connection, ConnectionError, EndpointConfig, ServerConfig};
use hvq::transport::error::Dropped;
use std::future::{Future, IntoFuture};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A client that asks for a connection. Dropping it refuses the client, awaiting it accepts it.
#[derive(Debug)]
#[must_use = "a client that is dropped is refused"]
pub struct Incoming {
    incoming: hvq::admission::Incoming,
    config: Arc<EndpointConfig>,
}

/// The client followed a Retry before, and accepts no second one.
#[derive(Debug, thiserror::Error)]
#[error("the client has proved its address already")]
pub struct RetryError(Box<Incoming>);

impl RetryError {
    /// The client, about whom nothing is decided.
    pub fn into_incoming(self) -> Incoming {
        *self.0
    }
}

impl Incoming {
    pub(crate) fn new(incoming: hvq::admission::Incoming, config: Arc<EndpointConfig>) -> Self {
        Self { incoming, config }
    }

    /// Begins the handshake.
    ///
    /// # Errors
    /// Nothing comes of it any more.
    pub fn accept(self) -> Result<Connecting, ConnectionError> {
        accepted(self.incoming.accept(None))
    }

    /// Begins the handshake with a configuration of its own.
    ///
    /// # Errors
    /// Nothing comes of it any more.
    pub fn accept_with(self, server_config: Arc<ServerConfig>) -> Result<Connecting, ConnectionError> {
        let config = server_config.to_hvq(&self.config);
        accepted(self.incoming.accept(Some(config)))
    }

    /// Tells the client that there will be no connection.
    pub fn refuse(self) {
        self.incoming.refuse();
    }

    /// Has the client prove its address.
    ///
    /// # Errors
    /// It did already.
    pub fn retry(self) -> Result<(), RetryError> {
        let config = self.config;
        self.incoming.retry().map_err(|incoming| RetryError(Box::new(Self { incoming, config })))
    }

    /// Gives the client no answer.
    pub fn ignore(self) {
        self.incoming.ignore();
    }

    /// The address of this machine that the client wrote to.
    pub fn local_ip(&self) -> Option<IpAddr> {
        Some(self.incoming.candidate().local.ip())
    }

    /// The address that the client wrote from, which can be forged unless it is validated.
    pub fn remote_address(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Returns true if the client has proved its address.
    pub fn remote_address_validated(&self) -> bool {
        self.incoming.is_proven()
    }

    /// Returns true if the client can be asked to prove its address.
    pub fn may_retry(&self) -> bool {
        !self.incoming.is_proven()
    }
}

fn accepted(connecting: Result<hvq::Connecting, Dropped>) -> Result<Connecting, ConnectionError> {
    connecting.map(Connecting::new).map_err(|reason| match reason {
        Dropped::Limit => ConnectionError::CidsExhausted,
        Dropped::Unwanted => ConnectionError::LocallyClosed,
        _ => ConnectionError::TimedOut,
    })
}

/// A client that was accepted by being awaited.
#[derive(Debug)]
pub struct IncomingFuture(Result<Connecting, ConnectionError>);

impl Future for IncomingFuture {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Ok(connecting) => Pin::new(connecting).poll(context),
            Err(error) => Poll::Ready(Err(error.clone())),
        }
    }
}

impl IntoFuture for Incoming {
    type Output = Result<Connection, ConnectionError>;
    type IntoFuture = IncomingFuture;

    fn into_future(self) -> IncomingFuture {
        IncomingFuture(self.accept())
    }
}
