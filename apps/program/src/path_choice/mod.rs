//! The paths of a client: those that were named, or one over each link of this machine, as links come and go.

mod approach;
mod rules;

pub use approach::{Approach, ApproachError, Notice};
pub use rules::RuleSource;

use crate::failure::Failure;
use crate::names::Names;
use crate::output::Console;
use hvq::links::Links;
use hvq::path_manager::{PathManagerBuilder, Rules};
use hvq::{Destination, PathManager, PathOptions};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use tokio::sync::watch;

/// The paths of a client.
#[derive(Clone, Debug)]
pub enum PathChoice {
    /// These, the first of which carries the handshake unless the scheduler prefers another. Without any, the system chooses
    /// one.
    Named(Vec<PathOptions>),
    /// One over each link, if more than one leads to the peer, and the system's own choice is among them; otherwise one that
    /// the system chooses. A machine whose traffic goes through a VPN keeps to that.
    Several,
    /// One over each link that the rules permit.
    Links(Box<LinkPaths>),
}

/// Paths over the links that rules permit. Clones share the rules and the account of budgets.
#[derive(Clone, Debug)]
pub struct LinkPaths {
    builder: PathManagerBuilder,
    source: RuleSource,
    rules: Arc<watch::Sender<Rules>>,
}

impl PathChoice {
    /// A path over each link that the rules of `source` permit.
    ///
    /// # Errors
    /// The file with rules cannot be read, or holds something else ([`Exit::Usage`](crate::failure::Exit::Usage)).
    pub fn links(source: RuleSource) -> Result<Self, Failure> {
        let rules = Arc::new(watch::Sender::new(source.read()?));
        Ok(Self::Links(Box::new(LinkPaths { builder: PathManager::builder(), source, rules })))
    }

    /// Returns true if there is a file that [`reload`](Self::reload) reads again.
    pub fn is_reloadable(&self) -> bool {
        matches!(self, Self::Links(paths) if paths.source.file.is_some())
    }

    /// Reads the rules again. The paths of connections that are [managed](Approach::manage) follow at once; they stay as
    /// they are after an error.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else; the rules stay.
    pub fn reload(&self) -> Result<(), Failure> {
        if let Self::Links(paths) = self {
            paths.rules.send_replace(paths.source.read()?);
        }
        Ok(())
    }

    /// Reads the rules again, as [`reload`](Self::reload) does, and tells people of the outcome.
    pub fn reload_aloud(&self, console: Console) {
        match self.reload() {
            Ok(()) => console.say("hvq: the rules about links were read again"),
            Err(failure) => console.say(format!("hvq: warning: the rules stay: {}", failure.line())),
        }
    }

    /// The ways to `host`, whose addresses `names` finds.
    ///
    /// # Errors
    /// See [`ApproachError`].
    pub async fn toward(&self, names: &Names, host: &str, port: u16) -> Result<Approach, ApproachError> {
        let destinations = names.destinations(host, port, self.named()).await?;
        self.among(destinations).await
    }

    /// The ways to a host that has `addresses`, in the order in which to try them.
    ///
    /// # Errors
    /// See [`ApproachError`].
    pub async fn toward_known(&self, addresses: &[SocketAddr]) -> Result<Approach, ApproachError> {
        let mut destinations: Vec<Destination> = Vec::new();
        let mut failed = None;
        for address in addresses {
            // A path of one version of IP leads to no address of the other.
            match Destination::resolve(&address.ip().to_string(), address.port(), self.named()).await {
                Ok(found) => {
                    let new: Vec<_> =
                        found.into_iter().filter(|found| !destinations.contains(found)).collect();
                    destinations.extend(new);
                }
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if destinations.is_empty() => Err(error.into()),
            _ => self.among(destinations).await,
        }
    }

    fn named(&self) -> &[PathOptions] {
        if let Self::Named(paths) = self { paths } else { &[] }
    }

    /// The ways to a host that `destinations` stand for.
    async fn among(&self, destinations: Vec<Destination>) -> Result<Approach, ApproachError> {
        if matches!(self, Self::Named(_)) {
            return Ok(Approach::plain(destinations));
        }
        let links = match Links::watch().await {
            Ok(links) => links,
            Err(error) => {
                tracing::warn!(%error, "the links of this machine are not known: the system chooses the path");
                return Ok(Approach::plain(destinations));
            }
        };
        let remotes: Vec<SocketAddr> = destinations.iter().map(|found| found.address).collect();
        match self {
            Self::Links(paths) => paths.toward(&remotes, links),
            Self::Named(_) | Self::Several => {
                let builder = PathManager::builder().remotes(remotes).links(links.clone());
                let paths = builder.paths(&links.current());
                if is_choice_among(&paths) {
                    Ok(Approach::managed(paths, builder, links, None))
                } else {
                    Ok(Approach::plain(destinations))
                }
            }
        }
    }
}

impl LinkPaths {
    fn toward(&self, remotes: &[SocketAddr], links: Links) -> Result<Approach, ApproachError> {
        let rules = self.rules.subscribe();
        let builder = self.builder.clone().rules(rules.borrow().clone());
        let builder = builder.remotes(remotes.iter().copied()).links(links.clone());
        let paths = builder.paths(&links.current());
        if paths.is_empty() {
            return Err(ApproachError::no_link(&builder.preview(&links.current())));
        }
        Ok(Approach::managed(paths, builder, links, Some(rules)))
    }
}

/// Returns true if `paths` are over several links, one of which the system would take itself.
fn is_choice_among(paths: &[PathOptions]) -> bool {
    let links: BTreeSet<&str> = paths.iter().map(|path| path.name.as_str()).collect();
    let is_own = |path: &PathOptions| {
        let taken = path.remote.and_then(source_toward);
        matches!((&path.local, taken), (hvq::LocalAddress::Link(local), Some(taken)) if local.address == taken)
    };
    links.len() > 1 && paths.iter().any(is_own)
}

/// The address from which the system sends to `remote`, if it has a route. Nothing is sent.
fn source_toward(remote: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(remote).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

impl Default for PathChoice {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl From<Vec<PathOptions>> for PathChoice {
    fn from(paths: Vec<PathOptions>) -> Self {
        Self::Named(paths)
    }
}

impl FromIterator<PathOptions> for PathChoice {
    fn from_iter<I: IntoIterator<Item = PathOptions>>(paths: I) -> Self {
        Self::Named(paths.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str, local: &str) -> PathOptions {
        format!("{name}={local}%{name}>127.0.0.1:443").parse().unwrap()
    }

    #[test]
    fn links_are_followed_unasked_where_there_are_several_and_the_system_takes_one_of_them() {
        let (own, other) = (path("lo", "127.0.0.1"), path("eth0", "192.0.2.7"));
        assert!(is_choice_among(&[own.clone(), other.clone()]));
        assert!(!is_choice_among(std::slice::from_ref(&own)), "there is nothing to choose");
        assert!(!is_choice_among(&[own.clone(), own]), "two addresses of the peer are no two links");
        assert!(!is_choice_among(&[other, path("wlan0", "192.0.2.8")]), "the system goes through a tunnel");
    }

    #[tokio::test]
    async fn without_a_permitted_link_it_is_said_of_each_why_not() {
        let source = RuleSource { given: vec!["any=never".parse().unwrap()], file: None };
        let choice = PathChoice::links(source).unwrap();
        let error = choice
            .toward(&Names::default(), "127.0.0.1", 443)
            .await
            .expect_err("all links are forbidden")
            .to_string();
        assert!(error.contains("no network link can be used"), "{error}");
        assert!(error.contains("lo: the rule any=never forbids it"), "{error}");
    }

    #[tokio::test]
    async fn rules_are_read_again_and_a_file_that_is_wrong_changes_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "any=never\n").unwrap();
        let source = RuleSource { given: Vec::new(), file: Some(file.path().to_owned()) };
        let choice = PathChoice::links(source).unwrap();
        assert!(choice.is_reloadable() && choice.toward(&Names::default(), "127.0.0.1", 443).await.is_err());
        std::fs::write(file.path(), "any=use\n").unwrap();
        choice.reload().unwrap();
        assert!(
            choice.clone().toward(&Names::default(), "127.0.0.1", 443).await.is_ok(),
            "a clone has the same rules"
        );
        std::fs::write(file.path(), "any=sometimes\n").unwrap();
        let error = choice.reload().unwrap_err();
        assert!(error.line().contains("line 1"), "{}", error.line());
        assert!(choice.toward(&Names::default(), "127.0.0.1", 443).await.is_ok());
    }
}
