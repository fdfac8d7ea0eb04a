//! The paths of a connection, kept in step with the links of this machine: see [`PathManager`].

mod accounts;
mod assess;
mod budget;
mod driver;
#[cfg(test)]
mod fixture;
mod planner;
mod rules;
mod status;

pub use budget::{Budget, BudgetError, Period, Spending};
pub use rules::{Condition, Rule, RuleError, Rules, RulesError, Use};
pub use status::{LinkStatus, LinkUse, PathManagerEvent, PathManagerStatus, Reason};

use self::assess::{Wanted, Wishes, assess};
use self::driver::PathManagerTask;
use crate::links::{Link, Links};
use crate::runtime;
use crate::runtime::Stop;
use crate::{Connection, PathOptions};
use hvq_transport::connection::Role;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// Events that a subscriber may be behind.
const BACKLOG: usize = 64;
/// Paths at the same time, unless somebody says otherwise.
const PATHS: usize = 4;
/// Paths over which a connection may begin, at most.
const BEGINNINGS: usize = 8;
/// Addresses of the peer that are tried at most.
const MOST_REMOTES: usize = 16;

/// The reason for which the paths of a connection cannot be managed.
#[derive(Debug, thiserror::Error)]
pub enum PathManagerError {
    /// Only a client opens paths (RFC 10069 §3.1).
    #[error("only a client manages paths")]
    NotClient,
    /// The system does not tell what links there are.
    #[error("cannot watch the links of this machine: {0}")]
    Links(#[from] io::Error),
}

/// The options of a [`PathManager`].
#[derive(Clone, Debug)]
pub struct PathManagerBuilder {
    rules: Rules,
    remotes: Vec<SocketAddr>,
    most: usize,
    spending: Spending,
    links: Option<Links>,
}

impl PathManagerBuilder {
    /// The rules that say which links are used, and for what. Default: none, so that every link but tunnels is.
    #[must_use]
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The addresses of the peer, the preferred first; of more than sixteen the last are left out. Default: that of the
    /// connection. Each link has a path to the first of them that it reaches.
    #[must_use]
    pub fn remotes(mut self, remotes: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.remotes = remotes.into_iter().take(MOST_REMOTES).collect();
        self
    }

    /// Paths at the same time at most, beside those that are about to be given up. Default: 4. The peer may permit fewer.
    #[must_use]
    pub fn most_paths(mut self, most: usize) -> Self {
        self.most = most.max(1);
        self
    }

    /// The account of what metered links have spent, for connections that share their budgets. Default: an account of its
    /// own, which begins at zero.
    #[must_use]
    pub fn spending(mut self, spending: Spending) -> Self {
        self.spending = spending;
        self
    }

    /// A watcher of links to share. Default: one of its own.
    #[must_use]
    pub fn links(mut self, links: Links) -> Self {
        self.links = Some(links);
        self
    }

    /// The paths over which a connection to the [remotes](Self::remotes) may begin, at most eight, the best first: one over
    /// each link, then those to other addresses of the peer. [`ConnectOptions::racing`](crate::ConnectOptions::racing) takes
    /// them. The manager adopts the one on which the connection began, and opens one over each other link.
    pub fn paths(&self, links: &[Link]) -> Vec<PathOptions> {
        let wanted = assess(&self.wishes(links, &self.rules, &self.remotes)).wanted;
        let most = wanted.iter().map(|wanted| wanted.ways.len()).max().unwrap_or_default();
        let over = |wanted: &Wanted<'_>, turn: usize| Some(wanted.ways.get(turn)?.options(wanted.link));
        let in_turn = (0..most).flat_map(|turn| wanted.iter().filter_map(move |wanted| over(wanted, turn)));
        in_turn.take(BEGINNINGS).collect()
    }

    /// The part that each of `links` would play for a connection to the [remotes](Self::remotes): those that can be used are
    /// [pending](Reason::Pending).
    pub fn preview(&self, links: &[Link]) -> PathManagerStatus {
        let assessment = assess(&self.wishes(links, &self.rules, &self.remotes));
        let wanted = assessment.wanted.iter().map(|wanted| (wanted.link, Reason::Pending, wanted.rule()));
        let unused = assessment.unused.into_iter().map(|(link, reason)| (link, reason, None));
        let mut known: Vec<LinkStatus> = wanted
            .chain(unused)
            .map(|(link, reason, rule)| LinkStatus {
                name: link.name.clone(),
                index: link.index,
                kind: link.kind,
                usage: LinkUse::Unused(reason),
                rule,
            })
            .collect();
        known.sort_by_key(|link| link.index);
        PathManagerStatus { links: known, idle_rules: self.rules.idle(links).map(Rule::to_string).collect() }
    }

    /// Manages the paths of `connection` from here on: nobody else should open, move or give up any. The first of them are
    /// being opened when it returns, if the handshake is complete. It ends with the connection, which it does not keep open.
    ///
    /// # Errors
    /// See [`PathManagerError`].
    pub async fn spawn(mut self, connection: &Connection) -> Result<PathManager, PathManagerError> {
        if connection.role() != Role::Client {
            return Err(PathManagerError::NotClient);
        }
        let runtime = connection.reference().shared().runtime();
        let links = match self.links.take() {
            Some(links) => links,
            None => Links::watch_on(runtime.clone()).await?,
        };
        if self.remotes.is_empty() {
            self.remotes.push(connection.remote_address());
        }
        let rules = watch::Sender::new(Arc::new(std::mem::take(&mut self.rules)));
        let (publisher, status) = watch::channel(Arc::new(PathManagerStatus::default()));
        let events = broadcast::Sender::new(BACKLOG);
        let spending = self.spending.clone();
        let mut driver = PathManagerTask::new(connection, self, links, rules.subscribe());
        let pause = driver.step(connection, &publisher);
        let task = runtime::spawn(&**runtime, driver.run(pause, publisher, events.clone()));
        Ok(PathManager { rules, status, events: events.downgrade(), spending, task })
    }

    fn wishes<'a>(&'a self, links: &'a [Link], rules: &'a Rules, remotes: &'a [SocketAddr]) -> Wishes<'a> {
        Wishes { links, rules, remotes, most: self.most, spending: &self.spending, calendar: calendar() }
    }
}

/// The time since 1970. A clock from before makes budgets begin anew, and nothing else.
fn calendar() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A manager of the paths of a connection: it opens a path over each link of this machine that its [`Rules`] permit, and
/// follows links that appear, vanish, come up, go down and change address.
///
/// - A link that comes up has its path opened, or asked whether it answers, at once; attempts that fail are repeated after
///   1, 2, 4 … 60 s.
/// - A path whose link is gone is given up (PATH_ABANDON, RFC 10069 §3.4) once another one works.
/// - A path whose address changed moves to the new one (RFC 9000 §9), and stays the same path.
/// - With a peer that does not speak multipath, the one path moves to the best link.
///
/// Dropping the handle leaves the manager at work until the connection ends.
#[derive(Debug)]
pub struct PathManager {
    rules: watch::Sender<Arc<Rules>>,
    status: watch::Receiver<Arc<PathManagerStatus>>,
    events: broadcast::WeakSender<PathManagerEvent>,
    spending: Spending,
    task: Stop,
}

impl PathManager {
    /// The options of a manager, all at their defaults.
    pub fn builder() -> PathManagerBuilder {
        PathManagerBuilder {
            rules: Rules::default(),
            remotes: Vec::new(),
            most: PATHS,
            spending: Spending::default(),
            links: None,
        }
    }

    /// The part that each link plays now; that of the end once the connection ended.
    pub fn status(&self) -> Arc<PathManagerStatus> {
        self.status.borrow().clone()
    }

    /// Waits until the status is `such`, and returns it; `None` if the manager ended before.
    pub async fn status_when(
        &self,
        mut such: impl FnMut(&PathManagerStatus) -> bool,
    ) -> Option<Arc<PathManagerStatus>> {
        let mut status = self.status.clone();
        let found = status.wait_for(|status| such(status)).await;
        found.ok().map(|status| status.clone())
    }

    /// Bytes that `rule` has spent in the day or month of `budget` that it is now.
    pub fn spent(&self, rule: &str, budget: Budget) -> u64 {
        self.spending.spent(rule, budget, calendar())
    }

    /// Puts other rules in the place of those that hold; paths follow at once.
    pub fn set_rules(&self, rules: Rules) {
        self.rules.send_replace(Arc::new(rules));
    }

    /// The events from now on.
    pub fn events(&self) -> PathManagerEvents {
        PathManagerEvents { receiver: self.events.upgrade().map(|events| events.subscribe()) }
    }

    /// Ends the manager; paths stay as they are.
    pub fn stop(self) {
        self.task.stop();
    }
}

/// The events of a [`PathManager`] from the call of [`PathManager::events`] on.
#[derive(Debug)]
pub struct PathManagerEvents {
    receiver: Option<broadcast::Receiver<PathManagerEvent>>,
}

impl PathManagerEvents {
    /// The next event; `None` once the manager ended. A receiver that falls behind by more than 64 events misses the oldest.
    pub async fn recv(&mut self) -> Option<PathManagerEvent> {
        let receiver = self.receiver.as_mut()?;
        loop {
            match receiver.recv().await {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}
