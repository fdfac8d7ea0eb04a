//! The ways to a host, and the paths of a connection to it.

use crate::output::Console;
use hvq::links::Links;
use hvq::path_manager::{LinkUse, PathManagerBuilder, PathManagerEvent, PathManagerStatus, Rule, Rules};
use hvq::{Connection, Destination, DestinationError, PathManager, PathOptions};
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// Links that an error tells of at most.
const MOST_TOLD: usize = 8;

/// The reason for which there is no way to a host.
#[derive(Debug, thiserror::Error)]
pub enum ApproachError {
    /// The name does not resolve, or to nothing that a path can reach.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// No link can be used, for these reasons.
    #[error("no network link can be used: {0}")]
    NoLink(String),
}

impl ApproachError {
    /// The error for links that all have a reason not to be used.
    pub(super) fn no_link(status: &PathManagerStatus) -> Self {
        let told = status.links.iter().filter_map(|link| match &link.usage {
            LinkUse::Unused(reason) => Some(format!("{}: {reason}", link.name)),
            LinkUse::Path { .. } => None,
        });
        let mut told: Vec<String> = told.take(MOST_TOLD).collect();
        if told.is_empty() {
            told.push("this machine has none".to_owned());
        }
        Self::NoLink(told.join("; "))
    }
}

/// Something to tell about paths that follow the links.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Something happened.
    Event(PathManagerEvent),
    /// A rule is for no link: most likely a name is mistyped.
    IdleRule(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => event.fmt(f),
            Self::IdleRule(rule) => write!(f, "no network interface matches the rule {rule}"),
        }
    }
}

/// The ways to a host.
#[derive(Clone, Debug)]
pub struct Approach {
    /// The destinations, in the order in which to try them.
    pub destinations: Vec<Destination>,
    /// The manager of the paths of a connection to one of them, if they follow links.
    managing: Option<Managing>,
}

#[derive(Clone, Debug)]
struct Managing {
    builder: PathManagerBuilder,
    links: Links,
    /// The rules as they change.
    rules: Option<watch::Receiver<Rules>>,
}

impl Approach {
    /// The ways to `destinations` over paths that stay.
    pub(super) const fn plain(destinations: Vec<Destination>) -> Self {
        Self { destinations, managing: None }
    }

    /// A way that begins over the first of `paths` that answers, and follows the links.
    pub(super) fn managed(
        paths: Vec<PathOptions>,
        builder: PathManagerBuilder,
        links: Links,
        rules: Option<watch::Receiver<Rules>>,
    ) -> Self {
        let address = paths.first().and_then(|path| path.remote).expect("a way over a link has a remote");
        let destinations = vec![Destination { address, paths }];
        Self { destinations, managing: Some(Managing { builder, links, rules }) }
    }

    /// Has the paths of `connection` follow the links, if they were chosen so. Tells `tell` of what happens.
    pub async fn manage(
        &self,
        connection: &Connection,
        tell: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Option<Arc<PathManager>> {
        let Managing { builder, links, rules } = self.managing.clone()?;
        let manager = match builder.spawn(connection).await {
            Ok(manager) => Arc::new(manager),
            Err(error) => {
                tracing::warn!(%error, "paths do not follow the links of this machine");
                return None;
            }
        };
        tokio::spawn(accompany(manager.clone(), links, rules, tell));
        Some(manager)
    }

    /// Has the paths of `connection` follow the links, as [`manage`](Self::manage) does, and tells people of failures, of
    /// rules that are for no link and, if they want to know, of each change.
    pub async fn manage_aloud(&self, connection: &Connection, console: Console) -> Option<Arc<PathManager>> {
        let tell = move |notice: Notice| match notice {
            Notice::Event(PathManagerEvent::Failed { .. }) | Notice::IdleRule(_) => {
                console.say(format!("hvq: warning: {notice}"));
            }
            Notice::Event(event) => console.detail(|| format!("* {event}")),
        };
        self.manage(connection, tell).await
    }
}

/// Passes rules on to `manager` and news of it to `tell`, until it ends.
async fn accompany(
    manager: Arc<PathManager>,
    links: Links,
    rules: Option<watch::Receiver<Rules>>,
    tell: impl Fn(Notice),
) {
    let idle = |rules: &Rules| {
        let current = links.current();
        let names: Vec<String> = rules.idle(&current).map(Rule::to_string).collect();
        names.into_iter().map(Notice::IdleRule).for_each(&tell);
    };
    let mut events = manager.events();
    let mut rules = rules;
    if let Some(rules) = &mut rules {
        // They may have changed since the connection began.
        let latest = rules.borrow_and_update().clone();
        idle(&latest);
        manager.set_rules(latest);
    }
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => tell(Notice::Event(event)),
                None => return,
            },
            latest = changed(&mut rules) => {
                idle(&latest);
                manager.set_rules(latest);
            }
        }
    }
}

/// The rules, once they are others.
async fn changed(rules: &mut Option<watch::Receiver<Rules>>) -> Rules {
    if let Some(rules) = rules
        && rules.changed().await.is_ok()
    {
        return rules.borrow_and_update().clone();
    }
    std::future::pending().await
}
