//! The task of a [`PathManager`](super::PathManager): it carries out plans, and tells the planner what came of them.

use super::PathManagerBuilder;
use super::accounts::{Meter, UsedSockets};
use super::assess::Settings;
use super::planner::{
    Action, Capacity, Manner, OpenPath, Opening, Origin, Plan, Planner, Refusal, Situation,
};
use super::rules::{Rule, Rules, Use};
use super::status::{PathManagerEvent, PathManagerStatus};
use crate::connection::{Connection, Reference};
use crate::links::{Link, Links};
use crate::path::Status;
use crate::runtime;
use crate::runtime::Runtime;
use crate::socket::route;
use crate::{
    LocalAddress, MigratePathError, OpenPathError, PathEvent, PathEvents, PathId, PathInfo, PathOptions,
};
use hvq_transport::connection::{MigrateError, Moving, OpenPathError as CoreRefusal};
use hvq_transport::time::Instant;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// Plans in a row, each for what came of the one before.
const ROUNDS: usize = 4;
/// The interval between two plans though nothing happened.
const QUIET: Duration = Duration::from_secs(10);
/// The interval while there is something to count or to release.
const BUSY: Duration = Duration::from_secs(1);

/// The state of the task.
pub(super) struct PathManagerTask {
    connection: Weak<Reference>,
    runtime: Arc<dyn Runtime>,
    options: PathManagerBuilder,
    rules: watch::Receiver<Arc<Rules>>,
    links: Links,
    paths: PathEvents,
    planner: Planner,
    meter: Meter,
    sockets: UsedSockets,
    news: Vec<PathManagerEvent>,
}

/// Something that the task woke for.
enum Wake {
    Links,
    Rules,
    Path(PathEvent),
    Time,
    End,
}

impl PathManagerTask {
    /// A manager of the paths of `connection`.
    pub(super) fn new(
        connection: &Connection,
        options: PathManagerBuilder,
        links: Links,
        rules: watch::Receiver<Arc<Rules>>,
    ) -> Self {
        Self {
            connection: Arc::downgrade(connection.reference()),
            runtime: connection.reference().shared().runtime().clone(),
            options,
            rules,
            links,
            paths: connection.path_events(),
            planner: Planner::new(),
            meter: Meter::default(),
            sockets: UsedSockets::default(),
            news: Vec::new(),
        }
    }

    /// Manages until the connection ends, from the end of `pause` on.
    pub(super) async fn run(
        mut self,
        mut pause: Duration,
        status: watch::Sender<Arc<PathManagerStatus>>,
        events: broadcast::Sender<PathManagerEvent>,
    ) {
        self.warn();
        loop {
            for event in self.news.drain(..) {
                tracing::debug!(%event, "path manager");
                // It is no error that nobody listens.
                let _listeners = events.send(event).unwrap_or_default();
            }
            let wake = self.wait(pause).await;
            // Held for this step alone: whoever drops the last handle ends the connection.
            let Some(connection) = self.connection.upgrade().map(Connection::new) else { return };
            match wake {
                Wake::Rules => self.warn(),
                Wake::Path(event) => self.on_path(event, connection.reference().shared().now()),
                Wake::Links | Wake::Time => {}
                Wake::End => return,
            }
            pause = self.step(&connection, &status);
        }
    }

    async fn wait(&mut self, pause: Duration) -> Wake {
        let rules = &mut self.rules;
        let reload = async {
            if rules.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            _ = self.links.changed() => Wake::Links,
            () = reload => Wake::Rules,
            event = self.paths.recv() => event.map_or(Wake::End, Wake::Path),
            () = runtime::sleep(&*self.runtime, pause) => Wake::Time,
        }
    }

    /// Plans and carries out. Returns the time until the next plan.
    pub(super) fn step(
        &mut self,
        connection: &Connection,
        status: &watch::Sender<Arc<PathManagerStatus>>,
    ) -> Duration {
        let (links, rules) = (self.links.current(), self.rules.borrow_and_update().clone());
        let paths = connection.paths();
        self.count(&paths, &links, &rules);
        self.release(connection, &paths);
        let mut plan = Plan::default();
        for _ in 0..ROUNDS {
            plan = self.plan(connection, &links, &rules);
            if plan.actions.is_empty() {
                break;
            }
            for action in std::mem::take(&mut plan.actions) {
                self.carry_out(connection, action, &links);
            }
        }
        let known = PathManagerStatus {
            links: std::mem::take(&mut plan.links),
            idle_rules: rules.idle(&links).map(Rule::to_string).collect(),
        };
        status.send_if_modified(|old| {
            let is_news = **old != known;
            if is_news {
                *old = Arc::new(known);
            }
            is_news
        });
        let is_metered = rules.iter().any(|rule| matches!(rule.usage(), Use::Metered(Some(_))));
        let longest = if is_metered || self.sockets.is_waiting() { BUSY } else { QUIET };
        let now = connection.reference().shared().now();
        plan.wake.map_or(longest, |at| at.since(now).min(longest)).max(Duration::from_millis(1))
    }

    fn plan(&mut self, connection: &Connection, links: &[Link], rules: &Rules) -> Plan {
        let open: Vec<OpenPath> =
            connection.paths().into_iter().map(|path| open_path(connection, &path)).collect();
        let capacity = if connection.is_multipath() { Capacity::Several } else { Capacity::One };
        let now = connection.reference().shared().now();
        let wishes = self.options.wishes(links, rules, &self.options.remotes);
        self.planner.plan(&wishes, Situation { paths: &open, capacity, now })
    }

    fn carry_out(&mut self, connection: &Connection, action: Action, links: &[Link]) {
        let now = connection.reference().shared().now();
        match action {
            Action::Open(opening) => {
                match start(&opening.options, |options| connection.try_start_path(options), bind_refused) {
                    Ok(path) => self.on_opened(connection, path, &opening),
                    Err(error) => self.on_refused(opening.link, refusal(error), links, now),
                }
            }
            Action::Move { link, path, to, manner } => {
                let moving = match manner {
                    Manner::Validated => Moving::Validated,
                    Manner::AtOnce => Moving::AtOnce,
                };
                let started = |to: &PathOptions| connection.start_move(path, &to.local, moving);
                match start(&to, started, move_bind_refused) {
                    Ok(()) => self.on_moving(link, path, &to, now),
                    Err(error) => self.on_refused(link, move_refusal(error), links, now),
                }
            }
            Action::Abandon { path, code } => self.abandon(connection, path, code, links),
            Action::Configure { path, settings } => {
                configure(connection, path, settings);
                self.planner.configured(path, settings);
            }
            Action::Probe { path } => {
                if let Err(error) = connection.ping_path(path) {
                    tracing::debug!(%path, %error, "the path cannot be asked");
                }
            }
        }
    }

    fn on_opened(&mut self, connection: &Connection, path: PathId, opening: &Opening) {
        let now = connection.reference().shared().now();
        self.planner.opened(path, opening);
        if opening.settings.status == Status::Backup
            && let Err(error) = connection.set_path_status(path, Status::Backup)
        {
            tracing::debug!(%path, %error, "the path is no backup");
        }
        let (link, after) = (opening.options.name.clone(), self.planner.usable_for(opening.link, now));
        self.news.push(PathManagerEvent::Opened { link, path, after });
    }

    fn on_moving(&mut self, link: u32, path: PathId, to: &PathOptions, now: Instant) {
        if let LocalAddress::Link(local) = &to.local {
            self.planner.moving(path, link, local.address, now);
            self.news.push(PathManagerEvent::Moved { link: to.name.clone(), path, to: local.address });
        }
    }

    fn on_refused(&mut self, link: u32, refusal: Refusal, links: &[Link], now: Instant) {
        self.planner.refused(link, &refusal, now);
        if let (Refusal::Error(error), Some(name)) = (refusal, name_of(link, links)) {
            self.news.push(PathManagerEvent::Failed { link: name, error });
        }
    }

    fn abandon(&mut self, connection: &Connection, path: PathId, code: u64, links: &[Link]) {
        let link = self.planner.link_of(path).and_then(|link| name_of(link, links)).unwrap_or_default();
        match connection.abandon_path(path, code) {
            Ok(()) => self.news.push(PathManagerEvent::Abandoned { link, path }),
            Err(error) => {
                tracing::debug!(%path, %error, "the path is not given up");
                self.planner.stays(path);
            }
        }
    }

    /// Takes note of what befell a path.
    fn on_path(&mut self, event: PathEvent, now: Instant) {
        let links = self.links.current();
        let name = |planner: &Planner, path| planner.link_of(path).and_then(|link| name_of(link, &links));
        match event {
            PathEvent::Available => self.planner.permitted(),
            PathEvent::Validated(path) => {
                if let Some(link) = name(&self.planner, path) {
                    self.news.push(PathManagerEvent::Validated { link, path });
                }
            }
            PathEvent::ValidationFailed(path) => {
                if let Some(link) = name(&self.planner, path) {
                    let error = "the peer did not answer".to_owned();
                    self.news.push(PathManagerEvent::Failed { link, error });
                }
            }
            PathEvent::MigrationFailed(path) => {
                let missed = self.planner.move_failed(path, now);
                if let Some(link) = missed.and_then(|link| name_of(link, &links)) {
                    let error = "the peer did not answer at the new address".to_owned();
                    self.news.push(PathManagerEvent::Failed { link, error });
                }
            }
            PathEvent::Abandoned { path, .. } if !self.planner.is_left(path) => {
                let link = name(&self.planner, path).unwrap_or_default();
                self.news.push(PathManagerEvent::Lost { link, path });
            }
            _ => {}
        }
    }

    fn count(&mut self, paths: &[PathInfo], links: &[Link], rules: &Rules) {
        let link = |path| {
            let index = self.planner.link_of(path)?;
            links.iter().find(|link| link.index == index)
        };
        self.meter.read(paths, rules, &self.options.spending, link);
    }

    /// Closes the sockets that paths left long ago.
    fn release(&mut self, connection: &Connection, paths: &[PathInfo]) {
        let reference = connection.reference();
        let used: Vec<SocketAddr> = paths.iter().map(|path| path.stats.tuple.local).collect();
        let now = reference.shared().now();
        for local in self.sockets.follow(&used, now) {
            let mut state = reference.shared().lock();
            state.sockets.release_from(reference.handle(), local);
            state.wake_driver();
        }
    }

    /// Logs the rules that are for no link.
    fn warn(&self) {
        let (links, rules) = (self.links.current(), self.rules.borrow().clone());
        for rule in rules.idle(&links) {
            tracing::info!(%rule, "no network interface matches this rule now");
        }
    }
}

/// The path as the planner sees it.
fn open_path(connection: &Connection, path: &PathInfo) -> OpenPath {
    let tuple = path.stats.tuple;
    let origin = if tuple.local.ip().is_unspecified() {
        let state = connection.reference().shared().lock();
        match state.sockets.device_at(tuple.local) {
            Some(device) => Origin::Device(device.to_owned()),
            None => Origin::Routed(route(tuple.remote).ok()),
        }
    } else {
        Origin::Address(tuple.local.ip())
    };
    OpenPath { id: path.id, origin, remote: tuple.remote, state: path.state }
}

/// Starts at the address of `options` and its interface, or at the address alone where the system does not let this user
/// bind to interfaces.
fn start<T, E>(
    options: &PathOptions,
    mut attempt: impl FnMut(&PathOptions) -> Result<T, E>,
    is_bind: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let started = attempt(options);
    match (&started, &options.local) {
        (Err(error), LocalAddress::Link(local)) if is_bind(error) => {
            let alone = local.without_interface();
            let second = attempt(&PathOptions { local: alone, ..options.clone() });
            // The first error says more.
            second.or(started)
        }
        _ => started,
    }
}

fn bind_refused(error: &OpenPathError) -> bool {
    matches!(error, OpenPathError::Bind { source, .. } if is_forbidden(source))
}

fn move_bind_refused(error: &MigratePathError) -> bool {
    matches!(error, MigratePathError::Bind { source, .. } if is_forbidden(source))
}

fn is_forbidden(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn refusal(error: OpenPathError) -> Refusal {
    match error {
        OpenPathError::Refused(CoreRefusal::LimitReached | CoreRefusal::NoConnectionId) => Refusal::Limit,
        OpenPathError::Refused(CoreRefusal::NotConnected) => Refusal::Early,
        error => Refusal::Error(error.to_string()),
    }
}

fn move_refusal(error: MigratePathError) -> Refusal {
    match error {
        MigratePathError::Refused(MigrateError::NotConfirmed | MigrateError::NoConnectionId) => {
            Refusal::Early
        }
        error => Refusal::Error(error.to_string()),
    }
}

/// Gives a path its properties; a path that is just gone takes none.
fn configure(connection: &Connection, path: PathId, settings: Settings) {
    for result in [
        connection.set_path_status(path, settings.status),
        connection.set_hints(path, settings.hints),
        connection.set_dscp(path, settings.dscp),
    ] {
        if let Err(error) = result {
            tracing::debug!(%path, %error, "the path keeps a property");
        }
    }
}

fn name_of(index: u32, links: &[Link]) -> Option<String> {
    links.iter().find(|link| link.index == index).map(|link| link.name.clone())
}
