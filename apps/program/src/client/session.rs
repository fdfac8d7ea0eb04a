//! The connection to a server, over the paths that were asked for.

use super::Settings;
use super::others::Others;
use super::target::Target;
use crate::failure::{Exit, Failure, OrFail, exit_of};
use crate::output::Console;
use crate::paths::destination;
use hvq::{ClientConfig, ConnectOptions, Connection, Destination, Endpoint, PathId};
use hvq_h3::client::Client;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The time that the server may take to notice that the connection is closed.
const GOODBYE: Duration = Duration::from_millis(500);

/// A connection that requests can be sent on.
pub struct Session {
    target: Target,
    endpoint: Endpoint,
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
    /// Connects to the server of `target`, trying its addresses in turn.
    pub async fn open(target: &Target, settings: &Settings, console: Console) -> Result<Self, Failure> {
        let start = Instant::now();
        let config = &settings.config;
        let endpoint = Endpoint::client(&[])?;
        let approach = target.approach(&settings.paths).await?;
        let mut last = None;
        for Destination { address, paths } in approach.destinations.clone() {
            let first = endpoint.first_path(config, address, &paths);
            let address = paths.get(first).and_then(|path| path.remote).unwrap_or(address);
            console.detail(|| format!("* connecting to {address} as {}", target.host));
            paths.iter().for_each(|path| console.detail(|| format!("* {}", destination(path))));
            let options = ConnectOptions::new(address, target.host.clone())
                .racing(first, &paths)
                .with_replay(settings.replay);
            match connect(&endpoint, config, options).await {
                Ok(connection) => {
                    let connect_time = start.elapsed();
                    console.detail(|| describe(&connection, connect_time));
                    let others = match approach.manage_aloud(&connection, console).await {
                        Some(manager) => Others::managed(manager),
                        None => Others::open(&connection, connection.remaining_paths().into_iter(), console),
                    };
                    if let Some(time) = settings.migrate_after {
                        migrate(&connection, time, console);
                    }
                    return Self::start(target, endpoint, connection, others, connect_time).await;
                }
                // Another address has the same certificate, so that trying it tells nothing new.
                Err(failure) if failure.exit() == Exit::Tls => return Err(failure),
                Err(failure) => last = Some(failure),
            }
        }
        Err(last.expect("there was at least one address"))
    }

    async fn start(
        target: &Target,
        endpoint: Endpoint,
        connection: Connection,
        others: Others,
        connect_time: Duration,
    ) -> Result<Self, Failure> {
        let http = Client::new(connection.clone(), hvq_h3::Settings::default()).await;
        let http = http.or_fail(Exit::Connection, || format!("no HTTP/3 with {}", target.host))?;
        let watching = tokio::spawn(http.watch());
        Ok(Self { target: target.clone(), endpoint, connection, others, http, watching, connect_time })
    }

    /// The QUIC connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns true if requests for `target` can go over this connection.
    pub fn serves(&self, target: &Target) -> bool {
        self.target.same_server(target)
            && self.connection.close_reason().is_none()
            && !self.http.is_going_away()
    }

    /// Ends the connection and tells the server.
    pub async fn close(self, console: Console) {
        self.others.warn(console);
        self.connection.close(hvq_h3::Code::H3_NO_ERROR.value(), b"");
        self.watching.abort();
        drop((self.http, self.connection));
        let _late = timeout(GOODBYE, self.endpoint.wait_idle()).await;
    }
}

async fn connect(
    endpoint: &Endpoint,
    config: &ClientConfig,
    options: ConnectOptions,
) -> Result<Connection, Failure> {
    let (host, address) = (options.server_name.clone(), options.remote);
    let said = || format!("cannot connect to {host} ({address})");
    let connecting = endpoint.connect_with(config.clone(), options).or_fail(Exit::Connection, said)?;
    let connecting = match connecting.into_0rtt() {
        Ok((connection, _accepted)) => return Ok(connection),
        Err(connecting) => connecting,
    };
    connecting.await.map_err(|error| {
        let exit = exit_of(&error);
        let failed: Result<(), _> = Err(error);
        failed.or_fail(exit, said).expect_err("it is an error")
    })
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
