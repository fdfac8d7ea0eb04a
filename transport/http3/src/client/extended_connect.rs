//! A client that asks for a tunnel: extended CONNECT (RFC 9220) for a protocol of any name.

use crate::serving::control::Offered;
use crate::serving::receiving::{ReceiveError, Receiving};
use crate::serving::response::response;
use crate::serving::sending::{SendError, Sending};
use crate::serving::shared::{self, Shared};
use crate::serving::{Settings, Tunnels};
use h3::error::Code;
use http::{Method, Request, Response};
use hvq::ConnectionError;
use std::future::{Future, poll_fn};
use std::sync::Arc;

/// Interim responses that are passed over.
const MOST_INTERIM: usize = 16;

/// The reason for which there is no answer to a request for a tunnel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExtendedConnectError {
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Connection(#[from] ConnectionError),
    /// The server does not say that it takes such requests (RFC 9220 §3, RFC 9297 §2.1.1): nothing was asked.
    #[error("the server offers no tunnels (extended CONNECT and HTTP datagrams)")]
    NotOffered,
    /// The server reset the request, as those do that do not know what it asks for.
    #[error("the server gave the request up with code {0:#x}")]
    Reset(u64),
    /// The request has no URI with scheme, authority and path.
    #[error("the request has no whole URI")]
    NoUri,
    /// It could not be sent.
    #[error(transparent)]
    Send(SendError),
    /// The bytes that came are no response.
    #[error(transparent)]
    Receive(ReceiveError),
}

impl From<SendError> for ExtendedConnectError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Lost(hvq::WriteError::ConnectionLost(lost)) => Self::Connection(lost),
            SendError::Lost(hvq::WriteError::Stopped(code)) => Self::Reset(code),
            other => Self::Send(other),
        }
    }
}

impl From<ReceiveError> for ExtendedConnectError {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Lost(hvq::ReadError::ConnectionLost(lost)) => Self::Connection(lost),
            ReceiveError::Lost(hvq::ReadError::Reset(code)) => Self::Reset(code),
            other => Self::Receive(other),
        }
    }
}

/// A client's connection to a server that takes tunnels. Dropping it closes the connection with H3_NO_ERROR. For ordinary
/// requests there is `h3`.
#[derive(Debug)]
pub struct ExtendedConnect {
    shared: Arc<Shared>,
    /// It must not end before the connection does (RFC 9114 §6.2.1).
    _control: hvq::SendStream,
}

impl Drop for ExtendedConnect {
    fn drop(&mut self) {
        self.shared.connection.close(Code::H3_NO_ERROR.value(), b"");
    }
}

impl ExtendedConnect {
    /// HTTP/3 on `connection`, whose handshake agreed on the application protocol [`ALPN`](crate::ALPN).
    ///
    /// # Errors
    /// The connection ended.
    pub async fn new(connection: hvq::Connection) -> Result<Self, ConnectionError> {
        let settings = Settings { tunnels: Tunnels::Taken, ..Settings::default() };
        let (shared, control) = Shared::begin(connection, settings).await?;
        Ok(Self { shared, _control: control })
    }

    /// Reads the server's control streams until the connection ends; to be run beside the rest, for nothing is asked before
    /// the server's SETTINGS came. A server that breaks the protocol there loses the connection.
    pub fn watch(&self) -> impl Future<Output = ()> + Send + 'static {
        shared::watch(self.shared.clone())
    }

    /// Asks with `request`, whose method is of no account, for a tunnel of `protocol`, and waits for the answer, which may be
    /// a refusal.
    ///
    /// # Errors
    /// See [`ExtendedConnectError`].
    pub async fn ask(
        &self,
        request: &Request<()>,
        protocol: &str,
    ) -> Result<(Response<()>, Sending, Receiving), ExtendedConnectError> {
        let offers = self.shared.offers().await?;
        // RFC 9220 §3: not before the setting was received, and not without it.
        if (offers.extended_connect, offers.datagrams) != (Offered::Yes, Offered::Yes) {
            return Err(ExtendedConnectError::NotOffered);
        }
        let uri = request.uri();
        let (Some(scheme), Some(authority), Some(path)) =
            (uri.scheme(), uri.authority(), uri.path_and_query())
        else {
            return Err(ExtendedConnectError::NoUri);
        };
        let pseudo = [
            (":method", Method::CONNECT.as_str()),
            (":protocol", protocol),
            (":scheme", scheme.as_str()),
            (":authority", authority.as_str()),
            (":path", path.as_str()),
        ];
        let (send, receive) = self.shared.connection.open_bi().await?;
        let mut sending = Sending::new(send, self.shared.clone());
        let mut receiving = Receiving::new(receive, self.shared.clone());
        let asked =
            sending.ask(&pseudo.map(|(name, value)| (name, value.as_bytes())), request.headers()).await;
        match asked {
            // What the server says of it comes on the other half.
            Ok(()) | Err(SendError::Lost(hvq::WriteError::Stopped(_))) => {}
            Err(error) => return Err(error.into()),
        }
        let head = answer(&mut receiving).await?;
        Ok((head, sending, receiving))
    }
}

/// The final response.
async fn answer(receiving: &mut Receiving) -> Result<Response<()>, ExtendedConnectError> {
    for _ in 0..MOST_INTERIM {
        let section = poll_fn(|context| receiving.poll_section(context)).await;
        let head = section.and_then(|section| Ok(response(section)?));
        match head {
            Ok(head) if head.status().is_informational() => receiving.expect_head(),
            Ok(head) => return Ok(head),
            Err(error) => {
                if let ReceiveError::Malformed(code, _) = error {
                    receiving.stop(code);
                }
                return Err(error.into());
            }
        }
    }
    receiving.stop(Code::H3_EXCESSIVE_LOAD);
    Err(ExtendedConnectError::Receive(ReceiveError::Malformed(
        Code::H3_EXCESSIVE_LOAD,
        "interim responses without end",
    )))
}
