//! The connection to the gateway: made when it is needed, over all paths, and made again when it is lost.

mod attempts;

use attempts::Attempts;
use http::header::PROXY_AUTHORIZATION;
use http::{HeaderValue, Request};
use hvq::path_manager::PathManagerEvent;
use hvq::stats::DatagramStats;
use hvq::{
    ClientConfig, Connection, ConnectionError, DialError, Dialed, Endpoint, PathInfo, PathManager,
    PathOptions,
};
use hvq_h3::client::{Client, RequestError};
use hvq_h3::{Code, Datagrams, Receiving, SendError, Sending, Settings, Tunnels};
#[cfg(unix)]
use hvq_program::control::ProgramStatus;
use hvq_program::names::Names;
use hvq_program::path_choice::{ApproachError, Notice, PathChoice};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::timeout;

/// The time that the gateway may take to notice that the connection is closed.
const GOODBYE: Duration = Duration::from_millis(500);

/// The address of the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatewayAddress {
    /// Its name, for which its certificate must be.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The reason for which a text is no token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TokenError {
    /// It is empty.
    #[error("there is no token in it")]
    Empty,
    /// There is more than one word, as in the gateway's own file, where each has a name.
    #[error("expected one token and nothing else")]
    SeveralWords,
    /// A header cannot hold it.
    #[error("it holds no token")]
    Unfit,
}

/// Reads the token that opens a gateway, with space around it, and returns the value of `proxy-authorization` (RFC 6750 §2.1).
///
/// # Errors
/// The text is no token.
pub fn token(text: &str) -> Result<HeaderValue, TokenError> {
    let token = text.trim();
    if token.is_empty() {
        return Err(TokenError::Empty);
    }
    if token.contains(char::is_whitespace) {
        return Err(TokenError::SeveralWords);
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| TokenError::Unfit)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The options of the link to the gateway.
#[derive(Clone)]
pub struct LinkOptions {
    /// The address of the gateway.
    pub gateway: GatewayAddress,
    /// TLS and transport.
    pub config: ClientConfig,
    /// The way from the gateway's name to its addresses.
    pub names: Names,
    /// The paths.
    pub paths: PathChoice,
    /// The token that opens the gateway.
    pub token: Option<HeaderValue>,
    /// Told of each path that an attempt to connect goes over, with its remote address.
    pub destined: fn(&PathOptions),
    /// Told of each path that a connection has to do without: its name, and why.
    pub unusable: fn(&str, &str),
    /// Told of what else is wrong with paths that follow the links, such as a rule that is for none.
    pub noticed: fn(&str),
}

/// The reason for which the gateway cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Its name has no address, none that a path can reach, or no link leads there.
    #[error("cannot connect to the gateway: {0}")]
    Approach(#[from] ApproachError),
    /// None of its addresses answers over any path.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// There is no connection.
    #[error("cannot connect to the gateway: {0}")]
    Connection(#[from] ConnectionError),
    /// The request could not be sent, or was not answered.
    #[error("the gateway took no request: {0}")]
    Request(#[from] RequestError),
    /// It refused.
    #[error("the gateway answered {0}")]
    Refused(http::StatusCode),
    /// An attempt failed that several requests waited for, or one a moment ago.
    #[error(transparent)]
    Attempt(Arc<LinkError>),
}

impl LinkError {
    /// The error of the connection, if that is what failed.
    pub fn connection(&self) -> Option<&ConnectionError> {
        match self {
            Self::Connection(error) => Some(error),
            Self::Attempt(error) => error.connection(),
            Self::Dial(error) => error.connection(),
            Self::Approach(_) | Self::Request(_) | Self::Refused(_) => None,
        }
    }
}

/// The connection to the gateway.
pub struct Link {
    dialer: Arc<Dialer>,
    sessions: Attempts<Arc<Session>, LinkError>,
}

/// The way to the gateway.
struct Dialer {
    options: LinkOptions,
    endpoint: Endpoint,
    /// The counters of the datagrams of connections that are over.
    past: Arc<Mutex<DatagramStats>>,
}

/// A connection that requests go over. Requests hold on to it, because it ends when nobody does.
pub(crate) struct Session {
    connection: Connection,
    /// The manager of its paths, if they follow the links.
    manager: Option<Arc<PathManager>>,
    http: Client,
    pub(crate) datagrams: Arc<Datagrams>,
    past: Arc<Mutex<DatagramStats>>,
}

impl Session {
    /// Returns the counters of its datagrams.
    fn counted(&self) -> DatagramStats {
        let counted = self.connection.stats().datagrams;
        DatagramStats { unread: counted.unread + self.datagrams.unread(), ..counted }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        *self.past.lock().unwrap_or_else(PoisonError::into_inner) += self.counted();
    }
}

/// A request on its way: both halves of its stream, and what keeps its connection.
pub(crate) struct Open {
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
    pub(crate) session: Arc<Session>,
}

impl Link {
    /// To the gateway that `options` name. Nothing is sent yet.
    ///
    /// # Errors
    /// The system gives no socket or no randomness.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn new(options: LinkOptions) -> io::Result<Self> {
        let dialer = Dialer { options, endpoint: Endpoint::client(&[])?, past: Arc::default() };
        Ok(Self { dialer: Arc::new(dialer), sessions: Attempts::default() })
    }

    /// Connects, if there is no connection.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub async fn connect(&self) -> Result<(), LinkError> {
        self.session().await.map(|_| ())
    }

    /// The gateway's host and port.
    pub(crate) fn authority(&self) -> String {
        let GatewayAddress { host, port } = &self.dialer.options.gateway;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// Returns the counters of the datagrams of all connections, but for earlier ones that somebody still holds on to.
    pub(crate) fn datagrams(&self) -> DatagramStats {
        let mut all = *self.dialer.past.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = self.sessions.last() {
            all += session.counted();
        }
        all
    }

    /// A packet of a program was dropped, as its tunnel or the number of tunnels has no room.
    pub(crate) fn displaced(&self) {
        self.dialer.past.lock().unwrap_or_else(PoisonError::into_inner).displaced += 1;
    }

    /// The open paths, if there is a connection.
    pub fn paths(&self) -> Vec<PathInfo> {
        let session = self.sessions.last();
        session.map(|session| session.connection.paths()).unwrap_or_default()
    }

    /// The status of the proxy for its control socket.
    #[cfg(unix)]
    pub fn status(&self) -> ProgramStatus {
        let session = self.sessions.last();
        let (connection, manager) = match &session {
            Some(session) => (Some(&session.connection), session.manager.as_deref()),
            None => (None, None),
        };
        ProgramStatus::of(("proxy", &self.authority()), &self.dialer.options.paths, connection, manager)
    }

    /// Sends the head of a request, which has an authority and neither `host` nor fields about a connection of HTTP/1.1,
    /// with the token.
    ///
    /// # Errors
    /// See [`LinkError`].
    pub(crate) async fn open(&self, mut request: Request<()>) -> Result<Open, LinkError> {
        request.headers_mut().remove(PROXY_AUTHORIZATION);
        if let Some(token) = &self.dialer.options.token {
            request.headers_mut().insert(PROXY_AUTHORIZATION, token.clone());
        }
        let priority = hvq_h3::priority::parse(request.headers());
        let mut again = true;
        loop {
            let session = self.session().await?;
            match session.http.open(&request).await {
                Ok((sending, receiving)) => {
                    // The urgency of what is sent up; the gateway orders what comes down.
                    sending.set_priority(priority);
                    return Ok(Open { sending, receiving, session });
                }
                Err(error) if is_about_request(&error) => return Err(error.into()),
                // A gateway that says goodbye, or went away: nothing was sent, so that another connection may do.
                Err(error) => {
                    self.sessions.forget(|last| Arc::ptr_eq(last, &session));
                    if !std::mem::take(&mut again) {
                        return Err(error.into());
                    }
                }
            }
        }
    }

    async fn session(&self) -> Result<Arc<Session>, LinkError> {
        let is_open = |session: &Arc<Session>| session.connection.close_reason().is_none();
        let start = || {
            let dialer = self.dialer.clone();
            async move { dialer.start().await.map(Arc::new) }
        };
        self.sessions.get(is_open, start).await.map_err(LinkError::Attempt)
    }

    /// Ends the connection and tells the gateway.
    pub async fn close(&self) {
        if let Some(session) = self.sessions.last() {
            self.sessions.forget(|_| true);
            session.connection.close(Code::H3_NO_ERROR.value(), b"");
        }
        self.dialer.endpoint.close(Code::H3_NO_ERROR.value(), b"");
        let _late = timeout(GOODBYE, self.dialer.endpoint.wait_idle()).await;
    }
}

impl Dialer {
    async fn start(&self) -> Result<Session, LinkError> {
        let (connection, manager) = self.dial().await?;
        let settings = Settings { tunnels: Tunnels::Taken, ..Settings::default() };
        let http = Client::new(connection.clone(), settings).await?;
        let datagrams = Datagrams::new(connection.clone());
        let run = datagrams.clone();
        tokio::spawn(async move { run.run().await });
        // It ends with the connection, and the connection with the last who holds on to the session.
        let (watching, ended) = (http.watch(), connection.clone());
        tokio::spawn(async move {
            watching.await;
            let end = ended.closed().await;
            tracing::info!(%end, "the connection to the gateway ended");
        });
        Ok(Session { connection, manager, http, datagrams, past: self.past.clone() })
    }

    /// Connects to the gateway over the first of its addresses and paths that answers, and opens the other paths.
    async fn dial(&self) -> Result<(Connection, Option<Arc<PathManager>>), LinkError> {
        let GatewayAddress { host, port } = &self.options.gateway;
        let approach = self.options.paths.toward(&self.options.names, host, *port).await?;
        approach.destinations.iter().flat_map(|found| &found.paths).for_each(self.options.destined);
        let dialer = hvq::Dialer::new(self.endpoint.clone(), self.options.config.clone());
        let Dialed { connection, others } = dialer.dial_resolved(host, &approach.destinations).await?;
        let LinkOptions { unusable, noticed, .. } = self.options;
        let tell = move |notice| note(notice, unusable, noticed);
        let manager = approach.manage(&connection, tell).await;
        if manager.is_none() {
            others.into_iter().for_each(|path| open_path(&connection, path, unusable));
        }
        Ok((connection, manager))
    }
}

/// Says what happened to a path that follows the links.
fn note(notice: Notice, unusable: fn(&str, &str), noticed: fn(&str)) {
    match notice {
        Notice::Event(PathManagerEvent::Failed { link, error }) => unusable(&link, &error),
        Notice::Event(event) => tracing::info!(%event, "paths follow the links"),
        Notice::IdleRule(_) => noticed(&notice.to_string()),
    }
}

/// Opens a further path. Requests do not wait for it, and do without if it fails.
fn open_path(connection: &Connection, path: PathOptions, unusable: fn(&str, &str)) {
    let connection = connection.clone();
    tokio::spawn(async move {
        let name = path.name.clone();
        match connection.open_path(path).await {
            Ok(id) => tracing::info!(%id, name, "path is validated"),
            Err(_) if connection.close_reason().is_some() => {}
            Err(error) => unusable(&name, &error.to_string()),
        }
    });
}

/// Returns true if another connection would not take the request either.
fn is_about_request(error: &RequestError) -> bool {
    match error {
        RequestError::NotOffered | RequestError::NoUri | RequestError::Malformed => true,
        RequestError::Send(error) => *error == SendError::HeaderTooLarge,
        RequestError::Connection(_)
        | RequestError::GoingAway
        | RequestError::Reset(_)
        | RequestError::Receive(_) => false,
    }
}
