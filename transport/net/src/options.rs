//! Paths and channels as people write them on a command line.

mod typed;
mod values;

pub use values::parse_hints;
use values::parse_values;
pub(crate) use values::split_dscp;

use crate::path::LocalAddressError;
use crate::{Hints, LocalAddress};
use hvq_transport::congestion::{Congestion, UnknownAlgorithm};
use hvq_transport::connection::{ChannelHint, Dscp, Replay};
use std::net::SocketAddr;
use std::str::FromStr;

/// The options of a connection that a client starts.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The server's address.
    pub remote: SocketAddr,
    /// The name that its certificate must be for: a host name or an IP address.
    pub server_name: String,
    /// The local end of path 0, which carries the handshake; `None` leaves it to the endpoint.
    pub local: Option<LocalAddress>,
    /// The name of path 0.
    pub name: Option<String>,
    /// Hints about the channel of path 0.
    pub hints: Hints,
    /// The congestion control of path 0, if not that of the connection.
    pub congestion: Option<Congestion>,
    /// The Differentiated Services codepoint of what is sent on path 0.
    pub dscp: Dscp,
    /// Further paths on which the connection may begin, the preferred first; none by default. Attempts over them follow the
    /// first one, 250 ms after each other if nothing tells how long an answer takes, until one is complete (RFC 8305 §5).
    pub alternatives: Vec<PathOptions>,
    /// Tells whether data that was written may be sent again on another attempt, though the server may have it from one
    /// that died in its last moments. By default it is not, and such a connection ends with
    /// [`ConnectionError::HandshakeTimeout`](crate::ConnectionError).
    pub replay: Replay,
}

impl ConnectOptions {
    /// To the server at `remote`, whose certificate is for `server_name`, from where the endpoint likes.
    pub fn new(remote: SocketAddr, server_name: impl Into<String>) -> Self {
        Self {
            remote,
            server_name: server_name.into(),
            local: None,
            name: None,
            hints: Hints::NONE,
            congestion: None,
            dscp: Dscp::DEFAULT,
            alternatives: Vec::new(),
            replay: Replay::Refused,
        }
    }

    /// Returns the same options over the path at `first` of `paths`, while the others are its
    /// [alternatives](Self::alternatives). With an index beyond the last it is as it was.
    #[must_use]
    pub fn racing(self, first: usize, paths: &[PathOptions]) -> Self {
        let Some(path) = paths.get(first) else { return self };
        let others = paths.iter().enumerate().filter(|(index, _)| *index != first);
        let alternatives = others.map(|(_, path)| path.clone()).collect();
        Self { alternatives, ..self }.over(path)
    }

    /// Returns the same options with the application's consent to data that the server may process twice.
    #[must_use]
    pub fn with_replay(self, replay: Replay) -> Self {
        Self { replay, ..self }
    }

    /// Returns the same options over `path`, whose remote address wins if it has one.
    #[must_use]
    pub fn over(mut self, path: &PathOptions) -> Self {
        self.remote = path.remote.unwrap_or(self.remote);
        self.local = Some(path.local.clone());
        self.name = Some(path.name.clone());
        self.hints = path.hints;
        self.congestion.clone_from(&path.congestion);
        self.dscp = path.dscp;
        self
    }
}

/// A path to open. Text form: `NAME=LOCAL[>REMOTE][,key=value…]` with the keys of [`parse_hints`], `congestion`, which names
/// an [`Algorithm`](crate::congestion::Algorithm), and `dscp`, a number from 0 to 63, as in
/// `urllc=127.0.0.1:0>127.0.0.1:4434,rate=2mbit,delay=2.5ms,congestion=copa,dscp=46`.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PathOptions {
    /// The name of the path, for people.
    pub name: String,
    /// The local end of the path.
    pub local: LocalAddress,
    /// The remote end of the path; `None` is that of path 0. [`Destination::resolve`](crate::Destination::resolve)
    /// fills in an address of the host instead.
    pub remote: Option<SocketAddr>,
    /// Hints about its channel.
    pub hints: Hints,
    /// Its congestion control, if not that of the connection.
    pub congestion: Option<Congestion>,
    /// The Differentiated Services codepoint of what is sent on it (RFC 10069 §5.2).
    pub dscp: Dscp,
}

impl PathOptions {
    /// A path called `name` from `local` to where path 0 ends, of which nothing is known.
    pub fn new(name: impl Into<String>, local: impl Into<LocalAddress>) -> Self {
        Self {
            name: name.into(),
            local: local.into(),
            remote: None,
            hints: Hints::NONE,
            congestion: None,
            dscp: Dscp::DEFAULT,
        }
    }

    /// Returns the same path to `remote`.
    #[must_use]
    pub fn to(mut self, remote: SocketAddr) -> Self {
        self.remote = Some(remote);
        self
    }

    /// Returns the same path over a channel of which `hints` are known.
    #[must_use]
    pub fn with_hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// Returns the same path under `congestion`: an [`Algorithm`](crate::congestion::Algorithm), or what a factory makes.
    #[must_use]
    pub fn with_congestion(mut self, congestion: impl Into<Congestion>) -> Self {
        self.congestion = Some(congestion.into());
        self
    }
}

/// A listening address that belongs to a channel. Text form: `NAME=LOCAL[,key=value…]` with the keys of [`PathOptions`],
/// as in `embb=10.0.0.1,rate=60mbit,delay=25ms`.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// The name of the channel, for people.
    pub name: String,
    /// Its address; if that has no port or port 0, the port of the listening socket counts.
    pub local: LocalAddress,
    /// Hints about the channel.
    pub hints: Hints,
    /// The congestion control of its paths, if not that of the connection.
    pub congestion: Option<Congestion>,
    /// The Differentiated Services codepoint of what is sent through it.
    pub dscp: Dscp,
}

impl ChannelOptions {
    /// The codepoint of paths through the socket that is bound to `bound`, with their local address; `None` if the socket
    /// is not of this channel.
    pub fn codepoint_for(&self, bound: SocketAddr) -> Option<(SocketAddr, Dscp)> {
        self.hint_for(bound).map(|hint| (hint.local, self.dscp))
    }

    /// Returns the hint for paths through the socket that is bound to `bound`, `None` if the socket is not of this
    /// channel. A socket bound to all addresses serves every channel of its IP version. An interface cannot be told
    /// from an address, so it matches no socket.
    pub fn hint_for(&self, bound: SocketAddr) -> Option<ChannelHint> {
        let local = match self.local {
            LocalAddress::Ip(address) => SocketAddr::new(address, bound.port()),
            LocalAddress::Socket(local) if local.port() == 0 => SocketAddr::new(local.ip(), bound.port()),
            LocalAddress::Socket(local) => local,
            LocalAddress::Link(ref link) => SocketAddr::new(link.address, bound.port()),
            LocalAddress::Interface(_) => return None,
        };
        let within = SocketAddr::new(bound.ip(), local.port()) == bound
            && bound.ip().is_unspecified()
            && bound.is_ipv4() == local.is_ipv4();
        (local == bound || within).then_some(ChannelHint {
            local,
            hints: self.hints,
            congestion: self.congestion.clone(),
            link: None,
        })
    }
}

/// The reason for which a text describes no path or channel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OptionsError {
    /// No `NAME=` in front.
    #[error("{0:?} does not start with NAME=: expected NAME=LOCAL[>REMOTE][,key=value…]")]
    NoName(String),
    /// The local address.
    #[error("local address: {0}")]
    Local(#[from] LocalAddressError),
    /// The remote address.
    #[error("remote address: {0:?} is not an IP address with a port, such as 192.0.2.1:443")]
    Remote(String),
    /// A channel has no remote address.
    #[error("a channel has no remote address, but {0:?} was given")]
    RemoteOfChannel(String),
    /// The item is no `key=value`.
    #[error("{0:?} is not key=value")]
    NotAPair(String),
    /// A key that there is not.
    #[error("unknown key {0:?}: choose from rate, delay, loss, price, shared, congestion, dscp")]
    Key(String),
    /// The key was given before.
    #[error("{0} is given twice")]
    Repeated(String),
    /// A congestion controller that there is not.
    #[error("congestion: {0}")]
    Congestion(#[from] UnknownAlgorithm),
    /// A value that the key cannot have.
    #[error("{key}={value:?} is not valid: expected {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value as given.
        value: String,
        /// A description of the expected value.
        expected: &'static str,
    },
}

impl FromStr for PathOptions {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let parts = Parts::of(text)?;
        let remote = match parts.remote {
            Some(remote) => Some(remote.parse().map_err(|_| OptionsError::Remote(remote.to_owned()))?),
            None => None,
        };
        let Parts { local, hints, congestion, dscp, .. } = parts;
        Ok(Self { name: parts.name.to_owned(), local, remote, hints, congestion, dscp })
    }
}

impl FromStr for ChannelOptions {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let parts = Parts::of(text)?;
        if let Some(remote) = parts.remote {
            return Err(OptionsError::RemoteOfChannel(remote.to_owned()));
        }
        let Parts { local, hints, congestion, dscp, .. } = parts;
        Ok(Self { name: parts.name.to_owned(), local, hints, congestion, dscp })
    }
}

/// The parts that both forms have in common.
struct Parts<'a> {
    name: &'a str,
    local: LocalAddress,
    remote: Option<&'a str>,
    hints: Hints,
    congestion: Option<Congestion>,
    dscp: Dscp,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Result<Self, OptionsError> {
        let (addresses, values) = text.split_once(',').unwrap_or((text, ""));
        let missing = || OptionsError::NoName(text.to_owned());
        let (name, addresses) = addresses.split_once('=').ok_or_else(missing)?;
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(missing());
        }
        let (local, remote) = match addresses.split_once('>') {
            Some((local, remote)) => (local, Some(remote)),
            None => (addresses, None),
        };
        let local = local.parse()?;
        let (dscp, values) = values::split_dscp(values)?;
        let (hints, congestion) = parse_values(&values)?;
        Ok(Self { name, local, remote, hints, congestion, dscp })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bandwidth;
    use hvq_transport::congestion::Algorithm;
    use std::time::Duration;

    #[test]
    fn a_path_is_read_with_everything_that_it_may_have() {
        let path: PathOptions = "urllc=127.0.0.1:0>127.0.0.1:4434,rate=2mbit,delay=2.5ms".parse().unwrap();
        assert_eq!((path.name.as_str(), path.remote), ("urllc", Some(([127, 0, 0, 1], 4434).into())));
        assert_eq!(path.local, LocalAddress::Socket(([127, 0, 0, 1], 0).into()));
        assert_eq!(path.hints.rate, Some(Bandwidth::from_mbit(2)));
        assert_eq!(path.hints.delay, Some(Duration::from_micros(2500)));
        let marked: PathOptions = "urllc=127.0.0.1,rate=2mbit,dscp=46,delay=1ms".parse().unwrap();
        assert_eq!((marked.dscp, marked.hints.delay), (Dscp::EXPEDITED, Some(Duration::from_millis(1))));
        let short: PathOptions = "wifi=wlan0".parse().unwrap();
        assert_eq!(short, PathOptions::new("wifi", LocalAddress::Interface("wlan0".to_owned())));
    }

    #[test]
    fn a_path_or_channel_names_its_congestion_controller() {
        let path: PathOptions = "urllc=127.0.0.1,congestion=copa,rate=2mbit".parse().unwrap();
        assert_eq!(
            (path.congestion.clone(), path.hints.rate),
            (Some(Algorithm::Copa.into()), Some(Bandwidth::from_mbit(2)))
        );
        let first = ConnectOptions::new(([127, 0, 0, 1], 1).into(), "localhost").over(&path);
        assert_eq!(first.congestion, Some(Algorithm::Copa.into()));
        let channel: ChannelOptions = "embb=10.0.0.1:4433,congestion=vegas".parse().unwrap();
        let hint = channel.hint_for(([10, 0, 0, 1], 4433).into());
        assert_eq!(hint.and_then(|hint| hint.congestion), Some(Algorithm::Vegas.into()));
        let unknown = "a=127.0.0.1,congestion=tahoe".parse::<PathOptions>().unwrap_err();
        assert!(unknown.to_string().contains("vivace"), "{unknown}");
        let twice = "a=127.0.0.1,congestion=lia,congestion=lia".parse::<PathOptions>();
        assert_eq!(twice, Err(OptionsError::Repeated("congestion".to_owned())));
    }

    #[test]
    fn a_channel_has_no_remote_address_and_takes_the_port_of_its_socket() {
        let channel: ChannelOptions = "embb=10.0.0.1,rate=60mbit".parse().unwrap();
        let bound = SocketAddr::from(([10, 0, 0, 1], 4433));
        assert_eq!(channel.hint_for(bound).map(|hint| hint.local), Some(bound));
        assert_eq!(channel.hint_for(([10, 0, 0, 2], 4433).into()), None);
        assert_eq!(channel.hint_for(([0, 0, 0, 0], 4433).into()).map(|hint| hint.local), Some(bound));
        assert_eq!(channel.hint_for("[::]:4433".parse().unwrap()), None);
        let error = "embb=10.0.0.1>10.0.0.2:1".parse::<ChannelOptions>().unwrap_err();
        assert_eq!(error, OptionsError::RemoteOfChannel("10.0.0.2:1".to_owned()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text: &str| text.parse::<PathOptions>().unwrap_err();
        assert_eq!(error("127.0.0.1"), OptionsError::NoName("127.0.0.1".to_owned()));
        assert_eq!(error("=127.0.0.1"), OptionsError::NoName("=127.0.0.1".to_owned()));
        assert_eq!(error("a=1.2.3.4.5"), OptionsError::Local(LocalAddressError("1.2.3.4.5".to_owned())));
        assert_eq!(error("a=1.2.3.4>host"), OptionsError::Remote("host".to_owned()));
        assert!(matches!(error("a=1.2.3.4,dscp=64"), OptionsError::Value { key: "dscp", .. }));
        assert_eq!(error("a=1.2.3.4,dscp=1,dscp=1"), OptionsError::Repeated("dscp".to_owned()));
        assert_eq!(error("a=1.2.3.4,colour=red"), OptionsError::Key("colour".to_owned()));
    }
}
