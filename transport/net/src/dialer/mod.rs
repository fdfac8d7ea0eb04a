//! Connections to named servers over whichever of their addresses and of the local paths answers first: see [`Dialer`].

mod resolution;

pub(crate) use resolution::resolve;
#[cfg(feature = "dns")]
pub(crate) use resolution::{MOST_ADDRESSES, RESOLUTION_DELAY, interleaved};

use crate::tls::Replay;
use crate::{
    ClientConfig, ConnectError, ConnectOptions, Connection, ConnectionError, Destination, DestinationError,
    Endpoint, LocalAddress, PathOptions,
};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Attempts at one connection, at most.
const MOST_ATTEMPTS: usize = 16;

/// A dialer: it starts connections to servers over the first address and path that answers (Happy Eyeballs v2, RFC 8305).
///
/// - IPv6 and IPv4 addresses of a name are looked up at the same time; the first answer waits 50 ms for the other.
/// - Attempts follow each other after 250 ms, or three round trips where those of a path are known, until one is complete.
///   They take turns between address families, and between the local paths if some were named: neither one that is dead costs
///   more than one such delay.
/// - HTTPS records, which say where a host offers HTTP/3, are looked up by `Destination::resolve_https` (feature `dns`), whose
///   result [`dial_resolved`](Self::dial_resolved) takes.
/// - Sessions, address tokens and 0-RTT are those of the [`ClientConfig`] and of the endpoint; only the first attempt takes a
///   ticket.
///
/// Dropping a future of it ends every attempt. There is no pause behind a failure.
#[derive(Clone)]
pub struct Dialer {
    endpoint: Endpoint,
    config: ClientConfig,
    replay: Replay,
    takes_early_data: bool,
}

/// A connection that a [`Dialer`] started.
#[derive(Debug)]
pub struct Dialed {
    /// The connection. Its handshake is complete, unless [`Connection::is_early_data`] says otherwise.
    pub connection: Connection,
    /// The paths that were named beside the one on which it began, each to the address of the server that suits it best, for
    /// [`Connection::open_path`].
    pub others: Vec<PathOptions>,
}

/// An attempt that failed.
#[derive(Clone, PartialEq, Debug)]
pub struct DialAttempt {
    /// The address of the server.
    pub remote: SocketAddr,
    /// The name of the local path; `None` if none was named.
    pub path: Option<String>,
    /// The reason, if that is one of its own: it had one before the last attempt gave up.
    pub error: Option<ConnectionError>,
}

impl fmt::Display for DialAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.remote.fmt(f)?;
        if let Some(path) = &self.path {
            write!(f, " over {path}")?;
        }
        match &self.error {
            Some(error) => write!(f, ": {error}"),
            None => f.write_str(": no answer"),
        }
    }
}

/// The reason for which there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name does not resolve, or to nothing that a path can reach.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// No attempt can be begun.
    #[error("cannot connect to {host}: {source}")]
    Start {
        /// The name of the server.
        host: String,
        /// The reason.
        source: ConnectError,
    },
    /// No attempt succeeded.
    #[error("cannot connect to {host}{}", Listed(.source, .attempts))]
    Failed {
        /// The name of the server.
        host: String,
        /// The error of the connection: that of the attempt which says the most.
        source: ConnectionError,
        /// All attempts, in their order.
        attempts: Vec<DialAttempt>,
    },
}

impl DialError {
    /// The error of the connection, if that is what failed.
    pub fn connection(&self) -> Option<&ConnectionError> {
        match self {
            Self::Failed { source, .. } => Some(source),
            Self::Destination(_) | Self::Start { .. } => None,
        }
    }
}

/// The error of a connection, and all attempts: one by its address, several each with its own error.
struct Listed<'a>(&'a ConnectionError, &'a [DialAttempt]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(error, attempts) = self;
        if let [only] = attempts {
            return write!(f, " ({}): {error}", only.remote);
        }
        write!(f, ": {error}")?;
        for (index, attempt) in attempts.iter().enumerate() {
            write!(f, "{}{attempt}", if index == 0 { " (" } else { "; " })?;
        }
        if attempts.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

impl Dialer {
    /// A dialer whose connections are of `endpoint` and `config`.
    pub fn new(endpoint: Endpoint, config: ClientConfig) -> Self {
        Self { endpoint, config, replay: Replay::Refused, takes_early_data: false }
    }

    /// Tells whether data may be sent again on another attempt: see [`ConnectOptions::replay`]. Default: it may not.
    #[must_use]
    pub fn replay(mut self, replay: Replay) -> Self {
        self.replay = replay;
        self
    }

    /// Has a connection that can send 0-RTT returned before its handshake is complete (RFC 9001 §4.6). Default: none is.
    #[must_use]
    pub fn early_data(mut self) -> Self {
        self.takes_early_data = true;
        self
    }

    /// Connects to `host` over `paths`, or as the system likes without any.
    ///
    /// # Errors
    /// See [`DialError`].
    pub async fn dial(&self, host: &str, port: u16, paths: &[PathOptions]) -> Result<Dialed, DialError> {
        let runtime = || Ok(self.endpoint.shared().runtime().clone());
        let destinations = Destination::resolved(host, paths, resolve(runtime, host, port)).await?;
        self.dial_resolved(host, &destinations).await
    }

    /// Connects to `host`, for which the certificate must be, over `destinations`.
    ///
    /// # Errors
    /// See [`DialError`].
    ///
    /// # Panics
    /// There is no destination.
    pub async fn dial_resolved(&self, host: &str, destinations: &[Destination]) -> Result<Dialed, DialError> {
        let first = destinations.first().expect("a name resolves to something or fails");
        let preferred = self.endpoint.first_path(&self.config, first.address, &first.paths);
        let candidates = candidates(destinations, preferred);
        let options =
            ConnectOptions::new(first.address, host).racing(0, &candidates).with_replay(self.replay);
        let started = self.endpoint.connect_with(self.config.clone(), options);
        let mut connecting = started.map_err(|source| DialError::Start { host: host.to_owned(), source })?;
        if self.takes_early_data {
            connecting = match connecting.into_0rtt() {
                Ok((connection, _accepted)) => return Ok(dialed(connection, destinations, &candidates)),
                Err(connecting) => connecting,
            };
        }
        match (&mut connecting).await {
            Ok(connection) => Ok(dialed(connection, destinations, &candidates)),
            Err(source) => Err(failed(host, source, connecting.connection())),
        }
    }
}

fn failed(host: &str, source: ConnectionError, connection: &Connection) -> DialError {
    let attempt = |(path, error): (PathOptions, Option<ConnectionError>)| DialAttempt {
        remote: path.remote.unwrap_or_else(|| connection.remote_address()),
        path: Some(path.name).filter(|name| !name.is_empty()),
        error,
    };
    let mut attempts: Vec<DialAttempt> = connection.begun_attempts().into_iter().map(attempt).collect();
    if attempts.is_empty() {
        let (remote, error) = (connection.remote_address(), Some(source.clone()));
        attempts.push(DialAttempt { remote, path: connection.begun().map(|path| path.name), error });
    }
    DialError::Failed { host: host.to_owned(), source, attempts }
}

fn dialed(connection: Connection, destinations: &[Destination], candidates: &[PathOptions]) -> Dialed {
    let begun = connection.begun().unwrap_or_else(|| candidates[0].clone());
    let mut others: Vec<PathOptions> = Vec::new();
    for path in destinations.iter().flat_map(|destination| &destination.paths) {
        if path.name == begun.name && path.local == begun.local {
            continue;
        }
        // The address over which the connection began is known to work, and then one of its version.
        let rank = |path: &PathOptions| match (path.remote, begun.remote) {
            (Some(own), Some(taken)) if own == taken => 0,
            (Some(own), Some(taken)) if own.is_ipv4() == taken.is_ipv4() => 1,
            _ => 2,
        };
        match others.iter_mut().find(|other| other.name == path.name && other.local == path.local) {
            Some(other) if rank(path) < rank(other) => *other = path.clone(),
            Some(_) => {}
            None => others.push(path.clone()),
        }
    }
    Dialed { connection, others }
}

/// The paths on which to begin, in the order of the attempts: the second is over another path and to another address than the
/// first, if there is one, because either may be what does not work.
fn candidates(destinations: &[Destination], preferred: usize) -> Vec<PathOptions> {
    let named = destinations.iter().map(|destination| destination.paths.len()).max().unwrap_or_default();
    let mut candidates: Vec<PathOptions> = Vec::new();
    for shift in 0..destinations.len() {
        for turn in 0..named.max(1) {
            let destination = &destinations[(turn + shift) % destinations.len()];
            let path = match destination.paths.len() {
                0 => unnamed(destination.address),
                paths => destination.paths[nth(turn % paths, preferred)].clone(),
            };
            if !candidates.contains(&path) && candidates.len() < MOST_ATTEMPTS {
                candidates.push(path);
            }
        }
    }
    candidates
}

/// The index of the path whose turn it is: the preferred one is the first, and the others follow in their order.
const fn nth(turn: usize, preferred: usize) -> usize {
    match turn {
        0 => preferred,
        later if later <= preferred => later - 1,
        later => later,
    }
}

/// The path to `remote` that the system chooses.
fn unnamed(remote: SocketAddr) -> PathOptions {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    PathOptions::new("", LocalAddress::Ip(any)).to(remote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destinations(texts: &[(&str, &[&str])]) -> Vec<Destination> {
        let destination = |(address, paths): &(&str, &[&str])| {
            let address: SocketAddr = address.parse().unwrap();
            let path = |text: &&str| text.parse::<PathOptions>().unwrap().to(address);
            Destination { address, paths: paths.iter().map(path).collect() }
        };
        texts.iter().map(destination).collect()
    }

    fn order(destinations: &[Destination], preferred: usize) -> Vec<String> {
        let text = |path: &PathOptions| format!("{}>{}", path.name, path.remote.unwrap());
        candidates(destinations, preferred).iter().map(text).collect()
    }

    #[test]
    fn the_second_attempt_differs_in_path_and_in_address() {
        let paths: &[&str] = &["a=eth0", "b=wlan0"];
        let both = destinations(&[("[2001:db8::1]:1", paths), ("192.0.2.1:1", paths)]);
        let expected = ["a>[2001:db8::1]:1", "b>192.0.2.1:1", "a>192.0.2.1:1", "b>[2001:db8::1]:1"];
        assert_eq!(order(&both, 0), expected);
        assert_eq!(order(&both, 1)[..2], ["b>[2001:db8::1]:1", "a>192.0.2.1:1"]);
        let three = destinations(&[("192.0.2.1:1", &["a=eth0", "b=wlan0", "c=wwan0"])]);
        assert_eq!(order(&three, 1), ["b>192.0.2.1:1", "a>192.0.2.1:1", "c>192.0.2.1:1"]);
    }

    #[test]
    fn without_paths_each_address_is_tried_and_many_attempts_are_cut() {
        let plain = destinations(&[("[2001:db8::1]:1", &[]), ("192.0.2.1:1", &[])]);
        assert_eq!(order(&plain, 0), [">[2001:db8::1]:1", ">192.0.2.1:1"]);
        let texts: Vec<String> = (0..40).map(|host| format!("192.0.2.{host}:1")).collect();
        let many: Vec<(&str, &[&str])> = texts.iter().map(|text| (text.as_str(), &[][..])).collect();
        assert_eq!(order(&destinations(&many), 0).len(), MOST_ATTEMPTS);
    }
}
