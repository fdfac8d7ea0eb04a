//! The connection to a server, over the paths that were asked for.

use super::Settings;
use super::others::Others;
use super::target::Target;
use crate::failure::{Exit, Failure, OrFail};
use crate::output::Console;
use crate::paths::destination;
use crate::sessions::{keep_knowledge, restore_knowledge};
use http::StatusCode;
use hvq::{Connection, Destination, Dialed, Dialer, Endpoint, PathId};
use hvq_h3::Origin;
use hvq_h3::client::Client;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The time that the server may take to send a session ticket, if they are kept: most send one as the handshake ends, and some never.
const TICKET: Duration = Duration::from_millis(200);

/// The time that the server may take to notice that the connection is closed.
const GOODBYE: Duration = Duration::from_millis(500);

/// A connection that requests can be sent on.
pub struct Session {
    target: Target,
    endpoint: Endpoint,
    /// The address that the server answered from.
    server: SocketAddr,
    settings: Settings,
    /// The QUIC connection.
    pub(super) connection: Connection,
    /// The paths beside the first.
    pub(super) others: Others,
    /// HTTP/3 on it.
    pub(super) http: Client,
    watching: JoinHandle<()>,
    /// The time from the start, name resolution included, to the end of the handshake.
    pub(super) connect_time: Duration,
}

impl Session {
    /// Connects to the server of `target` over the first of its addresses and paths that answers.
    pub async fn open(target: &Target, settings: &Settings, console: Console) -> Result<Self, Failure> {
        let start = Instant::now();
        let config = &settings.config;
        let endpoint = Endpoint::client(&[])?;
        if let Some(sessions) = &settings.sessions {
            restore_knowledge(&endpoint, sessions.path());
        }
        let approach = target.approach(&settings.names, &settings.paths).await?;
        for Destination { address, paths } in &approach.destinations {
            console.detail(|| format!("* connecting to {address} as {}", target.host));
            paths.iter().for_each(|path| console.detail(|| format!("* {}", destination(path))));
        }
        let dialer = Dialer::new(endpoint.clone(), config.clone()).replay(settings.replay).early_data();
        let dialed = dialer.dial_resolved(&target.host, &approach.destinations).await;
        let Dialed { connection, others } = dialed.map_err(Failure::of_dial)?;
        let connect_time = start.elapsed();
        console.detail(|| describe(&connection, connect_time));
        let others = match approach.manage_aloud(&connection, console).await {
            Some(manager) => Others::managed(manager),
            None => Others::open(&connection, others.into_iter(), console),
        };
        if let Some(time) = settings.migrate_after {
            migrate(&connection, time, console);
        }
        let http = Client::new(connection.clone(), hvq_h3::Settings::default()).await;
        let http = http.or_fail(Exit::Connection, || format!("no HTTP/3 with {}", target.host))?;
        let watching = tokio::spawn(http.watch());
        let (target, server) = (target.clone(), connection.remote_address());
        let settings = settings.clone();
        Ok(Self { target, endpoint, server, settings, connection, others, http, watching, connect_time })
    }

    /// The QUIC connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns true if requests for `target` can go over this connection: it was made to this server, or the server named the origin
    /// (RFC 9412), its certificate is for the host, and the host is at the server's address.
    pub async fn serves(&self, target: &Target, console: Console) -> bool {
        let is_open = self.connection.close_reason().is_none() && !self.http.is_going_away();
        is_open && (self.target.same_server(target) || self.is_shared_with(target, console).await)
    }

    /// Returns true if the server of this connection is that of `target`, too. DNS is asked all the same (RFC 8336 §4): a certificate that
    /// somebody got hold of attracts no requests then.
    async fn is_shared_with(&self, target: &Target, console: Console) -> bool {
        if !origin(target).is_some_and(|origin| self.http.serves(&origin)) {
            return false;
        }
        let approach = target.approach(&self.settings.names, &self.settings.paths).await;
        let is_here = approach
            .is_ok_and(|approach| approach.destinations.iter().any(|found| found.address == self.server));
        if is_here {
            console.detail(|| {
                format!("* {} is asked for over the connection to {}", target.host, self.target.host)
            });
        }
        is_here
    }

    /// Returns true if `status` says that `target` is not to be asked for over this connection, which was made to another server: it is not
    /// any more.
    pub(super) fn is_misdirected(&self, status: StatusCode, target: &Target) -> bool {
        if status != StatusCode::MISDIRECTED_REQUEST || self.target.same_server(target) {
            return false;
        }
        if let Some(origin) = origin(target) {
            self.http.misdirected(&origin);
        }
        true
    }

    /// Ends the connection and tells the server.
    pub async fn close(self, console: Console) {
        self.others.warn(console);
        if let Some(sessions) = &self.settings.sessions {
            let _none = timeout(TICKET, sessions.ticket()).await;
        }
        self.connection.close(hvq_h3::Code::H3_NO_ERROR.value(), b"");
        self.watching.abort();
        drop((self.http, self.connection));
        let _late = timeout(GOODBYE, self.endpoint.wait_idle()).await;
        if let Some(sessions) = &self.settings.sessions {
            keep_knowledge(&self.endpoint, sessions.path());
        }
    }
}

/// The origin of a target, unless its host is an address of IPv6, which no certificate lists as a name.
fn origin(target: &Target) -> Option<Origin> {
    Origin::new(&target.host, target.port).ok()
}

fn describe(connection: &Connection, connect_time: Duration) -> String {
    if connection.is_early_data() {
        return "* resuming a session: the request goes before the handshake is complete".to_owned();
    }
    let protocol = connection.alpn().map(|alpn| String::from_utf8_lossy(&alpn).into_owned());
    format!(
        "* connected to {} in {}: TLS 1.3, {}, multipath {}, {} certificates",
        connection.remote_address(),
        crate::duration::milliseconds(connect_time),
        protocol.unwrap_or_else(|| "no application protocol".to_owned()),
        if connection.is_multipath() { "agreed" } else { "not offered by the server" },
        connection.peer_certificates().len(),
    )
}

/// Moves the first path to another port after `time`, if the connection lasts so long.
fn migrate(connection: &Connection, time: Duration, console: Console) {
    let connection = connection.clone();
    tokio::spawn(async move {
        tokio::time::sleep(time).await;
        let first = connection.paths().into_iter().find(|path| path.id == PathId::ZERO);
        let Some(first) = first.filter(|_| connection.close_reason().is_none()) else { return };
        let local = SocketAddr::new(first.stats.tuple.local.ip(), 0);
        match connection.migrate_path(PathId::ZERO, local).await {
            Ok(()) => {
                console.detail(|| format!("* path {} has moved from {}", first.id, first.stats.tuple.local))
            }
            Err(_) if connection.close_reason().is_some() => {}
            Err(error) => console.say(format!("hvq: warning: path {} stays where it is: {error}", first.id)),
        }
    });
}
