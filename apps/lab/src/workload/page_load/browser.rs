//! The browser: requests when the page's dependencies allow, connections when its domains are first seen.

use super::exchange::{self, DOWNLOAD, ENDLESS_DOWNLOAD, ENDLESS_UPLOAD, UPLOAD};
use super::line::{Line, RequestTarget};
use super::progress::Progress;
use super::sockets::{self, Sockets};
use super::{ApplicationHints, Background, Deployment, Manner, Paths};
use crate::pages::{Loader, Page};
use crate::world::Net;
use hvq_emulation::Direction;
use hvq_scheduler::Priority;
use hvq_transport::connection::{Connection, Event, FourTuple, PathEvent};
use hvq_transport::endpoint::{ConnectionHandle, NetworkPath};
use hvq_transport::error::ConnectionError;
use hvq_transport::stream::{ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// The host that a connection leads to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Host {
    /// The gateway, or else the resolver of names: it is there before the load.
    Standing,
    /// The gateway by a further connection.
    Gateway(u32),
    /// The server of one domain.
    Domain(u32),
    /// The server of a background flow.
    Background(u32),
    /// Any, or that of the domain if it was visited: the connection is there for the session that a later one resumes.
    Earlier(u32),
}

/// The time before the load in which nothing is begun.
const SETTLED: Duration = Duration::from_secs(1);

/// An errand for a host that has to be done once the network is at hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Errand {
    /// Its connection is to be begun.
    Connect(Host),
    /// Requests wait.
    Pump(Host),
}

/// The browser.
#[derive(Debug)]
pub(super) struct Browser {
    loader: Loader,
    manner: Manner,
    paths: Paths,
    lines: BTreeMap<Host, Line>,
    /// Domains whose addresses were asked for.
    asked: BTreeSet<u32>,
    /// The requests that wait for a connection that carries one request at a time.
    sockets: Sockets,
    errands: Vec<Errand>,
    /// Connections that are there before the load, and when they are begun.
    planned: VecDeque<(Instant, Host)>,
    /// The arrival of the content of the page.
    progress: Progress,
    /// The times at which objects of the page were complete.
    ends: Vec<Duration>,
    /// The time of the latest event.
    now: Instant,
}

/// `now` as the loader counts it.
fn clock(now: Instant) -> Duration {
    now.since(Net::START)
}

/// `paths` with the one first over which the policy has a connection begin.
fn in_order(paths: Paths, net: &Net) -> Paths {
    let Some(second) = paths.second else { return paths };
    let config = &net.client_config;
    let way = |tuple: FourTuple| NetworkPath { tuple, hints: config.transport().hints_for(tuple.local) };
    match net.client.endpoint.first_network_path(config, &[way(paths.first), way(second)], net.now) {
        0 => paths,
        _ => Paths { first: second, second: Some(paths.first) },
    }
}

impl Browser {
    pub(super) fn new(loader: Loader, page: &Page, manner: Manner, paths: Paths) -> Self {
        let mut domains: BTreeMap<u32, usize> = BTreeMap::new();
        page.objects.iter().for_each(|object| *domains.entry(object.domain).or_default() += 1);
        let mut hosts: BTreeSet<Host> = [Host::Standing].into();
        match manner.deployment {
            Deployment::TcpTls | Deployment::Http1 => {
                // No domain needs more connections than it has objects.
                let servers = |(domain, objects)| manner.deployment.servers(domain).take(objects);
                hosts.extend(domains.into_iter().flat_map(servers).map(Host::Domain));
            }
            Deployment::Resumed | Deployment::Revisited => {
                hosts.extend(domains.into_keys().map(Host::Earlier));
            }
            Deployment::Gateway => hosts.extend((1..manner.connections).map(Host::Gateway)),
            Deployment::Cold => {}
        }
        let content = page.objects.iter().map(|object| object.scaled_size(manner.size_scale).max(1)).sum();
        let mut browser = Self {
            loader,
            manner,
            paths,
            lines: BTreeMap::new(),
            asked: BTreeSet::new(),
            sockets: Sockets::default(),
            errands: Vec::new(),
            planned: VecDeque::new(),
            progress: Progress::new(content),
            ends: Vec::new(),
            now: Net::START,
        };
        for flow in 0..manner.background.flows() {
            let host = browser.background(flow);
            hosts.insert(host);
            let priority = browser.background_priority();
            let first = match manner.background {
                Background::Flows(_) | Background::OnUrllc { .. } => UPLOAD,
                Background::Bulk(Direction::Up) => ENDLESS_UPLOAD,
                Background::Bulk(Direction::Down) => ENDLESS_DOWNLOAD,
            };
            browser.line(host).ask(RequestTarget::Background(first, priority));
        }
        if manner.deployment == Deployment::Revisited {
            for object in &page.objects {
                browser.line(Host::Earlier(object.domain)).ask(RequestTarget::Visit(object.id));
            }
        }
        let apart =
            manner.deployment.lead().saturating_sub(SETTLED) / u32::try_from(hosts.len()).unwrap_or(u32::MAX);
        browser.planned = (0..).zip(hosts).map(|(index, host)| (Net::START + apart * index, host)).collect();
        browser
    }

    /// Returns the connection to the gateway that is for `domain`.
    fn gateway(&self, domain: u32) -> Host {
        match domain % self.manner.connections.max(1) {
            0 => Host::Standing,
            further => Host::Gateway(further),
        }
    }

    /// Returns the host of background flow number `flow`: through a gateway, two paths are for all small flows.
    fn background(&self, flow: u32) -> Host {
        match (self.manner.deployment, self.manner.background, self.paths.second) {
            (Deployment::Gateway, Background::Flows(_), Some(_)) => Host::Standing,
            _ => Host::Background(flow),
        }
    }

    /// The times since the start of the world at which parts of the content had arrived.
    pub(super) fn progress(&self) -> &[Duration] {
        self.progress.marks()
    }

    /// The times since the start of the world at which objects of the page were complete.
    pub(super) fn ends(&self) -> &[Duration] {
        &self.ends
    }

    fn background_priority(&self) -> Priority {
        match self.manner.voice {
            ApplicationHints::Silent => Priority::DEFAULT,
            ApplicationHints::Priorities => exchange::BACKGROUND,
        }
    }

    /// From the start of the load to its load event.
    pub(super) fn page_load_time(&self) -> Option<Duration> {
        self.loader.page_load_time()
    }

    /// Returns the time at which it has something to do that no event announces.
    pub(super) fn wake(&self) -> Option<Instant> {
        if !self.errands.is_empty() {
            return Some(self.now);
        }
        let planned = self.planned.front().map(|(at, _)| *at);
        let due = self.loader.next_deadline();
        let due = due.map(|due| Net::START + due.max(self.manner.deployment.lead()));
        planned.into_iter().chain(due).min()
    }

    /// Requests what is due and runs the errands.
    pub(super) fn on_wake(&mut self, net: &mut Net) {
        self.now = net.now;
        if clock(net.now) >= self.manner.deployment.lead() {
            self.request_due();
        }
        while let Some((_, host)) = self.planned.front().copied().filter(|(at, _)| *at <= net.now) {
            self.planned.pop_front();
            self.errands.push(Errand::Connect(host));
        }
        for errand in std::mem::take(&mut self.errands) {
            match errand {
                Errand::Connect(host) => {
                    let paths = in_order(self.paths_to(host), net);
                    let handle = paths.begin(net);
                    let line = self.line(host);
                    line.begin(handle, paths);
                    let connection = net.client.endpoint.connection(handle);
                    if let Some(connection) = connection.filter(|connection| connection.is_early_data()) {
                        line.on_connected();
                        line.pump(connection);
                    }
                }
                Errand::Pump(host) => {
                    let line = self.line(host);
                    let connection = line.handle.and_then(|handle| net.client.endpoint.connection(handle));
                    if let Some(connection) = connection {
                        line.pump(connection);
                    }
                }
            }
        }
    }

    fn line(&mut self, host: Host) -> &mut Line {
        self.lines.entry(host).or_default()
    }

    fn paths_to(&self, host: Host) -> Paths {
        match host {
            Host::Earlier(domain) if self.manner.deployment == Deployment::Revisited => {
                self.paths.to_domain(domain)
            }
            Host::Standing | Host::Earlier(_) => self.paths,
            Host::Domain(domain) => self.paths.to_domain(domain),
            Host::Background(flow) => self.paths.to_background(flow),
            Host::Gateway(connection) => self.paths.to_gateway(connection),
        }
    }

    fn request_due(&mut self) {
        for request in self.loader.ready(clock(self.now)) {
            let host = match self.manner.deployment {
                Deployment::Gateway => self.gateway(request.domain),
                _ => Host::Domain(request.domain),
            };
            if self.manner.deployment != Deployment::Gateway && self.asked.insert(request.domain) {
                self.ask(Host::Standing, RequestTarget::Address(request.domain));
            }
            let wanted = RequestTarget::Object(request.object, request.request_size);
            if self.manner.deployment == Deployment::Http1 {
                self.sockets.push(request.domain, wanted);
                self.use_sockets(request.domain);
            } else {
                self.ask(host, wanted);
            }
        }
    }

    /// Gives what waits to connections of `domain` that are idle, and begins more if there may be.
    fn use_sockets(&mut self, domain: u32) {
        let hosts = || self.sockets.begun(domain).map(Host::Domain);
        let idle: Vec<Host> =
            hosts().filter(|host| self.lines.get(host).is_some_and(Line::is_idle)).collect();
        let mut opening = hosts().filter(|host| !self.lines.get(host).is_some_and(Line::is_ready)).count();
        for host in idle {
            if let Some(wanted) = self.sockets.pop(domain) {
                self.ask(host, wanted);
            }
        }
        while let Some(server) = self.sockets.begin(domain, opening) {
            opening += 1;
            if self.sockets.knows(domain) {
                self.greet(Host::Domain(server));
            }
        }
    }

    /// The address of `host` is known: what TCP and TLS take comes first.
    fn greet(&mut self, host: Host) {
        self.line(host).greet();
        self.errands.push(Errand::Pump(host));
    }

    fn ask(&mut self, host: Host, wanted: RequestTarget) {
        let line = self.line(host);
        line.ask(wanted);
        let errand = if line.take_ended() { Errand::Connect(host) } else { Errand::Pump(host) };
        self.errands.push(errand);
    }

    pub(super) fn on_event(
        &mut self,
        handle: ConnectionHandle,
        event: &Event,
        connection: &mut Connection,
        now: Instant,
    ) {
        self.now = now;
        let mut lines = self.lines.iter_mut();
        let Some((host, line)) = lines.find(|(_, line)| line.handle == Some(handle)) else { return };
        let greets = self.manner.deployment.greets() && matches!(host, Host::Domain(_));
        match event {
            Event::Connected => {
                if !greets {
                    line.on_connected();
                }
                line.open_second_path(connection, now);
                line.pump(connection);
            }
            Event::Confirmed | Event::Path(PathEvent::Available) => line.open_second_path(connection, now),
            // The path was given up since its channel was cut just then, or with an attempt whose place another took.
            Event::Path(PathEvent::ValidationFailed(_) | PathEvent::Migrated(_)) => {
                line.reopen_second_path(connection, now);
            }
            Event::Stream(StreamEvent::Available { .. }) => line.pump(connection),
            Event::Stream(StreamEvent::Writable(id)) => line.write(*id, connection),
            Event::Stream(StreamEvent::Readable(id)) => {
                if let Some(wanted) = line.asked(*id) {
                    let ended = self.read(*id, wanted, connection);
                    self.note_end(ended, handle, *id, wanted);
                }
            }
            _ => {}
        }
    }

    /// The connection `handle` is over. One that never came about is begun again, and one that nobody waits for when it is
    /// needed.
    pub(super) fn on_closed(&mut self, handle: ConnectionHandle, error: &ConnectionError) -> Loss {
        let mut lines = self.lines.iter_mut();
        let Some((host, line)) = lines.find(|(_, line)| line.handle == Some(handle)) else {
            return Loss::Nothing;
        };
        if line.wants_answers() && *error != ConnectionError::HandshakeTimeout {
            return Loss::Answers;
        }
        // What TCP and TLS take is asked for once.
        let greets = self.manner.deployment.greets() && matches!(host, Host::Domain(_));
        line.end();
        if !greets {
            line.await_handshake();
        }
        if line.wants_answers() && line.take_ended() {
            self.errands.push(Errand::Connect(*host));
        }
        Loss::Nothing
    }

    /// Reads what is there of the answer on stream `id`; whether that was all.
    fn read(&mut self, id: StreamId, wanted: RequestTarget, connection: &mut Connection) -> Reading {
        loop {
            match connection.read(id, usize::MAX) {
                Ok(ReadOutcome::Data(data)) => {
                    if let RequestTarget::Object(object, _) = wanted {
                        self.progress.on_bytes(data.len() as u64, clock(self.now));
                        let told = self.loader.on_first_byte(object, clock(self.now));
                        told.expect("the loader asked for it");
                    }
                }
                Ok(ReadOutcome::Finished) => return Reading::Ended,
                Ok(ReadOutcome::Blocked) | Err(_) => return Reading::Going,
            }
        }
    }

    fn note_end(&mut self, reading: Reading, handle: ConnectionHandle, id: StreamId, wanted: RequestTarget) {
        if reading == Reading::Going {
            return;
        }
        let mut lines = self.lines.iter_mut();
        let Some((host, line)) = lines.find(|(_, line)| line.handle == Some(handle)) else { return };
        let host = *host;
        line.answered(id);
        match wanted {
            RequestTarget::Object(object, _) => {
                self.ends.push(clock(self.now));
                self.loader.on_end(object, clock(self.now)).expect("the loader asked for it");
            }
            RequestTarget::Address(domain) if self.manner.deployment == Deployment::Http1 => {
                self.sockets.learn(domain);
                let begun = self.sockets.begun(domain);
                begun.for_each(|server| self.greet(Host::Domain(server)));
            }
            RequestTarget::Address(domain) if self.manner.deployment == Deployment::TcpTls => {
                self.greet(Host::Domain(domain));
            }
            RequestTarget::Visit(_) => {}
            RequestTarget::Address(domain) => self.errands.push(Errand::Connect(Host::Domain(domain))),
            RequestTarget::Background(part, priority) => {
                let next = match part {
                    UPLOAD => DOWNLOAD,
                    DOWNLOAD => UPLOAD,
                    endless => endless,
                };
                self.ask(host, RequestTarget::Background(next, priority));
            }
            RequestTarget::Greeting(greeting) => {
                line.greeted(greeting);
                self.errands.push(Errand::Pump(host));
            }
        }
        if let (Deployment::Http1, Host::Domain(server)) = (self.manner.deployment, host) {
            self.use_sockets(sockets::domain_of(server));
        }
    }
}

/// The loss with a connection that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Loss {
    /// Nothing that anybody waits for.
    Nothing,
    /// Answers that were asked for.
    Answers,
}

/// The state of an answer that is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// More is to come.
    Going,
    /// Nothing more is to come.
    Ended,
}
